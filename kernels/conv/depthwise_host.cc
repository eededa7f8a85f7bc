// Depthwise convolutions on the host, see conv.h: each channel has weights of its own, so there is
// no product of matrices. Rows of the last dimension are added, one for each element of the kernel.
//
// f32 and bf16 are summed in f32, weights' gradients over rows and samples in f64.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/common/bfloat16.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/conv/conv.h"

namespace oriel::kernels {
namespace {

// Output positions of a dimension that an element of the kernel meets the input at.
struct Met {
  int64_t begin, end;
  Met(const ConvShape& s, int d, int64_t tap) {
    const int64_t start = tap * s.dilations[d] - s.lows[d];  // of the input, at output 0
    begin = start >= 0 ? 0 : (-start + s.strides[d] - 1) / s.strides[d];
    const int64_t last = s.input[d] - 1 - start;
    end = last < 0 ? 0 : std::min(s.output[d], last / s.strides[d] + 1);
  }
};

// Calls f(element of the kernel, input offset, output offset, how many) for the rows of a channel
// that meet: elements follow each other in the output, and are strides[2] apart in the input.
template <typename F>
void ForRows(const ConvShape& s, const F& f) {
  int64_t tap = 0;
  for (int64_t k0 = 0; k0 < s.kernel[0]; ++k0) {
    const Met planes(s, 0, k0);
    for (int64_t k1 = 0; k1 < s.kernel[1]; ++k1) {
      const Met rows(s, 1, k1);
      for (int64_t k2 = 0; k2 < s.kernel[2]; ++k2, ++tap) {
        const Met columns(s, 2, k2);
        if (columns.end <= columns.begin) continue;
        const int64_t x2 = columns.begin * s.strides[2] - s.lows[2] + k2 * s.dilations[2];
        for (int64_t o0 = planes.begin; o0 < planes.end; ++o0) {
          const int64_t x0 = o0 * s.strides[0] - s.lows[0] + k0 * s.dilations[0];
          for (int64_t o1 = rows.begin; o1 < rows.end; ++o1) {
            const int64_t x1 = o1 * s.strides[1] - s.lows[1] + k1 * s.dilations[1];
            f(tap, (x0 * s.input[1] + x1) * s.input[2] + x2,
              (o0 * s.output[1] + o1) * s.output[2] + columns.begin, columns.end - columns.begin);
          }
        }
      }
    }
  }
}

// y += w x
template <typename T>
void Add(T w, const T* x, int64_t x_stride, T* y, int64_t y_stride, int64_t count) {
  if (x_stride == 1 && y_stride == 1) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[i] += w * x[i];
  } else {
    for (int64_t i = 0; i < count; ++i) y[i * y_stride] += w * x[i * x_stride];
  }
}

template <typename T>
T Dot(const T* x, int64_t x_stride, const T* y, int64_t count) {
  T sum = 0;
  if (x_stride == 1) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i) sum += x[i] * y[i];
  } else {
    for (int64_t i = 0; i < count; ++i) sum += x[i * x_stride] * y[i];
  }
  return sum;
}

// The elements in what they are computed in; in `scratch`, if that is another type.
template <typename S>
const Compute<S>* Widened(const S* x, int64_t count, Compute<S>* scratch) {
  if constexpr (std::is_same_v<S, Compute<S>>) return x;
  for (int64_t i = 0; i < count; ++i) scratch[i] = static_cast<Compute<S>>(x[i]);
  return scratch;
}

// Calls f(sample * channels + channel, memory for an input's and an output's channel).
template <typename T, typename F>
void ForChannels(const ConvShape& s, int threads, int64_t channels, const F& f) {
  const int64_t inputs = ConvShape::Product(s.input), outputs = s.positions();
  ParallelFor(threads, channels, s.patch() * outputs, [&](int64_t begin, int64_t end) {
    T* memory = static_cast<T*>(ThreadScratch((inputs + outputs) * sizeof(T)));
    for (int64_t channel = begin; channel < end; ++channel) f(channel, memory, memory + inputs);
  });
}

template <typename S, typename R>
absl::StatusOr<KernelFn> MakeForward(const KernelSpec& spec) {
  using T = Compute<S>;
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[0],
                                                            spec.operands[1], spec.results[0]));
  ORIEL_RETURN_IF_ERROR(CheckDepthwise(spec, s));
  const bool has_bias = spec.operands.size() == 3;
  if (has_bias) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, spec.operands[0].dtype, {s.outputs}));
  }
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    const int64_t inputs = ConvShape::Product(s.input), outputs = s.positions();
    ForChannels<T>(s, threads, s.batch * s.channels, [&](int64_t at, T* input, T* sums) {
      const int64_t channel = at % s.channels;
      const T* x = Widened(args.operand<S>(0) + at * inputs, inputs, input);
      const S* w = args.operand<S>(1) + channel * s.patch();
      std::fill_n(sums, outputs, has_bias ? static_cast<T>(args.operand<S>(2)[channel]) : T(0));
      ForRows(s, [&](int64_t tap, int64_t from, int64_t to, int64_t count) {
        Add(static_cast<T>(w[tap]), x + from, s.strides[2], sums + to, 1, count);
      });
      R* y = args.result<R>(0) + at * outputs;
      for (int64_t i = 0; i < outputs; ++i) Assign(y + i, sums[i]);
    });
    return absl::OkStatus();
  });
}

template <typename S, typename R>
absl::StatusOr<KernelFn> MakeInputGrad(const KernelSpec& spec) {
  using T = Compute<S>;
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.results[0], spec.operands[1],
                                                            spec.operands[0]));
  ORIEL_RETURN_IF_ERROR(CheckDepthwise(spec, s));
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    const int64_t inputs = ConvShape::Product(s.input), outputs = s.positions();
    ForChannels<T>(s, threads, s.batch * s.channels, [&](int64_t at, T* sums, T* output) {
      const T* dy = Widened(args.operand<S>(0) + at * outputs, outputs, output);
      const S* w = args.operand<S>(1) + at % s.channels * s.patch();
      std::fill_n(sums, inputs, T(0));
      ForRows(s, [&](int64_t tap, int64_t to, int64_t from, int64_t count) {
        Add(static_cast<T>(w[tap]), dy + from, 1, sums + to, s.strides[2], count);
      });
      R* dx = args.result<R>(0) + at * inputs;
      for (int64_t i = 0; i < inputs; ++i) Assign(dx + i, sums[i]);
    });
    return absl::OkStatus();
  });
}

template <typename S, typename R>
absl::StatusOr<KernelFn> MakeWeightGrad(const KernelSpec& spec) {
  using T = Compute<S>;
  ORIEL_ASSIGN_OR_RETURN(const ConvShape s, ConvShape::Make(spec, spec.operands[1], spec.results[0],
                                                            spec.operands[0]));
  ORIEL_RETURN_IF_ERROR(CheckDepthwise(spec, s));
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    const int64_t inputs = ConvShape::Product(s.input), outputs = s.positions();
    ForChannels<T>(s, threads, s.channels, [&](int64_t channel, T* input, T* output) {
      std::vector<double> sums(s.patch(), 0);
      for (int64_t sample = 0; sample < s.batch; ++sample) {
        const int64_t at = sample * s.channels + channel;
        const T* dy = Widened(args.operand<S>(0) + at * outputs, outputs, output);
        const T* x = Widened(args.operand<S>(1) + at * inputs, inputs, input);
        ForRows(s, [&](int64_t tap, int64_t from, int64_t to, int64_t count) {
          sums[tap] += Dot(x + from, s.strides[2], dy + to, count);
        });
      }
      R* dw = args.result<R>(0) + channel * s.patch();
      for (int64_t i = 0; i < s.patch(); ++i) Assign(dw + i, static_cast<T>(sums[i]));
    });
    return absl::OkStatus();
  });
}

// The types of a launch: what of its operands' type, or f32, its result is.
template <KernelFactory kSingle, KernelFactory kDouble, KernelFactory kBF16, KernelFactory kWide,
          int kOperands, int kMaxOperands>
absl::StatusOr<KernelFn> ByTypes(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, kOperands, kMaxOperands, 1));
  const DType operands = spec.operands[0].dtype, result = spec.results[0].dtype;
  if (operands == DType::kF32) return kSingle(spec);
  if (operands == DType::kF64) return kDouble(spec);
  if (operands == DType::kBF16) return result == DType::kF32 ? kWide(spec) : kBF16(spec);
  return Unsupported(spec, "depthwise: takes f32, f64 and bf16");
}

constexpr KernelFactory kForward =
    ByTypes<MakeForward<float, float>, MakeForward<double, double>, MakeForward<BFloat16, BFloat16>,
            MakeForward<BFloat16, float>, 2, 3>;
constexpr KernelFactory kInputGrad =
    ByTypes<MakeInputGrad<float, float>, MakeInputGrad<double, double>,
            MakeInputGrad<BFloat16, BFloat16>, MakeInputGrad<BFloat16, float>, 2, 2>;
constexpr KernelFactory kWeightGrad =
    ByTypes<MakeWeightGrad<float, float>, MakeWeightGrad<double, double>,
            MakeWeightGrad<BFloat16, BFloat16>, MakeWeightGrad<BFloat16, float>, 2, 2>;
ORIEL_REGISTER_HOST_KERNEL("conv", 20, kForward);
ORIEL_REGISTER_HOST_KERNEL("conv_input_grad", 20, kInputGrad);
ORIEL_REGISTER_HOST_KERNEL("conv_weight_grad", 20, kWeightGrad);

}  // namespace
}  // namespace oriel::kernels
