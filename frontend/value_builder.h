// Builds ops for whoever imports them, null-safely and folded.
//
// An operation on a null value, or one that fails, emits at most one diagnostic and gives a null
// value. Ops are folded as they are made. Whatever the sizes and attributes, an op that would not
// be valid is an error, never a crash.
#ifndef ORIEL_FRONTEND_VALUE_BUILDER_H_
#define ORIEL_FRONTEND_VALUE_BUILDER_H_

#include <optional>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace oriel {

using Ints = llvm::SmallVector<int64_t>;

// An operand that may be left out: null is passed on to the op.
struct OptionalValue {
  mlir::Value value;
  operator mlir::Value() const { return value; }
};

// Most elements that the importer itself enumerates. A hostile file may declare far larger tensors
// than it holds.
inline constexpr int64_t kMaxEnumerated = int64_t{1} << 26;

class ValueBuilder {
 public:
  // Ops are inserted where `builder` stands.
  ValueBuilder(mlir::OpBuilder& builder, mlir::Location location)
      : builder_(builder), location_(location) {}

  mlir::Location location() const { return location_; }
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
  // Rank 0, with the element type of `like`. Null, with an error, for a number that no integer
  // holds.
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
  // input[b.., n, ..] by indices [b.., k..], with `batch` dimensions b.
  mlir::Value gatherRows(mlir::Value input, mlir::Value indices, int64_t batch);
  mlir::Value concat(llvm::ArrayRef<mlir::Value> inputs, int64_t dim);
  mlir::Value clamp(mlir::Value input, double low, double high);
  template <typename OpTy>
  mlir::Value reduce(mlir::Value input, llvm::ArrayRef<int64_t> dims, bool keepDims) {
    return create<OpTy>(input, dims, keepDims);
  }

 private:
  static bool isNull(mlir::Value value) { return !value; }
  static bool isNull(mlir::ValueRange values) { return llvm::is_contained(values, mlir::Value()); }
  template <typename T>
  static std::enable_if_t<!std::is_convertible_v<T, mlir::ValueRange>, bool> isNull(const T&) {
    return false;
  }

  // Verifies the op, folds it, and returns its first result; null, with an error, if invalid.
  mlir::Value finish(mlir::Operation* op);

  mlir::OpBuilder& builder_;
  mlir::Location location_;
};

using ir::elementOf;
using ir::rankOf;
using ir::shapeOf;
using ir::tensorType;

// The elements of an integer or boolean value that is a constant of at most kMaxEnumerated
// elements.
std::optional<Ints> constantIntsOf(mlir::Value value);
// The same where they have to be known: also those of a value that is made of constants, but so
// large that it is not folded. That takes time.
std::optional<Ints> computedIntsOf(mlir::Value value);
// The one element of a float or integer constant whose elements are all equal.
std::optional<double> constantScalarOf(mlir::Value value);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_VALUE_BUILDER_H_
