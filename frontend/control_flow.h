// Nodes that hold graphs: If, Loop and Scan.
//
// Sizes and counts are known when a model is compiled, so the branch that is taken, or the body
// once for each iteration, stands in the place of the node. TorchScript's exporter writes
// `x.squeeze(1)` as an If of the size, and scripted loops as Loop, as which jax2onnx writes
// jax.lax.scan, too.
#ifndef ORIEL_FRONTEND_CONTROL_FLOW_H_
#define ORIEL_FRONTEND_CONTROL_FLOW_H_

#include <string>
#include <vector>

#include "frontend/float_types.h"
#include "frontend/model_file.h"
#include "frontend/value_builder.h"
#include "llvm/ADT/StringMap.h"

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace oriel {

// Where the nodes of branches and bodies are imported.
class NodeScope {
 public:
  // Imports a node of a branch or body; its results become values.
  virtual mlir::LogicalResult importInner(const onnx::NodeProto& node) = 0;
  virtual mlir::LogicalResult checkSupported(
      llvm::ArrayRef<const onnx::NodeProto*> nodes) const = 0;

  llvm::StringMap<mlir::Value> values;  // what is known by name
  std::string iteration;                // "[2][0]": of the loops around a node, outermost first
  int64_t unrolledNodes = 0;            // of all loops so far

 protected:
  ~NodeScope() = default;
};

class ControlFlow {
 public:
  // Most nodes that the loops of a model may become.
  static constexpr int64_t kMaxUnrolledNodes = int64_t{1} << 15;

  static bool is(const onnx::NodeProto& node);

  // `version` is that of ONNX's operator set. All must outlive this.
  ControlFlow(const onnx::NodeProto& node, int64_t version, mlir::OpBuilder& builder,
              const ModelFile& model, FloatTypes floats, NodeScope& scope);

  // Makes the node's results values of the scope. Fails with a diagnostic, also where a condition
  // or a count depends on inputs or parameters.
  mlir::LogicalResult import();

 private:
  using Values = llvm::SmallVector<mlir::Value>;

  mlir::LogicalResult importIf();
  mlir::LogicalResult importLoop();
  mlir::LogicalResult importScan();

  mlir::InFlightDiagnostic error() const;
  // Null, with an error, where the node has no such attribute.
  const onnx::GraphProto* graphOf(llvm::StringRef attribute) const;
  // Of an attribute of `count` integers, which are `otherwise` where it is left out.
  mlir::FailureOr<Ints> intsOf(llvm::StringRef attribute, int64_t count, int64_t otherwise) const;
  // Null where the node leaves the operand out.
  mlir::Value operand(int index) const;
  // The one element of the value `name`; `does` is what the node does by it ("chooses by").
  mlir::FailureOr<int64_t> knownNumber(mlir::Value value, llvm::StringRef name,
                                       llvm::StringRef does, bool isBool) const;

  // Imports the nodes of `graph`, whose inputs are `inputs`, and fills `results` with its outputs.
  // Its values are forgotten behind it, so that others may use their names.
  mlir::LogicalResult importGraph(const onnx::GraphProto& graph, llvm::ArrayRef<mlir::Value> inputs,
                                  Values& results);
  mlir::LogicalResult importTurn(const onnx::GraphProto& body, int64_t turn,
                                 llvm::ArrayRef<mlir::Value> inputs, Values& results);
  // Both add what they make to the names that the graph owns.
  mlir::LogicalResult importInitializers(const onnx::GraphProto& graph,
                                         std::vector<std::string>& own);
  mlir::LogicalResult importNodes(const onnx::GraphProto& graph, std::vector<std::string>& own);

  // One value of all `pieces`, with a new dimension `dim` (from the end where negative); `reversed`
  // from the last piece to the first.
  mlir::Value stack(llvm::ArrayRef<mlir::Value> pieces, int64_t dim, bool reversed);
  bool isWanted(int result) const;
  // An entry may be null where the node does not name that result; else an error was emitted.
  mlir::LogicalResult bind(llvm::ArrayRef<mlir::Value> results);

  const onnx::NodeProto& node_;
  const int64_t version_;
  const ModelFile& model_;
  const FloatTypes floats_;
  NodeScope& scope_;
  ValueBuilder build_;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_CONTROL_FLOW_H_
