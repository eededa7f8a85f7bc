// A file that is another with some ranges of bytes replaced.
#ifndef ORIEL_FRONTEND_PATCHED_FILE_H_
#define ORIEL_FRONTEND_PATCHED_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace oriel {

struct Replacement {
  uint64_t offset = 0;
  uint64_t size = 0;
  std::string name;  // for errors
  // Makes the bytes when it is their turn; they are valid until the next call of any replacement.
  // Null: the bytes stay, and no replacement may touch them.
  std::function<llvm::Expected<llvm::ArrayRef<char>>()> bytes;
};

// Writes `from` to `to` with these ranges replaced, from the first byte to the last, so that memory
// holds one replacement at a time. An empty `from` stands for zeros up to the last replacement.
// Makes the folders on the way. The file appears whole, synced to disk, or not at all.
//
// Errors: replacements that overlap each other or bytes that stay, or reach beyond the end, those
// of `bytes`, and what the file system says.
llvm::Error writePatched(llvm::StringRef from, std::vector<Replacement> replacements,
                         llvm::StringRef to);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_PATCHED_FILE_H_
