// cast; see elementwise.h.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/elementwise.h"
#include "runtime/base/float16.h"

namespace oriel::kernels {
namespace {

// The C++ type behind each DType: what is stored, and what it is computed as.
struct Boolean {
  using Stored = uint8_t;
  static uint8_t Load(uint8_t x) { return x != 0; }
};
template <typename T>
struct Plain {
  using Stored = T;
  static T Load(T x) { return x; }
  template <typename X>
  static T From(X x) {
    if constexpr (std::is_integral_v<T> && std::is_floating_point_v<X>) {
      // Both limits as floats that T can hold: the upper one may have rounded up.
      constexpr X kLow = static_cast<X>(std::numeric_limits<T>::min());
      constexpr X kHigh = static_cast<X>(std::numeric_limits<T>::max());
      if (x != x) return 0;
      if (x <= kLow) return std::numeric_limits<T>::min();
      if (x >= kHigh) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(x);
  }
};
struct Half {
  using Stored = uint16_t;
  static float Load(uint16_t x) { return runtime::HalfToFloat(x); }
  template <typename X>
  static uint16_t From(X x) {
    return runtime::FloatToHalf(static_cast<float>(x));
  }
};
struct BFloat {
  using Stored = uint16_t;
  static float Load(uint16_t x) { return runtime::BFloat16ToFloat(x); }
  template <typename X>
  static uint16_t From(X x) {
    return runtime::FloatToBFloat16(static_cast<float>(x));
  }
};
struct ToBoolean {
  using Stored = uint8_t;
  template <typename X>
  static uint8_t From(X x) {
    return x != 0;
  }
};

template <typename Source, typename Target>
absl::StatusOr<KernelFn> MakeCastPair(const KernelSpec& spec) {
  const int64_t count = spec.results[0].num_elements();
  const int threads = spec.num_threads;
  return KernelFn([count, threads](const KernelArgs& args) {
    const auto* x = args.operand<typename Source::Stored>(0);
    auto* y = args.result<typename Target::Stored>(0);
    ParallelForElements(threads, count, 1, [x, y](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) y[i] = Target::From(Source::Load(x[i]));
    });
    return absl::OkStatus();
  });
}

template <typename Source>
absl::StatusOr<KernelFn> MakeCastFrom(const KernelSpec& spec) {
  switch (spec.results[0].dtype) {
    case DType::kF32:
      return MakeCastPair<Source, Plain<float>>(spec);
    case DType::kF64:
      return MakeCastPair<Source, Plain<double>>(spec);
    case DType::kF16:
      return MakeCastPair<Source, Half>(spec);
    case DType::kBF16:
      return MakeCastPair<Source, BFloat>(spec);
    case DType::kI64:
      return MakeCastPair<Source, Plain<int64_t>>(spec);
    case DType::kI32:
      return MakeCastPair<Source, Plain<int32_t>>(spec);
    case DType::kI8:
      return MakeCastPair<Source, Plain<int8_t>>(spec);
    case DType::kU8:
      return MakeCastPair<Source, Plain<uint8_t>>(spec);
    case DType::kBool:
      return MakeCastPair<Source, ToBoolean>(spec);
    case DType::kI16:
      break;
  }
  return Malformed(spec, "unknown result type");
}

absl::StatusOr<KernelFn> MakeCast(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, spec.results[0].dtype, spec.operands[0].shape));
  switch (spec.operands[0].dtype) {
    case DType::kF32:
      return MakeCastFrom<Plain<float>>(spec);
    case DType::kF64:
      return MakeCastFrom<Plain<double>>(spec);
    case DType::kF16:
      return MakeCastFrom<Half>(spec);
    case DType::kBF16:
      return MakeCastFrom<BFloat>(spec);
    case DType::kI64:
      return MakeCastFrom<Plain<int64_t>>(spec);
    case DType::kI32:
      return MakeCastFrom<Plain<int32_t>>(spec);
    case DType::kI8:
      return MakeCastFrom<Plain<int8_t>>(spec);
    case DType::kU8:
      return MakeCastFrom<Plain<uint8_t>>(spec);
    case DType::kBool:
      return MakeCastFrom<Boolean>(spec);
    case DType::kI16:
      break;
  }
  return Malformed(spec, "unknown operand type");
}

ORIEL_REGISTER_HOST_KERNEL("cast", 0, MakeCast);

}  // namespace
}  // namespace oriel::kernels
