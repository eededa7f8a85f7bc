// Whether an error was said while something ran.
#ifndef ORIEL_IR_ORIEL_ERROR_WATCH_H_
#define ORIEL_IR_ORIEL_ERROR_WATCH_H_

#include <exception>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/Diagnostics.h"

namespace oriel::ir {

// For functions that a plugin may bring. On failure an error has been said, with `what` in it if
// the function says none itself or throws; and a function that says one has failed.
inline mlir::LogicalResult runWatched(mlir::Location location, const llvm::Twine& what,
                                      llvm::function_ref<mlir::LogicalResult()> function) {
  int errors = 0;
  mlir::ScopedDiagnosticHandler watch(location.getContext(), [&](mlir::Diagnostic& diagnostic) {
    errors += diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::failure();  // on to whoever prints it
  });
  mlir::LogicalResult done = mlir::failure();
  try {
    done = function();
  } catch (const std::exception& exception) {
    return mlir::emitError(location) << what << " failed: " << exception.what();
  }
  if (mlir::failed(done) && errors == 0) {
    return mlir::emitError(location) << what << " failed without saying why";
  }
  return mlir::success(mlir::succeeded(done) && errors == 0);
}

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_ERROR_WATCH_H_
