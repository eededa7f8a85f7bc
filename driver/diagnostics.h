// MLIR diagnostics as people read them.
//
//   error: node "/model/layers.0/Softmax" [model.layers.0.self_attn]: axis 3 is out of range
//   note: ...
//
// One lives beside the context while a command works; errors go to stderr as they come.
#ifndef ORIEL_DRIVER_DIAGNOSTICS_H_
#define ORIEL_DRIVER_DIAGNOSTICS_H_

#include <string>

#include "mlir/IR/Diagnostics.h"

namespace oriel::driver {

class DiagnosticPrinter {
 public:
  // `modelPath` is what the importer gave to the module as its location. With `errorText`, the
  // errors are added there, and nothing is printed.
  DiagnosticPrinter(mlir::MLIRContext* context, std::string modelPath,
                    std::string* errorText = nullptr);

  // How many errors there were.
  int errors() const { return errors_; }

 private:
  int errors_ = 0;
  mlir::ScopedDiagnosticHandler handler_;
};

// The text for one diagnostic and its notes, a line each.
std::string formatDiagnostic(const mlir::Diagnostic& diagnostic, llvm::StringRef modelPath);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_DIAGNOSTICS_H_
