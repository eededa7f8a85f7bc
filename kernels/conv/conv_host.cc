#include <algorithm>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "kernels/common/bfloat16.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/conv/conv.h"
#include "kernels/linear/gemm.h"

namespace oriel::kernels {
namespace {

// The patches of one sample and group, and behind them `sums` elements of T, in the calling
// thread's scratch memory.
template <typename S, typename T>
struct Scratch {
  S* patches;
  T* sums;
  Scratch(const ConvShape& s, int64_t sum_count) {
    const int64_t bytes =
        (s.positions() * s.patch() * static_cast<int64_t>(sizeof(S)) + 63) / 64 * 64;
    char* memory = static_cast<char*>(ThreadScratch<ScratchUse::kAroundProducts>(
        bytes + sum_count * static_cast<int64_t>(sizeof(T))));
    patches = reinterpret_cast<S*>(memory);
    sums = reinterpret_cast<T*>(memory + bytes);
  }
};

// Offsets of one sample and group in each tensor.
struct Place {
  int64_t input, weight, output;
  Place(const ConvShape& s, int64_t sample, int64_t group)
      : input((sample * s.channels + group * s.group_channels()) * ConvShape::Product(s.input)),
        weight(group * s.group_outputs() * s.patch()),
        output((sample * s.outputs + group * s.group_outputs()) * s.positions()) {}
};

// Operands of S and a result of R, which may be f32 for operands of bf16.
template <typename S, typename R, typename Gemm>
absl::StatusOr<KernelFn> MakeForwardTyped(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[0],
                                                            spec.operands[1], spec.results[0]));
  const bool has_bias = spec.operands.size() == 3;
  if (has_bias) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, spec.operands[0].dtype, {s.outputs}));
  }
  // A sum that the bias is added to before it is rounded waits in scratch memory.
  using T = Compute<R>;
  const bool rounds_later = has_bias && !std::is_same_v<R, T>;
  GemmShape product;
  product.m = s.group_outputs();
  product.n = s.positions();
  product.k = s.patch();
  product.transpose_b = true;
  product.factors = spec.operands[0].dtype;
  product.result = rounds_later ? DType::kF32 : spec.results[0].dtype;
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<Gemm> gemm, Gemm::Create(product, spec.num_threads));
  const int64_t sums = rounds_later ? product.m * product.n : 0;
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    const Scratch<S, T> scratch(s, sums);
    S* patches = scratch.patches;
    for (int64_t sample = 0; sample < s.batch; ++sample) {
      for (int64_t group = 0; group < s.group; ++group) {
        const Place at(s, sample, group);
        R* result = args.result<R>(0) + at.output;
        Unfold(s, args.operand<S>(0) + at.input, patches, threads);
        void* products = rounds_later ? static_cast<void*>(scratch.sums) : result;
        absl::Status status = gemm->Run(args.operand<S>(1) + at.weight, patches, nullptr, products);
        if (!status.ok()) return status;
        if (!has_bias) continue;
        const S* bias = args.operand<S>(2) + group * s.group_outputs();
        const T* sum = static_cast<const T*>(products);
        const int64_t n = s.positions();
        ParallelFor(threads, s.group_outputs(), n, [=](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const T added = bias[row];
#pragma omp simd
            for (int64_t i = row * n; i < (row + 1) * n; ++i) Assign(result + i, sum[i] + added);
          }
        });
      }
    }
    return absl::OkStatus();
  });
}

template <typename S, typename Gemm>
absl::StatusOr<KernelFn> MakeForward(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  ORIEL_RETURN_IF_ERROR(CheckConvTypes(spec));
  if (spec.results[0].dtype == spec.operands[0].dtype) return MakeForwardTyped<S, S, Gemm>(spec);
  return MakeForwardTyped<S, Compute<S>, Gemm>(spec);
}

// Patches overlap in the result, which therefore is of the type that sums are taken in.
template <typename S, typename Gemm>
absl::StatusOr<KernelFn> MakeInputGrad(const KernelSpec& spec) {
  using T = Compute<S>;
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  ORIEL_RETURN_IF_ERROR(CheckConvTypes(spec));
  if (spec.results[0].dtype == DType::kBF16) {
    return Unsupported(spec, "oneDNN: gives the gradient of a bf16 input in f32");
  }
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.results[0], spec.operands[1],
                                                            spec.operands[0]));
  GemmShape product;
  product.m = s.positions();
  product.n = s.patch();
  product.k = s.group_outputs();
  product.transpose_a = true;
  product.factors = spec.operands[0].dtype;
  product.result = spec.results[0].dtype;
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<Gemm> gemm, Gemm::Create(product, spec.num_threads));
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    T* patches = Scratch<T, T>(s, 0).patches;
    for (int64_t sample = 0; sample < s.batch; ++sample) {
      for (int64_t group = 0; group < s.group; ++group) {
        const Place at(s, sample, group);
        absl::Status status = gemm->Run(args.operand<S>(0) + at.output,
                                        args.operand<S>(1) + at.weight, nullptr, patches);
        if (!status.ok()) return status;
        Fold(s, patches, args.result<T>(0) + at.input, threads);
      }
    }
    return absl::OkStatus();
  });
}

// Accumulates over samples in the result, which therefore is of the type that sums are taken in.
template <typename S, typename Gemm>
absl::StatusOr<KernelFn> MakeWeightGrad(const KernelSpec& spec) {
  using T = Compute<S>;
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  ORIEL_RETURN_IF_ERROR(CheckConvTypes(spec));
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[1], spec.results[0],
                                                            spec.operands[0]));
  GemmShape product;
  product.m = s.group_outputs();
  product.n = s.patch();
  product.k = s.positions();
  product.factors = spec.operands[0].dtype;
  product.result = spec.results[0].dtype;
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<Gemm> first,
                         Gemm::Create(product, spec.num_threads));
  if (product.result == DType::kBF16) {
    return Unsupported(spec, "by samples: sums in bf16 are not accumulated");
  }
  product.accumulate = true;
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<Gemm> next, Gemm::Create(product, spec.num_threads));
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    S* patches = Scratch<S, T>(s, 0).patches;
    if (s.batch == 0) std::fill_n(args.result<T>(0), s.outputs * s.patch(), T(0));
    for (int64_t sample = 0; sample < s.batch; ++sample) {
      for (int64_t group = 0; group < s.group; ++group) {
        const Place at(s, sample, group);
        Unfold(s, args.operand<S>(1) + at.input, patches, threads);
        absl::Status status = (sample == 0 ? first : next)
                                  ->Run(args.operand<S>(0) + at.output, patches, nullptr,
                                        args.result<T>(0) + at.weight);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  });
}

using Single = LoopGemm<float>;
using Double = LoopGemm<double>;
constexpr KernelFactory kForward =
    ByOneDnn<MakeForward<float, OneDnnGemm>, MakeForward<BFloat16, OneDnnGemm>>;
constexpr KernelFactory kInputGrad =
    ByOneDnn<MakeInputGrad<float, OneDnnGemm>, MakeInputGrad<BFloat16, OneDnnGemm>>;
constexpr KernelFactory kWeightGrad =
    ByOneDnn<MakeWeightGrad<float, OneDnnGemm>, MakeWeightGrad<BFloat16, OneDnnGemm>>;
constexpr KernelFactory kForwardLoops =
    ByLoops<MakeForward<float, Single>, MakeForward<double, Double>>;
constexpr KernelFactory kInputGradLoops =
    ByLoops<MakeInputGrad<float, Single>, MakeInputGrad<double, Double>>;
constexpr KernelFactory kWeightGradLoops =
    ByLoops<MakeWeightGrad<float, Single>, MakeWeightGrad<double, Double>>;
ORIEL_REGISTER_HOST_KERNEL("conv", 10, kForward);
ORIEL_REGISTER_HOST_KERNEL("conv_input_grad", 10, kInputGrad);
ORIEL_REGISTER_HOST_KERNEL("conv_weight_grad", 10, kWeightGrad);
ORIEL_REGISTER_HOST_KERNEL("conv", 0, kForwardLoops);
ORIEL_REGISTER_HOST_KERNEL("conv_input_grad", 0, kInputGradLoops);
ORIEL_REGISTER_HOST_KERNEL("conv_weight_grad", 0, kWeightGradLoops);

}  // namespace
}  // namespace oriel::kernels
