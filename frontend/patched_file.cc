#include "frontend/patched_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "frontend/error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace oriel {

llvm::Expected<PatchedFile> PatchedFile::read(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer) {
    return makeError("can't read \"" + path + "\": " + buffer.getError().message());
  }
  PatchedFile file;
  file.bytes_.assign((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
  return file;
}

bool PatchedFile::patch(uint64_t offset, llvm::ArrayRef<char> value) {
  if (offset > bytes_.size() || value.size() > bytes_.size() - offset) {
    return false;
  }
  std::memcpy(bytes_.data() + offset, value.data(), value.size());
  return true;
}

llvm::Error PatchedFile::write(llvm::StringRef path) const {
  auto fail = [&](const llvm::Twine& why) {
    return makeError("can't write \"" + path + "\": " + why);
  };
  if (std::error_code code =
          llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path))) {
    return fail(code.message());
  }
  auto temporary = llvm::sys::fs::TempFile::create(path + ".%%%%%%%%.tmp");
  if (!temporary) {
    return fail(llvm::toString(temporary.takeError()));
  }
  size_t written = 0;
  while (written < bytes_.size()) {
    ssize_t count = ::write(temporary->FD, bytes_.data() + written, bytes_.size() - written);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      std::string why = std::strerror(errno);
      llvm::consumeError(temporary->discard());
      return fail(why);
    }
    written += count;
  }
  // Synced before the rename: a crash leaves the old file or the new one, not half of it.
  if (::fsync(temporary->FD) != 0 ||
      llvm::sys::fs::setPermissions(temporary->FD, llvm::sys::fs::perms(0644))) {
    std::string why = std::strerror(errno);
    llvm::consumeError(temporary->discard());
    return fail(why);
  }
  if (llvm::Error error = temporary->keep(path)) {
    return fail(llvm::toString(std::move(error)));
  }
  return llvm::Error::success();
}

}  // namespace oriel
