// Helpers of the frontend's tests: models written as text, diagnostics as strings.
#ifndef ORIEL_FRONTEND_TESTING_H_
#define ORIEL_FRONTEND_TESTING_H_

#include <string>

#include "frontend/frontend.h"

namespace oriel::testing {

// Parses ONNX's text form. Ends the test program on a syntax error.
std::unique_ptr<onnx::ModelProto> parseModel(const std::string& text);
// A whole model around a graph: "opset 20, g (float[2] x) => (float[2] y) { .. }".
std::string modelText(const std::string& graph, int opset = 20);

struct Imported {
  std::string ir;      // as printed, without locations; empty on failure
  std::string ops;     // names in order, "reshape softmax", constants left out
  std::string errors;  // each diagnostic and its notes on lines of their own
};

// Imports, and specializes unless told otherwise.
Imported importText(const std::string& model, const ImportOptions& options = {},
                    bool specialize = true);
Imported importFile(const ModelFile& model, const ImportOptions& options, bool specialize = true);
// Imported::ops, or "failed: " and why.
std::string opsOf(const std::string& model, const ImportOptions& options = {});

// A folder that is removed at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  std::string path(const std::string& name) const;

 private:
  std::string path_;
};
void writeFile(const std::string& path, const std::string& bytes);
std::string readFile(const std::string& path);
std::string serialize(const onnx::ModelProto& model);

// The message of a failed Expected; "" where it holds a value.
template <typename T>
std::string messageOf(llvm::Expected<T> expected) {
  return expected ? "" : llvm::toString(expected.takeError());
}

}  // namespace oriel::testing

#endif  // ORIEL_FRONTEND_TESTING_H_
