// Activations, gated ones and their derivatives element by element, of f32 and narrower
// (ir/oriel/activation.td); the formulas are those of kernels/activation/activation.h, with the
// functions of functions.h. Activations are within 2.5 units in the last place of their argument
// (tests/generated/functions_test.cc).
#include "ir/oriel/oriel.h"
#include "ir/scalar/functions.h"
#include "ir/scalar/models.h"
#include "ir/scalar/scalar.h"

namespace oriel::ir {

namespace {

using mlir::failure;
using mlir::Location;
using mlir::LogicalResult;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::ValueRange;

struct ValueAndSlope {
  Value value, slope;
};

// x Φ(x); the slope is Φ(x) + x φ(x) of the normal distribution.
ValueAndSlope gelu(const At& at, Value x) {
  Value half = at.single(0.5f);
  Value error = erfOf(at, at.mul(x, at.single(0.70710678118654752440f)));
  Value sum = at.add(at.single(1), error);
  Value cumulative = at.mul(half, sum);
  Value power = expOf(at, at.mul(at.mul(at.single(-0.5f), x), x));
  Value density = at.mul(at.single(0.39894228040143267794f), power);
  return {at.mul(at.mul(half, x), sum), at.add(cumulative, at.mul(x, density))};
}

// x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))
ValueAndSlope geluTanh(const At& at, Value x) {
  Value root = at.single(0.79788456080286535588f), half = at.single(0.5f), one = at.single(1);
  Value cube = at.mul(at.mul(at.mul(at.single(0.044715f), x), x), x);
  Value t = tanhOf(at, at.mul(root, at.add(x, cube)));
  Value halfX = at.mul(half, x), sum = at.add(one, t);
  Value square = at.mul(at.mul(at.single(0.134145f), x), x);
  Value inner = at.mul(root, at.add(one, square));
  Value bend = at.mul(at.mul(halfX, at.sub(one, at.mul(t, t))), inner);
  return {at.mul(halfX, sum), at.add(at.mul(half, sum), bend)};
}

// x sigmoid(1.702 x)
ValueAndSlope geluQuick(const At& at, Value x) {
  Value factor = at.single(1.702f);
  Value s = sigmoidOf(at, at.mul(factor, x));
  Value rest = at.sub(at.single(1), s);
  return {at.mul(x, s), at.add(s, at.mul(at.mul(at.mul(factor, x), s), rest))};
}

// x sigmoid(x)
ValueAndSlope silu(const At& at, Value x) {
  Value s = sigmoidOf(at, x);
  Value product = at.mul(x, s);
  return {product, at.add(s, at.mul(product, at.sub(at.single(1), s)))};
}

// What is built and not used goes when the code is made. None for a kind that has no form.
std::optional<ValueAndSlope> both(const At& at, llvm::StringRef kind, Value x) {
  if (!x.getType().isF32()) return std::nullopt;
  if (kind == "gelu") return gelu(at, x);
  if (kind == "gelu_tanh") return geluTanh(at, x);
  if (kind == "gelu_quick") return geluQuick(at, x);
  if (kind == "silu") return silu(at, x);
  return std::nullopt;
}

// Which operand is the function's argument, and what the results are made of it.
template <typename Op>
struct Parts;

template <>
struct Parts<ActivationOp> {
  static constexpr unsigned kArgument = 0;
  static llvm::SmallVector<Value> results(const At&, ValueRange, ValueAndSlope f) {
    return {f.value};
  }
};
template <>
struct Parts<ActivationGradOp> {
  static constexpr unsigned kArgument = 1;
  static llvm::SmallVector<Value> results(const At& at, ValueRange x, ValueAndSlope f) {
    return {at.mul(x[0], f.slope)};
  }
};
template <>
struct Parts<GatedActivationOp> {
  static constexpr unsigned kArgument = 0;
  static llvm::SmallVector<Value> results(const At& at, ValueRange x, ValueAndSlope f) {
    return {at.mul(f.value, x[1])};
  }
};
template <>
struct Parts<GatedActivationGradOp> {
  static constexpr unsigned kArgument = 1;
  static llvm::SmallVector<Value> results(const At& at, ValueRange x, ValueAndSlope f) {
    return {at.mul(at.mul(x[0], x[2]), f.slope), at.mul(x[0], f.value)};
  }
};

template <typename Op>
struct Model : ScalarOpInterface::ExternalModel<Model<Op>, Op> {
  LogicalResult buildScalar(Operation* op, OpBuilder& builder, Location loc, ValueRange operands,
                            llvm::SmallVectorImpl<Value>& results) const {
    const At at{builder, loc};
    std::optional<ValueAndSlope> f =
        both(at, llvm::cast<Op>(op).getKind(), operands[Parts<Op>::kArgument]);
    if (!f) return failure();
    llvm::append_range(results, Parts<Op>::results(at, operands, *f));
    return success();
  }
  bool isApproximated(Operation*) const { return true; }
};

}  // namespace

void attachActivationModels(mlir::MLIRContext* context) {
  ActivationOp::attachInterface<Model<ActivationOp>>(*context);
  ActivationGradOp::attachInterface<Model<ActivationGradOp>>(*context);
  GatedActivationOp::attachInterface<Model<GatedActivationOp>>(*context);
  GatedActivationGradOp::attachInterface<Model<GatedActivationGradOp>>(*context);
}

}  // namespace oriel::ir
