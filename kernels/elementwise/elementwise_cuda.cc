// Elementwise kernels on a device; see elementwise.h.
#include "absl/strings/str_cat.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/elementwise_launch.h"

namespace oriel::kernels::cuda {
namespace {

template <UnaryOp kOp>
absl::StatusOr<KernelFn> MakeUnary(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  const TensorSpec& x = spec.operands[0];
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
  // What integers and booleans have.
  const bool whole = kOp <= UnaryOp::kSign && kOp != UnaryOp::kNot;
  const bool is_float = x.dtype != DType::kI64 && x.dtype != DType::kI32;
  if ((kOp == UnaryOp::kNot) != (x.dtype == DType::kBool) || (!whole && !is_float)) {
    return Unsupported(spec, absl::StrCat("not of ", x.ToString()));
  }
  constexpr bool kRare = kOp >= UnaryOp::kSin;
  ORIEL_ASSIGN_OR_RETURN(
      const Function function,
      FindTyped(spec, device, kRare ? "oriel_unary_rare" : "oriel_unary", {x.dtype}));
  const int64_t count = x.num_elements();
  const int64_t taken = kRare ? 1 : 16 / runtime::DTypeBytes(x.dtype);
  const Grid blocks = BlocksFor(device, count / taken, kElementwiseThreads);
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    if (count == 0) return absl::OkStatus();
    return function.Launch(blocks, {kElementwiseThreads}, StreamOf(args), kOp, args.operands[0],
                           args.results[0], count);
  });
}

// A loop over a result of `result`, whose largest elements have so many bytes.
struct Loop {
  BroadcastLaunch launch{};
  Grid blocks;
  bool empty;

  static absl::StatusOr<Loop> Make(const KernelSpec& spec, const Device& device,
                                   int64_t element_bytes) {
    std::vector<Shape> shapes;
    for (const TensorSpec& operand : spec.operands) shapes.push_back(operand.shape);
    ORIEL_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                           BroadcastPlan::Make(spec, shapes, spec.results[0].shape));
    Loop loop;
    BroadcastLaunch& launch = loop.launch;
    launch.dims = static_cast<int32_t>(plan.outer.size());
    int64_t vector = 16 / element_bytes;
    bool whole = plan.inner % vector == 0;
    for (size_t k = 0; k < spec.operands.size(); ++k) launch.varies[k] = plan.varies[k];
    for (size_t d = 0; d < plan.outer.size(); ++d) {
      launch.sizes[d] = Divisor::By(plan.outer[d]);
      for (size_t k = 0; k < spec.operands.size(); ++k) {
        launch.strides[d][k] = plan.strides[d][k];
        // What does not vary is loaded element by element.
        whole = whole && (!plan.varies[k] || plan.strides[d][k] % vector == 0);
      }
    }
    if (!whole) vector = 1;
    launch.vector = static_cast<int32_t>(vector);
    launch.pieces = Divisor::By(plan.inner / vector);
    launch.count = plan.rows * launch.pieces.size;
    launch.small = spec.results[0].num_elements() < kSmallIndices;
    loop.empty = launch.count == 0;
    loop.blocks = BlocksFor(device, launch.count, kElementwiseThreads);
    return loop;
  }
};

template <BinaryOp kOp>
absl::StatusOr<KernelFn> MakeBinary(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  const DType dtype = spec.operands[0].dtype;
  if (spec.operands[1].dtype != dtype) return Malformed(spec, "operands differ in type");
  const bool predicate = kOp >= BinaryOp::kEqual;
  ORIEL_RETURN_IF_ERROR(
      CheckResult(spec, 0, predicate ? DType::kBool : dtype, spec.results[0].shape));
  if (kOp >= BinaryOp::kAnd && dtype != DType::kBool) return Unsupported(spec, "takes bool");
  const char* stem = predicate               ? "oriel_compare"
                     : kOp >= BinaryOp::kMod ? "oriel_power"
                                             : "oriel_arithmetic";
  ORIEL_ASSIGN_OR_RETURN(const Function function, FindTyped(spec, device, stem, {dtype}));
  ORIEL_ASSIGN_OR_RETURN(const Loop loop, Loop::Make(spec, device, runtime::DTypeBytes(dtype)));
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    if (loop.empty) return absl::OkStatus();
    return function.Launch(loop.blocks, {kElementwiseThreads}, StreamOf(args), kOp, loop.launch,
                           args.operands[0], args.operands[1], args.results[0]);
  });
}

// Quotients and rests: a zero divisor of integers is looked for first.
template <BinaryOp kOp>
absl::StatusOr<KernelFn> MakeDivision(const KernelSpec& spec, Device& device) {
  ORIEL_ASSIGN_OR_RETURN(KernelFn divide, MakeBinary<kOp>(spec, device));
  const TensorSpec& divisor = spec.operands[1];
  if (divisor.dtype != DType::kI64 && divisor.dtype != DType::kI32) return divide;
  ORIEL_ASSIGN_OR_RETURN(const Function find,
                         FindTyped(spec, device, "oriel_find_zero", {divisor.dtype}));
  const int64_t count = divisor.num_elements();
  const int32_t launch =
      device.NextLaunch(spec.kernel + ": element {value} of the integer divisor is zero");
  const Grid blocks = BlocksFor(device, count, kElementwiseThreads);
  return KernelFn([=, divide = std::move(divide),
                   fault = device.fault()](const KernelArgs& args) -> absl::Status {
    if (count > 0) {
      ORIEL_RETURN_IF_ERROR(find.Launch(blocks, {kElementwiseThreads}, StreamOf(args),
                                        args.operands[1], count, fault, launch));
    }
    return divide(args);
  });
}

absl::StatusOr<KernelFn> MakeSelect(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 1));
  const DType dtype = spec.operands[1].dtype;
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 0, DType::kBool, spec.operands[0].shape));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, dtype, spec.operands[2].shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, dtype, spec.results[0].shape));
  const int64_t bytes = runtime::DTypeBytes(dtype);
  ORIEL_ASSIGN_OR_RETURN(const Function function,
                         device.Find(absl::StrCat("oriel_select_", bytes)));
  ORIEL_ASSIGN_OR_RETURN(const Loop loop, Loop::Make(spec, device, bytes));
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    if (loop.empty) return absl::OkStatus();
    return function.Launch(loop.blocks, {kElementwiseThreads}, StreamOf(args), loop.launch,
                           args.operands[0], args.operands[1], args.operands[2], args.results[0]);
  });
}

absl::StatusOr<KernelFn> MakeCast(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  const TensorSpec& x = spec.operands[0];
  const DType to = spec.results[0].dtype;
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, to, x.shape));
  ORIEL_ASSIGN_OR_RETURN(const Function function, FindTyped(spec, device, "oriel_cast", {x.dtype}));
  static_assert(static_cast<int>(CastTo::kBool) == static_cast<int>(DType::kBool));
  const CastTo target = static_cast<CastTo>(to);
  const int64_t count = x.num_elements();
  const int64_t bytes = std::max(runtime::DTypeBytes(x.dtype), runtime::DTypeBytes(to));
  const Grid blocks = BlocksFor(device, count * bytes / 16, kElementwiseThreads);
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    if (count == 0) return absl::OkStatus();
    return function.Launch(blocks, {kElementwiseThreads}, StreamOf(args), target, args.operands[0],
                           args.results[0], count);
  });
}

ORIEL_REGISTER_CUDA_KERNEL("neg", 0, MakeUnary<UnaryOp::kNeg>);
ORIEL_REGISTER_CUDA_KERNEL("abs", 0, MakeUnary<UnaryOp::kAbs>);
ORIEL_REGISTER_CUDA_KERNEL("exp", 0, MakeUnary<UnaryOp::kExp>);
ORIEL_REGISTER_CUDA_KERNEL("log", 0, MakeUnary<UnaryOp::kLog>);
ORIEL_REGISTER_CUDA_KERNEL("sqrt", 0, MakeUnary<UnaryOp::kSqrt>);
ORIEL_REGISTER_CUDA_KERNEL("rsqrt", 0, MakeUnary<UnaryOp::kRsqrt>);
ORIEL_REGISTER_CUDA_KERNEL("reciprocal", 0, MakeUnary<UnaryOp::kReciprocal>);
ORIEL_REGISTER_CUDA_KERNEL("sin", 0, MakeUnary<UnaryOp::kSin>);
ORIEL_REGISTER_CUDA_KERNEL("cos", 0, MakeUnary<UnaryOp::kCos>);
ORIEL_REGISTER_CUDA_KERNEL("tan", 0, MakeUnary<UnaryOp::kTan>);
ORIEL_REGISTER_CUDA_KERNEL("asin", 0, MakeUnary<UnaryOp::kAsin>);
ORIEL_REGISTER_CUDA_KERNEL("acos", 0, MakeUnary<UnaryOp::kAcos>);
ORIEL_REGISTER_CUDA_KERNEL("atan", 0, MakeUnary<UnaryOp::kAtan>);
ORIEL_REGISTER_CUDA_KERNEL("sinh", 0, MakeUnary<UnaryOp::kSinh>);
ORIEL_REGISTER_CUDA_KERNEL("cosh", 0, MakeUnary<UnaryOp::kCosh>);
ORIEL_REGISTER_CUDA_KERNEL("asinh", 0, MakeUnary<UnaryOp::kAsinh>);
ORIEL_REGISTER_CUDA_KERNEL("acosh", 0, MakeUnary<UnaryOp::kAcosh>);
ORIEL_REGISTER_CUDA_KERNEL("atanh", 0, MakeUnary<UnaryOp::kAtanh>);
ORIEL_REGISTER_CUDA_KERNEL("tanh", 0, MakeUnary<UnaryOp::kTanh>);
ORIEL_REGISTER_CUDA_KERNEL("sigmoid", 0, MakeUnary<UnaryOp::kSigmoid>);
ORIEL_REGISTER_CUDA_KERNEL("erf", 0, MakeUnary<UnaryOp::kErf>);
ORIEL_REGISTER_CUDA_KERNEL("relu", 0, MakeUnary<UnaryOp::kRelu>);
ORIEL_REGISTER_CUDA_KERNEL("sign", 0, MakeUnary<UnaryOp::kSign>);
ORIEL_REGISTER_CUDA_KERNEL("floor", 0, MakeUnary<UnaryOp::kFloor>);
ORIEL_REGISTER_CUDA_KERNEL("ceil", 0, MakeUnary<UnaryOp::kCeil>);
ORIEL_REGISTER_CUDA_KERNEL("round", 0, MakeUnary<UnaryOp::kRound>);
ORIEL_REGISTER_CUDA_KERNEL("not", 0, MakeUnary<UnaryOp::kNot>);
ORIEL_REGISTER_CUDA_KERNEL("add", 0, MakeBinary<BinaryOp::kAdd>);
ORIEL_REGISTER_CUDA_KERNEL("sub", 0, MakeBinary<BinaryOp::kSub>);
ORIEL_REGISTER_CUDA_KERNEL("mul", 0, MakeBinary<BinaryOp::kMul>);
ORIEL_REGISTER_CUDA_KERNEL("pow", 0, MakeBinary<BinaryOp::kPow>);
ORIEL_REGISTER_CUDA_KERNEL("max", 0, MakeBinary<BinaryOp::kMax>);
ORIEL_REGISTER_CUDA_KERNEL("min", 0, MakeBinary<BinaryOp::kMin>);
ORIEL_REGISTER_CUDA_KERNEL("equal", 0, MakeBinary<BinaryOp::kEqual>);
ORIEL_REGISTER_CUDA_KERNEL("less", 0, MakeBinary<BinaryOp::kLess>);
ORIEL_REGISTER_CUDA_KERNEL("less_equal", 0, MakeBinary<BinaryOp::kLessEqual>);
ORIEL_REGISTER_CUDA_KERNEL("greater", 0, MakeBinary<BinaryOp::kGreater>);
ORIEL_REGISTER_CUDA_KERNEL("greater_equal", 0, MakeBinary<BinaryOp::kGreaterEqual>);
ORIEL_REGISTER_CUDA_KERNEL("and", 0, MakeBinary<BinaryOp::kAnd>);
ORIEL_REGISTER_CUDA_KERNEL("or", 0, MakeBinary<BinaryOp::kOr>);
ORIEL_REGISTER_CUDA_KERNEL("xor", 0, MakeBinary<BinaryOp::kXor>);
ORIEL_REGISTER_CUDA_KERNEL("div", 0, MakeDivision<BinaryOp::kDiv>);
ORIEL_REGISTER_CUDA_KERNEL("mod", 0, MakeDivision<BinaryOp::kMod>);
ORIEL_REGISTER_CUDA_KERNEL("select", 0, MakeSelect);
ORIEL_REGISTER_CUDA_KERNEL("cast", 0, MakeCast);

}  // namespace
}  // namespace oriel::kernels::cuda
