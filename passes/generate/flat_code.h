// Machine code without anything to link.
#ifndef ORIEL_PASSES_GENERATE_FLAT_CODE_H_
#define ORIEL_PASSES_GENERATE_FLAT_CODE_H_

#include <cstdint>
#include <string>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace oriel {

struct FlatCode {
  std::string bytes;  // to be put at a multiple of 4096, anywhere
  int64_t entry = 0;  // where the function begins
};

// Lays the code and the constants of an x86-64 object file (ELF) behind each other, and resolves
// their references to each other. An error names what is left: a reference to something outside,
// data that is written, an absolute address.
llvm::Expected<FlatCode> flattenObject(llvm::StringRef object, llvm::StringRef function);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_FLAT_CODE_H_
