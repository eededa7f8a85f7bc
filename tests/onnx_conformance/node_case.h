// One of ONNX's node tests, as tools/setup.sh wrote it:
//
//   NAME/model.onnx                            one node, or the body of the function it is
//   NAME/test_data_set_0/input_N.pb            the graph's inputs
//   NAME/test_data_set_0/output_N.pb           what ONNX's reference computes
#ifndef ORIEL_TESTS_ONNX_CONFORMANCE_NODE_CASE_H_
#define ORIEL_TESTS_ONNX_CONFORMANCE_NODE_CASE_H_

#include <memory>
#include <string>
#include <vector>

#include "frontend/tensor_data.h"
#include "llvm/Support/Error.h"

namespace onnx {
class ModelProto;
class TensorProto;
}  // namespace onnx

namespace oriel::conformance {

enum class DTypes {
  kFloat,       // f32 or f64 among the inputs and outputs; integers and booleans may be there too
  kOther,       // integers and booleans only
  kOutOfScope,  // strings, sequences, 8 bits, 16 bits, ..; operator sets that Oriel does not read
};

struct NodeTensor {
  std::shared_ptr<const onnx::TensorProto> proto;  // under the name that the graph has for it
  TensorData data;                                 // may point into `proto`
};

struct NodeCase {
  std::string name;                               // "test_add_bcast"
  std::string op;                                 // "Add"; of a body, the function's name
  std::shared_ptr<const onnx::ModelProto> model;  // of an operator set that Oriel reads
  DTypes dtypes = DTypes::kOutOfScope;
  std::vector<NodeTensor> inputs, outputs;  // empty where out of scope
};

// Reads every case of the folder, sorted by name.
llvm::Expected<std::vector<NodeCase>> readCases(const std::string& folder);

}  // namespace oriel::conformance

#endif  // ORIEL_TESTS_ONNX_CONFORMANCE_NODE_CASE_H_
