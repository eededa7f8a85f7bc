#include "driver/diagnostics.h"

#include <cstdio>

#include "frontend/node_location.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Location.h"

namespace oriel::driver {

namespace {

const char* severityText(mlir::DiagnosticSeverity severity) {
  switch (severity) {
    case mlir::DiagnosticSeverity::Error:
      return "error: ";
    case mlir::DiagnosticSeverity::Warning:
      return "warning: ";
    case mlir::DiagnosticSeverity::Note:
    case mlir::DiagnosticSeverity::Remark:
      return "note: ";
  }
  return "note: ";
}

// "node "x" [module]: ", "file:line:column: ", or nothing.
std::string placeText(mlir::Location location, llvm::StringRef message, llvm::StringRef modelPath) {
  // The importer's own messages begin with the node.
  if (message.starts_with("node \"")) return "";
  if (std::string node = nodeNameOf(location); !node.empty()) {
    if (node == modelPath) return node + ": ";
    const std::string module = modulePathOf(location);
    return "node \"" + node + "\"" + (module.empty() ? "" : " [" + module + "]") + ": ";
  }
  if (auto file = location->findInstanceOf<mlir::FileLineColLoc>()) {
    return (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()) + ":" +
            llvm::Twine(file.getColumn()) + ": ")
        .str();
  }
  return "";
}

void append(const mlir::Diagnostic& diagnostic, llvm::StringRef modelPath, bool isNote,
            llvm::StringRef parentPlace, std::string& text) {
  const std::string message = diagnostic.str();
  const std::string place = placeText(diagnostic.getLocation(), message, modelPath);
  text += isNote ? "note: " : severityText(diagnostic.getSeverity());
  // A note mostly stands where its error does.
  if (!isNote || place != parentPlace) text += place;
  text += message + "\n";
  for (const mlir::Diagnostic& note : diagnostic.getNotes()) {
    append(note, modelPath, /*isNote=*/true, place, text);
  }
}

}  // namespace

std::string formatDiagnostic(const mlir::Diagnostic& diagnostic, llvm::StringRef modelPath) {
  std::string text;
  append(diagnostic, modelPath, /*isNote=*/false, "", text);
  return text;
}

DiagnosticPrinter::DiagnosticPrinter(mlir::MLIRContext* context, std::string modelPath,
                                     std::string* errorText)
    : handler_(context,
               [this, path = std::move(modelPath), errorText](mlir::Diagnostic& diagnostic) {
                 const bool isError = diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
                 if (isError) ++errors_;
                 if (errorText && !isError) return mlir::success();
                 const std::string text = formatDiagnostic(diagnostic, path);
                 if (errorText) {
                   *errorText += text;
                 } else {
                   std::fwrite(text.data(), 1, text.size(), stderr);
                 }
                 return mlir::success();
               }) {
  // Otherwise a note with the whole op, at worst the module, follows each error.
  context->printOpOnDiagnostic(false);
}

}  // namespace oriel::driver
