// Errors of the parts that read and write files. Errors about the graph are MLIR diagnostics.
#ifndef ORIEL_FRONTEND_ERROR_H_
#define ORIEL_FRONTEND_ERROR_H_

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

namespace oriel {

inline llvm::Error makeError(const llvm::Twine& message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

}  // namespace oriel

#endif  // ORIEL_FRONTEND_ERROR_H_
