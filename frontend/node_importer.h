// What a handler sees of the ONNX node that it imports, and the means to build ops for it.
//
// Values flow through null-safely: an operation on a null value, or one that fails, emits at most
// one diagnostic and gives a null value, and `replace` fails for a null one. So a handler is a
// straight line:
//
//   LogicalResult importHardSwish(NodeImporter &n) {
//     Value x = n.operand(0);
//     Value gate = n.create<ir::AddOp>(n.create<ir::MulOp>(x, n.scalarLike(x, 1.0 / 6)),
//                                      n.scalarLike(x, 0.5));
//     return n.replace(n.create<ir::MulOp>(x, n.clamp(gate, 0, 1)));
//   }
//
// Ops are folded as they are made. Whatever the model's sizes and attributes, an op that would not
// be valid is an error at the node, never a crash.
#ifndef ORIEL_FRONTEND_NODE_IMPORTER_H_
#define ORIEL_FRONTEND_NODE_IMPORTER_H_

#include <optional>
#include <string>

#include "ir/oriel/oriel.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace onnx {
class AttributeProto;
class NodeProto;
class TensorProto;
}  // namespace onnx

namespace oriel {

using Ints = llvm::SmallVector<int64_t>;

// An operand that may be left out: null is passed on to the op.
struct OptionalValue {
  mlir::Value value;
  operator mlir::Value() const { return value; }
};

class NodeImporter {
 public:
  // An entry of `operands` is null where the node leaves the operand out.
  NodeImporter(const onnx::NodeProto& node, int64_t version, llvm::ArrayRef<mlir::Value> operands,
               mlir::OpBuilder& builder, llvm::StringRef folder);

  // --- The node
  llvm::StringRef opType() const;
  // Version of the operator set that the node's domain is imported with.
  int64_t version() const { return version_; }
  mlir::Location location() const { return location_; }
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
  // Null where absent; fails, with an error, for a tensor that can't be read.
  mlir::FailureOr<mlir::DenseElementsAttr> attrTensor(llvm::StringRef name) const;

  // Elements of an integer operand that must be known at compile time; fails with an error.
  mlir::FailureOr<Ints> constantInts(unsigned index) const;
  mlir::FailureOr<int64_t> constantInt(unsigned index) const;
  // `axis` counted from the end where negative; fails with an error outside [-rank, rank).
  mlir::FailureOr<int64_t> normalizeAxis(int64_t axis, int64_t rank) const;
  mlir::FailureOr<Ints> normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank) const;

  // --- Building
  mlir::OpBuilder& builder() const { return builder_; }
  // An op whose result type follows from its operands. The first result, folded if possible.
  template <typename OpTy, typename... Args>
  mlir::Value create(Args... args) {
    if ((isNull(args) || ...)) {
      return {};
    }
    mlir::FailureOr<OpTy> op = ir::createChecked<OpTy>(builder_, location_, args...);
    return failed(op) ? mlir::Value() : finish(*op);
  }
  // An op with this result type. A null type counts as a null operand.
  template <typename OpTy, typename... Args>
  mlir::Value createTyped(mlir::Type type, Args... args) {
    if (!type || (isNull(args) || ...)) {
      return {};
    }
    return finish(OpTy::create(builder_, location_, mlir::TypeRange(type), args...));
  }
  // An op with the type of its only operand.
  template <typename OpTy, typename... Args>
  mlir::Value createLike(mlir::Value input, Args... args) {
    return createTyped<OpTy>(input ? input.getType() : mlir::Type(), input, args...);
  }

  // Null, with an error, for a size that no program can have.
  mlir::RankedTensorType tensorType(llvm::ArrayRef<int64_t> shape, mlir::Type element) const;

  mlir::Value constant(mlir::DenseElementsAttr value);
  // Rank 1 unless a shape is given.
  mlir::Value constantOf(llvm::ArrayRef<int64_t> values);
  mlir::Value constantOf(llvm::ArrayRef<int64_t> values, llvm::ArrayRef<int64_t> shape);
  mlir::Value boolConstant(llvm::ArrayRef<bool> values, llvm::ArrayRef<int64_t> shape);
  // Rank 0, with the element type of `like`.
  mlir::Value scalarLike(mlir::Value like, double value);
  mlir::Value splat(mlir::RankedTensorType type, double value);

  mlir::Value reshape(mlir::Value input, llvm::ArrayRef<int64_t> shape);
  mlir::Value broadcast(mlir::Value input, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value input, llvm::ArrayRef<int64_t> permutation);
  // Swaps the last two dimensions.
  mlir::Value swapLastTwo(mlir::Value input);
  mlir::Value cast(mlir::Value input, mlir::Type elementType);
  mlir::Value slice(mlir::Value input, llvm::ArrayRef<int64_t> starts,
                    llvm::ArrayRef<int64_t> limits);
  // Elements [start, limit) of one dimension.
  mlir::Value sliceDim(mlir::Value input, int64_t dim, int64_t start, int64_t limit);
  mlir::Value gather(mlir::Value input, mlir::Value indices, int64_t dim);
  mlir::Value concat(llvm::ArrayRef<mlir::Value> inputs, int64_t dim);
  mlir::Value clamp(mlir::Value input, double low, double high);
  template <typename OpTy>
  mlir::Value reduce(mlir::Value input, llvm::ArrayRef<int64_t> dims, bool keepDims) {
    return create<OpTy>(input, dims, keepDims);
  }

  // --- Results
  // Binds the node's only wanted result. Fails for null, and where the node wants more results.
  mlir::LogicalResult replace(mlir::Value result);
  // Binds each result; an entry may be null only where the node does not name that result.
  mlir::LogicalResult replace(llvm::ArrayRef<mlir::Value> results);
  llvm::ArrayRef<mlir::Value> results() const { return results_; }

 private:
  static bool isNull(mlir::Value value) { return !value; }
  static bool isNull(mlir::ValueRange values) { return llvm::is_contained(values, mlir::Value()); }
  template <typename T>
  static std::enable_if_t<!std::is_convertible_v<T, mlir::ValueRange>, bool> isNull(const T&) {
    return false;
  }

  const onnx::AttributeProto* findAttr(llvm::StringRef name) const;
  // Verifies the op, folds it, and returns its first result; null, with an error, if invalid.
  mlir::Value finish(mlir::Operation* op);

  const onnx::NodeProto& node_;
  int64_t version_;
  llvm::SmallVector<mlir::Value> operands_;
  mlir::OpBuilder& builder_;
  std::string folder_;
  mlir::Location location_;
  llvm::SmallVector<mlir::Value> results_;
};

// The type of a tensor value.
inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return typeOf(value).getShape(); }
inline int64_t rankOf(mlir::Value value) { return typeOf(value).getRank(); }
inline mlir::Type elementOf(mlir::Value value) { return typeOf(value).getElementType(); }

// The elements of an integer or boolean value that is a constant.
std::optional<Ints> constantIntsOf(mlir::Value value);
// The one element of a float or integer constant whose elements are all equal.
std::optional<double> constantScalarOf(mlir::Value value);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_NODE_IMPORTER_H_
