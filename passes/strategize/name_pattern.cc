#include "passes/strategize/name_pattern.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace oriel {

std::string inAllLayers(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> parts;
  name.split(parts, '.');
  for (llvm::StringRef& part : parts) {
    if (!part.empty() && llvm::all_of(part, llvm::isDigit)) part = "*";
  }
  return llvm::join(parts, ".");
}

}  // namespace oriel
