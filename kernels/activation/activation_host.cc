#include "kernels/activation/activation.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"

namespace oriel::kernels {
namespace {

// Of one element, in the unit of parallel.h.
constexpr int64_t kWork = 8;

// Every launch is a loop over elements of operands and results that agree in type and shape.
absl::Status CheckAlike(const KernelSpec& spec, size_t operands, size_t results) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, operands, results));
  const TensorSpec& first = spec.operands[0];
  for (size_t i = 1; i < operands; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, first.dtype, first.shape));
  }
  for (size_t i = 0; i < results; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, i, first.dtype, first.shape));
  }
  return absl::OkStatus();
}

template <typename F>
struct Activation {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    return KernelFn([count = spec.results[0].num_elements(),
                     threads = spec.num_threads](const KernelArgs& args) {
      const S* x = args.operand<S>(0);
      S* y = args.result<S>(0);
      ParallelForElements(threads, count, kWork, [=](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i)
          Assign(y + i, F::Value(static_cast<Compute<S>>(x[i])));
      });
      return absl::OkStatus();
    });
  }
};

template <typename F>
struct ActivationGrad {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    return KernelFn([count = spec.results[0].num_elements(),
                     threads = spec.num_threads](const KernelArgs& args) {
      const S* dy = args.operand<S>(0);
      const S* x = args.operand<S>(1);
      S* dx = args.result<S>(0);
      ParallelForElements(threads, count, kWork, [=](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          Assign(dx + i, dy[i] * F::Both(static_cast<Compute<S>>(x[i])).slope);
        }
      });
      return absl::OkStatus();
    });
  }
};

template <typename F>
struct GatedActivation {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    return KernelFn([count = spec.results[0].num_elements(),
                     threads = spec.num_threads](const KernelArgs& args) {
      const S* gate = args.operand<S>(0);
      const S* up = args.operand<S>(1);
      S* y = args.result<S>(0);
      ParallelForElements(threads, count, kWork, [=](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          Assign(y + i, F::Value(static_cast<Compute<S>>(gate[i])) * up[i]);
        }
      });
      return absl::OkStatus();
    });
  }
};

template <typename F>
struct GatedActivationGrad {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using T = Compute<S>;
    return KernelFn([count = spec.results[0].num_elements(),
                     threads = spec.num_threads](const KernelArgs& args) {
      const S* dy = args.operand<S>(0);
      const S* gate = args.operand<S>(1);
      const S* up = args.operand<S>(2);
      S* gate_grad = args.result<S>(0);
      S* up_grad = args.result<S>(1);
      ParallelForElements(threads, count, kWork, [=](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) {
          const T cotangent = dy[i];
          const ValueAndSlope<T> f = F::Both(static_cast<T>(gate[i]));
          Assign(gate_grad + i, cotangent * up[i] * f.slope);
          Assign(up_grad + i, cotangent * f.value);
        }
      });
      return absl::OkStatus();
    });
  }
};

template <template <typename> class Launch, size_t kOperands, size_t kResults>
absl::StatusOr<KernelFn> MakeKind(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckAlike(spec, kOperands, kResults));
  ORIEL_ASSIGN_OR_RETURN(const std::string kind, spec.String("kind"));
  const DType dtype = spec.operands[0].dtype;
  if (kind == "gelu") return DispatchStored<Launch<Gelu>>(spec, dtype);
  if (kind == "gelu_tanh") return DispatchStored<Launch<GeluTanh>>(spec, dtype);
  if (kind == "gelu_quick") return DispatchStored<Launch<GeluQuick>>(spec, dtype);
  if (kind == "silu") return DispatchStored<Launch<Silu>>(spec, dtype);
  return Malformed(spec, "unknown kind '" + kind + "'");
}

constexpr KernelFactory kActivation = MakeKind<Activation, 1, 1>;
constexpr KernelFactory kActivationGrad = MakeKind<ActivationGrad, 2, 1>;
constexpr KernelFactory kGatedActivation = MakeKind<GatedActivation, 2, 1>;
constexpr KernelFactory kGatedActivationGrad = MakeKind<GatedActivationGrad, 3, 2>;
ORIEL_REGISTER_HOST_KERNEL("activation", 0, kActivation);
ORIEL_REGISTER_HOST_KERNEL("activation_grad", 0, kActivationGrad);
ORIEL_REGISTER_HOST_KERNEL("gated_activation", 0, kGatedActivation);
ORIEL_REGISTER_HOST_KERNEL("gated_activation_grad", 0, kGatedActivationGrad);

}  // namespace
}  // namespace oriel::kernels
