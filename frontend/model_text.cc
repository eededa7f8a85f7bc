#include "frontend/model_text.h"

#include <algorithm>

#include "frontend/error.h"
#include "onnx/defs/parser.h"

namespace oriel {
namespace {

// ONNX's parser calls itself for each bracket; what a person writes has a handful.
constexpr int kMaxDepth = 200;

// The deepest nesting of brackets outside of strings and comments.
int bracketDepth(llvm::StringRef text) {
  int depth = 0, deepest = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      i += c == '\\';
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (llvm::StringRef("({[<").contains(c)) {
      deepest = std::max(deepest, ++depth);
    } else if (c == '=' && text.substr(i).starts_with("=>")) {
      ++i;  // an arrow, not a bracket
    } else if (llvm::StringRef(")}]>").contains(c)) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

bool isModelText(llvm::StringRef path) { return path.ends_with(".onnxtxt"); }

llvm::Expected<std::unique_ptr<onnx::ModelProto>> parseModelText(llvm::StringRef text) {
  if (bracketDepth(text) > kMaxDepth) {
    return makeError("its brackets are nested more than " + llvm::Twine(kMaxDepth) + " deep");
  }
  auto model = std::make_unique<onnx::ModelProto>();
  try {
    onnx::OnnxParser parser(std::string_view(text.data(), text.size()));
    auto status = parser.Parse(*model);
    if (!status.IsOK()) {
      return makeError(status.ErrorMessage());
    }
    if (!parser.EndOfInput()) {
      return makeError("something follows the end of the graph");
    }
  } catch (const std::exception& exception) {  // a number that does not fit its type
    return makeError(llvm::Twine("a number is out of range (") + exception.what() + ")");
  }
  return model;
}

}  // namespace oriel
