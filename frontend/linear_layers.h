// The linear layers of an ONNX model: products with a parameter.
#ifndef ORIEL_FRONTEND_LINEAR_LAYERS_H_
#define ORIEL_FRONTEND_LINEAR_LAYERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/model_file.h"
#include "llvm/ADT/StringMap.h"

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace oriel {

// What multiplies by a parameter of two dimensions: MatMul, or Gemm, also in branches.
struct LinearLayer {
  std::string weight;  // the initializer
  std::string module;  // after which adapters are named
  int64_t inputs = 0, outputs = 0;
  bool isOutputFirst = false;  // the weight is stored [outputs, inputs]
  bool isOutputLayer = false;  // gives an output of the model: the logits, for one
  bool isShared = false;       // something else reads the weight, too: a tied embedding
};

// In the order of their first use, each weight once. One that multiplies both as it is and
// transposed is not there.
std::vector<LinearLayer> linearLayers(const ModelFile& model);
// Whether the model has local functions, whose layers are not found.
bool hasFunctions(const ModelFile& model);

// A value that is a parameter, but for its order and type.
struct Matrix {
  std::string weight;
  bool isTransposed = false;
  int32_t dataType = 0;
};

// The parameters of two dimensions, and what nodes make of them.
class ParameterMatrices {
 public:
  explicit ParameterMatrices(const ModelFile& model);

  // Null if the value is no parameter.
  const Matrix* find(llvm::StringRef value) const;
  // Whether the node only moves or converts a parameter, which its result then is. To be asked of
  // each node in turn, of those of its branches first: they may use the same names for other
  // values.
  bool follow(const onnx::NodeProto& node);
  // Before the nodes of a branch.
  void enter(const onnx::GraphProto& branch);
  // What the node multiplies its rows by, [inputs, outputs] unless it is transposed.
  std::optional<Matrix> factorOf(const onnx::NodeProto& node) const;

 private:
  llvm::StringMap<Matrix> values_;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_LINEAR_LAYERS_H_
