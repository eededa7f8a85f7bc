// What a handler sees of the ONNX node that it imports, and the means to build ops for it.
//
// Values flow through null-safely (value_builder.h), and `replace` fails for a null one. So a
// handler is a straight line:
//
//   LogicalResult importHardSwish(NodeImporter &n) {
//     Value x = n.operand(0);
//     Value gate = n.create<ir::AddOp>(n.create<ir::MulOp>(x, n.scalarLike(x, 1.0 / 6)),
//                                      n.scalarLike(x, 0.5));
//     return n.replace(n.create<ir::MulOp>(x, n.clamp(gate, 0, 1)));
//   }
#ifndef ORIEL_FRONTEND_NODE_IMPORTER_H_
#define ORIEL_FRONTEND_NODE_IMPORTER_H_

#include <optional>
#include <string>

#include "frontend/float_types.h"
#include "frontend/value_builder.h"

namespace onnx {
class AttributeProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace oriel {

class NodeImporter : public ValueBuilder {
 public:
  // An entry of `operands` is null where the node leaves the operand out.
  NodeImporter(const onnx::NodeProto& node, int64_t version, llvm::ArrayRef<mlir::Value> operands,
               mlir::OpBuilder& builder, llvm::StringRef folder, FloatTypes floats);

  // How many nodes of this one's name were imported before: names of graphs side by side may be
  // equal.
  int64_t occurrence() const { return occurrence_; }
  void setOccurrence(int64_t occurrence) { occurrence_ = occurrence; }

  // --- The node
  llvm::StringRef opType() const;
  // Version of the operator set that the node's domain is imported with.
  int64_t version() const { return version_; }
  // An error at the node, prefixed with its name and op.
  mlir::InFlightDiagnostic error() const;

  unsigned numOperands() const { return operands_.size(); }
  unsigned numResults() const;
  bool hasOperand(unsigned index) const;
  // Whether anybody may read result `index`: the node names it.
  bool hasResult(unsigned index) const;
  // Null, with an error, where it is missing.
  mlir::Value operand(unsigned index) const;
  // Null, without an error, where it is missing.
  mlir::Value optionalOperand(unsigned index) const;

  bool hasAttr(llvm::StringRef name) const;
  int64_t attrInt(llvm::StringRef name, int64_t otherwise) const;
  double attrFloat(llvm::StringRef name, double otherwise) const;
  std::string attrString(llvm::StringRef name, llvm::StringRef otherwise) const;
  std::optional<Ints> attrInts(llvm::StringRef name) const;
  std::optional<llvm::SmallVector<float>> attrFloats(llvm::StringRef name) const;
  std::optional<llvm::SmallVector<std::string>> attrStrings(llvm::StringRef name) const;
  // The element type that an attribute names by its code, as it is imported; null, with an error
  // that says what the node does with it ("casts to"), for one that Oriel does not know.
  mlir::Type attrType(llvm::StringRef name, llvm::StringRef does) const;
  // Null where absent; fails, with an error, for a tensor that can't be read.
  mlir::FailureOr<mlir::DenseElementsAttr> attrTensor(llvm::StringRef name) const;

  // Elements of an integer operand that must be known at compile time; fails with an error.
  mlir::FailureOr<Ints> constantInts(unsigned index) const;
  mlir::FailureOr<int64_t> constantInt(unsigned index) const;
  // `axis` counted from the end where negative; fails with an error outside [-rank, rank).
  mlir::FailureOr<int64_t> normalizeAxis(int64_t axis, int64_t rank) const;
  mlir::FailureOr<Ints> normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank) const;

  // --- Results
  // Binds the node's only wanted result. Fails for null, and where the node wants more results.
  mlir::LogicalResult replace(mlir::Value result);
  // Binds each result; an entry may be null only where the node does not name that result.
  mlir::LogicalResult replace(llvm::ArrayRef<mlir::Value> results);
  llvm::ArrayRef<mlir::Value> results() const { return results_; }

 private:
  const onnx::AttributeProto* findAttr(llvm::StringRef name) const;

  const onnx::NodeProto& node_;
  int64_t version_;
  llvm::SmallVector<mlir::Value> operands_;
  std::string folder_;
  FloatTypes floats_;
  int64_t occurrence_ = 0;
  llvm::SmallVector<mlir::Value> results_;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_NODE_IMPORTER_H_
