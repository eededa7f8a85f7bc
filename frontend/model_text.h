// ONNX's text form (.onnxtxt), for models written by hand.
#ifndef ORIEL_FRONTEND_MODEL_TEXT_H_
#define ORIEL_FRONTEND_MODEL_TEXT_H_

#include <memory>

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace onnx {
class ModelProto;
}  // namespace onnx

namespace oriel {

// Whether the file's name says that it holds text.
bool isModelText(llvm::StringRef path);

// An error says the line and what was expected there.
llvm::Expected<std::unique_ptr<onnx::ModelProto>> parseModelText(llvm::StringRef text);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_MODEL_TEXT_H_
