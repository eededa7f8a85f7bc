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
// Why the import of a graph fails; a complaint where it does not.
std::string errorsOf(const std::string& graph, const ImportOptions& options = {});
// Imported::ops, or "failed: " and why.
std::string opsOf(const std::string& model, const ImportOptions& options = {});

// Of a graph with this body and the output y, which may use constants: floats f [6], m [2, 3];
// integers i [6], n [2, 3]; zero, one, two and last (-1), of one element each.
// What y folds to, "dense<[2, 3]> : tensor<2xi64>", or the errors.
std::string valueOf(const std::string& body, int opset = 20);
// Likewise with inputs, "float[2] x": as opsOf(), and the IR with the errors.
std::string opsOfBody(const std::string& inputs, const std::string& body, int opset = 20);
std::string irOfBody(const std::string& inputs, const std::string& body, int opset = 20);

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
