#include "frontend/patched_file.h"

#include <memory>
#include <string>
#include <utility>

#include "frontend/error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "runtime/base/files.h"

namespace oriel {
namespace {

llvm::Error toError(const absl::Status& status) {
  return status.ok() ? llvm::Error::success()
                     : makeError("can't write: " + std::string(status.message()));
}

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
  if (llvm::Error error = toError(runtime::MakeFolders(runtime::FolderOf(to.str())))) {
    return error;
  }
  auto file = runtime::AtomicFile::Create(to.str());
  if (!file.ok()) {
    return toError(file.status());
  }
  uint64_t position = 0;
  auto keepUpTo = [&](uint64_t end) {
    uint64_t begin = std::exchange(position, end);
    const auto size = static_cast<int64_t>(end - begin);
    return toError(from.empty() ? (*file)->AppendZeros(size)
                                : (*file)->Append(old.data() + begin, size));
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
    if (llvm::Error error =
            toError((*file)->Append(bytes->data(), static_cast<int64_t>(bytes->size())))) {
      return error;
    }
    position += replacement.size;
  }
  if (!from.empty()) {
    if (llvm::Error error = keepUpTo(old.size())) {
      return error;
    }
  }
  return toError((*file)->Commit());
}

}  // namespace oriel
