// Launches of layer_norm.cu and layer_norm_grad.cu.
#include "kernels/cuda/factory.h"
#include "kernels/cuda/registry.h"
#include "kernels/cuda/rows.h"
#include "kernels/normalization/norm_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

struct Norm {
  DType dtype, small;  // of the tensors; of weights and statistics
  Shape outer;         // the input's shape less the last dimension
  int64_t rows, n;
  double epsilon = 0, offset = 0;

  template <typename T>
  NormArgs<T> Args() const {
    return {rows, n, static_cast<T>(epsilon), static_cast<T>(offset)};
  }
  // What is loaded at once: 16 bytes, or, where rows are not whole packs of these, an element.
  int64_t packs() const {
    const int64_t pack = 16 / runtime::DTypeBytes(dtype);
    return n % pack == 0 ? n / pack : n;
  }
};

absl::StatusOr<Norm> NormOf(const KernelSpec& spec, size_t operand) {
  const TensorSpec& x = spec.operands[operand];
  if (x.rank() < 1) return Malformed(spec, "the input has rank 0");
  const Shape outer(x.shape.begin(), x.shape.end() - 1);
  return Norm{x.dtype, ComputeDType(x.dtype), outer, runtime::NumElements(outer), x.shape.back()};
}

// Of threads that hold `held` packs each, as many on a row as hold it, but eight at least where it
// has so many packs; and rows for a block of `block` threads, if one row does not have more. Blocks
// are as many as have 512 threads on a multiprocessor, `times` over, with `least_rows` rows each.
RowGrid GridFor(const Device& device, const Norm& norm, int64_t held, int64_t block, int64_t times,
                int64_t least_rows) {
  constexpr int64_t kWarp = 32, kLeast = 8, kResident = 512;
  const int64_t packs = norm.packs();
  const int64_t wanted = std::max((packs + held - 1) / held, std::min(packs, kLeast));
  int64_t x = 1;
  while (x < wanted && x < kWarp) x *= 2;
  if (wanted > kWarp) x = std::min<int64_t>((wanted + kWarp - 1) / kWarp * kWarp, kMaxNormThreads);
  const int64_t y = std::max<int64_t>(1, block / x);
  const int64_t resident = std::max<int64_t>(1, device.properties().multiprocessors) *
                           std::max<int64_t>(1, kResident / (x * y));
  const int64_t rows = std::max(least_rows, y);
  const int64_t blocks = std::clamp<int64_t>((norm.rows + rows - 1) / rows, 1, resident * times);
  return {{static_cast<unsigned>(blocks)}, {static_cast<unsigned>(x), static_cast<unsigned>(y)}};
}

// Launches a function whose first parameter is NormArgs of the computing type.
template <typename... Args>
absl::Status LaunchNorm(const Function& function, const RowGrid& grid, const KernelArgs& args,
                        const Norm& norm, const Args&... rest) {
  if (norm.small == DType::kF64) {
    return function.Launch(grid.blocks, grid.threads, StreamOf(args), norm.Args<double>(), rest...);
  }
  return function.Launch(grid.blocks, grid.threads, StreamOf(args), norm.Args<float>(), rest...);
}

// Of a norm that adds first: operand 1 and the last result.
absl::Status CheckSum(const KernelSpec& spec) {
  const TensorSpec& x = spec.operands[0];
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, x.dtype, x.shape));
  return CheckResult(spec, spec.results.size() - 1, x.dtype, x.shape);
}

template <bool kAdds>
absl::StatusOr<KernelFn> MakeLayerNorm(const KernelSpec& spec, Device& device) {
  constexpr size_t kWeight = kAdds ? 2 : 1, kBias = kWeight + 1;
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, kWeight + 1, kBias + 1, kAdds ? 4 : 3));
  ORIEL_ASSIGN_OR_RETURN(Norm norm, NormOf(spec, 0));
  ORIEL_ASSIGN_OR_RETURN(norm.epsilon, spec.Float("epsilon"));
  if (kAdds) ORIEL_RETURN_IF_ERROR(CheckSum(spec));
  for (size_t i = kWeight; i < spec.operands.size(); ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, norm.small, {norm.n}));
  }
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, norm.dtype, spec.operands[0].shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, norm.small, norm.outer));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 2, norm.small, norm.outer));
  const char* stem = kAdds ? "oriel_add_layer_norm" : "oriel_layer_norm";
  ORIEL_ASSIGN_OR_RETURN(const Function function, FindTyped(spec, device, stem, {norm.dtype}));
  const bool has_bias = spec.operands.size() > kBias;
  const RowGrid grid =
      GridFor(device, norm, kNormPacks, /*block=*/64, /*times=*/4, /*least_rows=*/1);
  return KernelFn([=](const KernelArgs& args) {
    if (norm.rows == 0) return absl::OkStatus();
    const void* weight = args.operands[kWeight];
    const void* bias = has_bias ? args.operands[kBias] : nullptr;
    if constexpr (kAdds) {
      return LaunchNorm(function, grid, args, norm, args.operands[0], args.operands[1], weight,
                        bias, args.results[0], args.results[1], args.results[2], args.results[3]);
    } else {
      return LaunchNorm(function, grid, args, norm, args.operands[0], weight, bias, args.results[0],
                        args.results[1], args.results[2]);
    }
  });
}

template <bool kAdds>
absl::StatusOr<KernelFn> MakeRmsNorm(const KernelSpec& spec, Device& device) {
  constexpr size_t kWeight = kAdds ? 2 : 1;
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, kWeight + 1, kAdds ? 3 : 2));
  ORIEL_ASSIGN_OR_RETURN(Norm norm, NormOf(spec, 0));
  ORIEL_ASSIGN_OR_RETURN(norm.epsilon, spec.Float("epsilon"));
  ORIEL_ASSIGN_OR_RETURN(norm.offset, FloatOr(spec, "weight_offset", 0));
  if (kAdds) ORIEL_RETURN_IF_ERROR(CheckSum(spec));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, kWeight, norm.small, {norm.n}));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, norm.dtype, spec.operands[0].shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, norm.small, norm.outer));
  const char* stem = kAdds ? "oriel_add_rms_norm" : "oriel_rms_norm";
  ORIEL_ASSIGN_OR_RETURN(const Function function, FindTyped(spec, device, stem, {norm.dtype}));
  const RowGrid grid =
      GridFor(device, norm, kNormPacks, /*block=*/64, /*times=*/4, /*least_rows=*/1);
  return KernelFn([=](const KernelArgs& args) {
    if (norm.rows == 0) return absl::OkStatus();
    const void* weight = args.operands[kWeight];
    if constexpr (kAdds) {
      return LaunchNorm(function, grid, args, norm, args.operands[0], args.operands[1], weight,
                        args.results[0], args.results[1], args.results[2]);
    } else {
      return LaunchNorm(function, grid, args, norm, args.operands[0], weight, args.results[0],
                        args.results[1]);
    }
  });
}

// Of both: dy, x, weight and, with `centred`, mean; then the scale and, if there is one, the
// addend.
absl::StatusOr<KernelFn> MakeGrad(const KernelSpec& spec, Device& device, Norm norm, bool centred) {
  const TensorSpec& x = spec.operands[1];
  const size_t vectors = centred ? 2 : 1, statistics = 3 + vectors;
  const bool adds = spec.operands.size() > statistics;
  if (adds) ORIEL_RETURN_IF_ERROR(CheckOperand(spec, statistics, x.dtype, x.shape));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 0, x.dtype, x.shape));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, norm.small, {norm.n}));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
  for (size_t i = 0; i < vectors; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 3 + i, norm.small, norm.outer));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1 + i, norm.small, {norm.n}));
  }
  std::string stem = centred ? "oriel_layer_norm_grad" : "oriel_rms_norm_grad";
  if (norm.packs() > kGradPacks * kMaxNormThreads) stem += "_long";
  ORIEL_ASSIGN_OR_RETURN(const Function function, FindTyped(spec, device, stem, {x.dtype}));
  ORIEL_ASSIGN_OR_RETURN(const Function finish,
                         FindTyped(spec, device, "oriel_column_sums", {norm.small}));
  // With four rows for each block, columns' sums are a small part of what is read and written.
  const RowGrid grid =
      GridFor(device, norm, kGradPacks, /*block=*/256, /*times=*/1, /*least_rows=*/4);
  const int64_t columns = static_cast<int64_t>(vectors) * norm.n;
  ORIEL_RETURN_IF_ERROR(
      device.AddScratch(grid.blocks.x * columns * runtime::DTypeBytes(norm.small)));
  return KernelFn([=, &device](const KernelArgs& args) {
    const CUdeviceptr partial = device.scratch();
    const void* addend = adds ? args.operands[statistics] : nullptr;
    if (norm.rows > 0) {
      if (centred) {
        ORIEL_RETURN_IF_ERROR(LaunchNorm(function, grid, args, norm, args.operands[0],
                                         args.operands[1], args.operands[2], args.operands[3],
                                         args.operands[4], addend, args.results[0], partial));
      } else {
        ORIEL_RETURN_IF_ERROR(LaunchNorm(function, grid, args, norm, args.operands[0],
                                         args.operands[1], args.operands[2], args.operands[3],
                                         addend, args.results[0], partial));
      }
    }
    if (norm.n == 0) return absl::OkStatus();
    void* second = centred ? args.results[2] : nullptr;
    const int64_t summed = norm.rows > 0 ? grid.blocks.x : 0;
    const unsigned blocks = static_cast<unsigned>((columns + 31) / 32);
    const unsigned y = static_cast<unsigned>(std::clamp<int64_t>(summed, 1, 32));
    return finish.Launch({blocks}, {32, y}, StreamOf(args), partial, summed, columns, norm.n,
                         args.results[1], second);
  });
}

absl::StatusOr<KernelFn> MakeLayerNormGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 5, 6, 3));
  ORIEL_ASSIGN_OR_RETURN(const Norm norm, NormOf(spec, 1));
  return MakeGrad(spec, device, norm, /*centred=*/true);
}

absl::StatusOr<KernelFn> MakeRmsNormGrad(const KernelSpec& spec, Device& device) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 4, 5, 2));
  ORIEL_ASSIGN_OR_RETURN(Norm norm, NormOf(spec, 1));
  ORIEL_ASSIGN_OR_RETURN(norm.offset, FloatOr(spec, "weight_offset", 0));
  return MakeGrad(spec, device, norm, /*centred=*/false);
}

ORIEL_REGISTER_CUDA_KERNEL("add_layer_norm", 0, MakeLayerNorm<true>);
ORIEL_REGISTER_CUDA_KERNEL("add_rms_norm", 0, MakeRmsNorm<true>);
ORIEL_REGISTER_CUDA_KERNEL("layer_norm", 0, MakeLayerNorm<false>);
ORIEL_REGISTER_CUDA_KERNEL("layer_norm_grad", 0, MakeLayerNormGrad);
ORIEL_REGISTER_CUDA_KERNEL("rms_norm", 0, MakeRmsNorm<false>);
ORIEL_REGISTER_CUDA_KERNEL("rms_norm_grad", 0, MakeRmsNormGrad);

}  // namespace
}  // namespace oriel::kernels::cuda
