#include "driver/sha256.h"

#include <algorithm>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::driver {

absl::StatusOr<std::string> sha256OfFile(const std::string& path) {
  ORIEL_ASSIGN_OR_RETURN(auto file, runtime::MappedFile::Open(path));
  llvm::SHA256 hash;
  // In pieces: LLVM's hash counts the bytes of one update in 32 bits.
  constexpr int64_t kPiece = int64_t{1} << 24;
  for (int64_t offset = 0; offset < file->size(); offset += kPiece) {
    const int64_t size = std::min(kPiece, file->size() - offset);
    hash.update(llvm::StringRef(file->data() + offset, static_cast<size_t>(size)));
  }
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

}  // namespace oriel::driver
