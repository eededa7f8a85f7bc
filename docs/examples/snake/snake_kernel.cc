// Host kernels of snake, for `oriel-run --load-plugin`. Names are those of the ops.
//
//   acme.snake(x [.., C], α [C]) → y [.., C]              y = x + sin²(αx)/α; y may be x's buffer
//   acme.snake_grad(dy [.., C], x [.., C], α [C]) → dx [.., C], dα [C]
//
// f32 and f64; results are assigned. dα is summed in f64 over the rows in their order, whatever the
// number of threads.
#include <cmath>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/plugin.h"

namespace {

using oriel::kernels::KernelArgs;
using oriel::kernels::KernelFn;
using oriel::kernels::KernelSpec;
using oriel::kernels::ParallelFor;

constexpr int64_t kWork = 200;  // a sine, in units of parallel.h

// Operand `index` has the input's shape [.., C], the last one is α [C].
absl::Status CheckShapes(const KernelSpec& spec, size_t operands, size_t results) {
  ORIEL_RETURN_IF_ERROR(oriel::kernels::CheckArity(spec, operands, results));
  const oriel::kernels::TensorSpec& x = spec.operands[0];
  if (x.shape.empty()) return oriel::kernels::Malformed(spec, "expects channels");
  for (size_t i = 1; i + 1 < operands; ++i) {
    ORIEL_RETURN_IF_ERROR(oriel::kernels::CheckOperand(spec, i, x.dtype, x.shape));
  }
  ORIEL_RETURN_IF_ERROR(
      oriel::kernels::CheckOperand(spec, operands - 1, x.dtype, {x.shape.back()}));
  return oriel::kernels::CheckResult(spec, 0, x.dtype, x.shape);
}

struct Snake {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    const int64_t channels = spec.operands[0].shape.back();
    const int64_t rows = channels == 0 ? 0 : spec.operands[0].num_elements() / channels;
    return KernelFn([=, threads = spec.num_threads](const KernelArgs& args) {
      const T* x = args.operand<T>(0);
      const T* alpha = args.operand<T>(1);
      T* y = args.result<T>(0);
      ParallelFor(threads, rows, channels * kWork, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin * channels; i < end * channels; ++i) {
          const T a = alpha[i % channels];
          const T sine = std::sin(a * x[i]);
          y[i] = a == 0 ? x[i] : x[i] + sine * sine / a;
        }
      });
      return absl::OkStatus();
    });
  }
};

struct SnakeGrad {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    ORIEL_RETURN_IF_ERROR(
        oriel::kernels::CheckResult(spec, 1, spec.operands[2].dtype, spec.operands[2].shape));
    const int64_t channels = spec.operands[1].shape.back();
    const int64_t rows = channels == 0 ? 0 : spec.operands[1].num_elements() / channels;
    return KernelFn([=, threads = spec.num_threads](const KernelArgs& args) {
      const T* dy = args.operand<T>(0);
      const T* x = args.operand<T>(1);
      const T* alpha = args.operand<T>(2);
      T* dx = args.result<T>(0);
      T* dalpha = args.result<T>(1);
      ParallelFor(threads, channels, rows * 2 * kWork, [=](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
          const T a = alpha[c];
          double sum = 0;
          for (int64_t i = c; i < rows * channels; i += channels) {
            const T sine = std::sin(a * x[i]);
            const T twice = 2 * sine * std::cos(a * x[i]);  // sin(2αx)
            dx[i] = dy[i] * (1 + twice);
            sum += dy[i] * (a == 0 ? x[i] * x[i] : (x[i] * twice - sine * sine / a) / a);
          }
          dalpha[c] = static_cast<T>(sum);
        }
      });
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeSnake(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckShapes(spec, 2, 1));
  return oriel::kernels::DispatchFloat<Snake>(spec, spec.operands[0].dtype);
}

absl::StatusOr<KernelFn> MakeSnakeGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckShapes(spec, 3, 2));
  return oriel::kernels::DispatchFloat<SnakeGrad>(spec, spec.operands[0].dtype);
}

}  // namespace

ORIEL_KERNEL_PLUGIN(registry) {
  registry.Register("acme.snake", 0, MakeSnake);
  registry.Register("acme.snake_grad", 0, MakeSnakeGrad);
}
