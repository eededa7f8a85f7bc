#include "frontend/patched_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "frontend/error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace oriel {
namespace {

// A temporary file beside `path` that is renamed to it, or removed.
class NewFile {
 public:
  explicit NewFile(llvm::StringRef path) : path_(path.str()) {}
  ~NewFile() {
    if (file_) {
      llvm::consumeError(file_->discard());
    }
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  llvm::Error create() {
    if (std::error_code code =
            llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path_))) {
      return fail(code.message());
    }
    auto file = llvm::sys::fs::TempFile::create(path_ + ".%%%%%%%%.tmp");
    if (!file) {
      return fail(llvm::toString(file.takeError()));
    }
    file_ = std::make_unique<llvm::sys::fs::TempFile>(std::move(*file));
    return llvm::Error::success();
  }

  llvm::Error append(llvm::ArrayRef<char> bytes) {
    while (!bytes.empty()) {
      // Linux writes at most 2 GiB at once.
      ssize_t count = ::write(file_->FD, bytes.data(), std::min<size_t>(bytes.size(), 1u << 30));
      if (count < 0 && errno == EINTR) {
        continue;
      }
      if (count <= 0) {
        return fail(std::strerror(errno));
      }
      bytes = bytes.drop_front(count);
    }
    return llvm::Error::success();
  }

  llvm::Error appendZeros(uint64_t count) {
    if (::lseek(file_->FD, static_cast<off_t>(count), SEEK_CUR) < 0) {
      return fail(std::strerror(errno));
    }
    return llvm::Error::success();
  }

  llvm::Error finish() {
    // Synced before the rename: a crash leaves the old file or the new one, not half of it.
    if (::fsync(file_->FD) != 0) {
      return fail(std::strerror(errno));
    }
    std::unique_ptr<llvm::sys::fs::TempFile> file = std::move(file_);
    if (llvm::Error error = file->keep(path_)) {
      return fail(llvm::toString(std::move(error)));
    }
    return llvm::Error::success();
  }

 private:
  llvm::Error fail(const llvm::Twine& why) const {
    return makeError("can't write \"" + path_ + "\": " + why);
  }

  std::string path_;
  std::unique_ptr<llvm::sys::fs::TempFile> file_;
};

// `ranges` are in the order of their offsets.
llvm::Error checkDisjoint(llvm::ArrayRef<Replacement> ranges) {
  // What reaches furthest of that which is replaced (0) and of that which stays (1).
  const Replacement* furthest[2] = {nullptr, nullptr};
  auto endOf = [](const Replacement* range) { return range ? range->offset + range->size : 0; };
  for (const Replacement& range : ranges) {
    bool stays = !range.bytes;
    for (const Replacement* before : {furthest[0], stays ? nullptr : furthest[1]}) {
      if (range.size > 0 && range.offset < endOf(before)) {
        return makeError("\"" + range.name + "\" and \"" + before->name +
                         "\" share bytes of a file of the model, but are two parameters now: save "
                         "the model again so that each has its own");
      }
    }
    if (endOf(&range) > endOf(furthest[stays])) {
      furthest[stays] = &range;
    }
  }
  return llvm::Error::success();
}

}  // namespace

llvm::Error writePatched(llvm::StringRef from, std::vector<Replacement> replacements,
                         llvm::StringRef to) {
  llvm::stable_sort(replacements,
                    [](const Replacement& a, const Replacement& b) { return a.offset < b.offset; });
  if (llvm::Error error = checkDisjoint(replacements)) {
    return error;
  }
  llvm::ArrayRef<char> old;
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  if (!from.empty()) {
    auto file = llvm::MemoryBuffer::getFile(from, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
    if (!file) {
      return makeError("can't read \"" + from + "\": " + file.getError().message());
    }
    buffer = std::move(*file);
    old = llvm::ArrayRef<char>(buffer->getBufferStart(), buffer->getBufferSize());
  }
  NewFile file(to);
  if (llvm::Error error = file.create()) {
    return error;
  }
  uint64_t position = 0;
  auto keepUpTo = [&](uint64_t end) {
    uint64_t begin = std::exchange(position, end);
    return from.empty() ? file.appendZeros(end - begin)
                        : file.append(old.slice(begin, end - begin));
  };
  for (const Replacement& replacement : replacements) {
    if (!replacement.bytes) {
      continue;
    }
    if (!from.empty() &&
        (replacement.offset > old.size() || replacement.size > old.size() - replacement.offset)) {
      return makeError("\"" + replacement.name + "\" lies beyond the end of \"" + from +
                       "\": the file changed while it was read");
    }
    if (llvm::Error error = keepUpTo(replacement.offset)) {
      return error;
    }
    auto bytes = replacement.bytes();
    if (!bytes) {
      return bytes.takeError();
    }
    if (bytes->size() != replacement.size) {
      return makeError("\"" + replacement.name + "\" has " + llvm::Twine(bytes->size()) +
                       " bytes, the model's " + llvm::Twine(replacement.size));
    }
    if (llvm::Error error = file.append(*bytes)) {
      return error;
    }
    position += replacement.size;
  }
  if (!from.empty()) {
    if (llvm::Error error = keepUpTo(old.size())) {
      return error;
    }
  }
  return file.finish();
}

}  // namespace oriel
