// A file in memory, some bytes of which change before it is written elsewhere.
#ifndef ORIEL_FRONTEND_PATCHED_FILE_H_
#define ORIEL_FRONTEND_PATCHED_FILE_H_

#include <cstdint>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace oriel {

class PatchedFile {
 public:
  static llvm::Expected<PatchedFile> read(llvm::StringRef path);

  llvm::ArrayRef<char> bytes() const { return bytes_; }
  // False where the value would reach beyond the end.
  [[nodiscard]] bool patch(uint64_t offset, llvm::ArrayRef<char> value);
  // Makes the folders on the way. The file appears whole, synced to disk, or not at all.
  llvm::Error write(llvm::StringRef path) const;

 private:
  std::vector<char> bytes_;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_PATCHED_FILE_H_
