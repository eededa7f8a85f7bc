// cast, see elementwise.h: oriel_cast_<from>, to any type.
#include "kernels/elementwise/broadcast.cuh"

namespace oriel::kernels::cuda {
namespace {

// The smallest number of an integer type; its bits, flipped, are the largest.
template <typename T>
__device__ constexpr T Lowest() {
  return std::is_unsigned_v<T> ? T(0) : static_cast<T>(uint64_t{1} << (8 * sizeof(T) - 1));
}

// How each type is stored, and converted from and to what it is computed as.
template <typename T>
struct Plain {
  using Stored = T;
  static __device__ T Load(T x) { return x; }
  template <typename X>
  static __device__ T From(X x) {
    if constexpr (std::is_integral_v<T> && std::is_floating_point_v<X>) {
      // Both limits as floats that T can hold: the upper one may have rounded up.
      constexpr T kMin = Lowest<T>(), kMax = static_cast<T>(~Lowest<T>());
      constexpr X kLow = static_cast<X>(kMin), kHigh = static_cast<X>(kMax);
      if (x != x) return 0;
      if (x <= kLow) return kMin;
      if (x >= kHigh) return kMax;
    }
    return static_cast<T>(x);
  }
};
struct Half {
  using Stored = __half;
  static __device__ float Load(__half x) { return __half2float(x); }
  template <typename X>
  static __device__ __half From(X x) {
    return __float2half_rn(static_cast<float>(x));
  }
};
struct BFloat {
  using Stored = __nv_bfloat16;
  static __device__ float Load(__nv_bfloat16 x) { return __bfloat162float(x); }
  template <typename X>
  static __device__ __nv_bfloat16 From(X x) {
    return __float2bfloat16_rn(static_cast<float>(x));
  }
};
struct Boolean {
  using Stored = uint8_t;
  static __device__ uint8_t Load(uint8_t x) { return x != 0; }
  template <typename X>
  static __device__ uint8_t From(X x) {
    return x != 0;
  }
};

template <typename Source, typename Target>
__device__ void CastPair(const void* from, void* to, int64_t count) {
  using S = typename Source::Stored;
  using R = typename Target::Stored;
  const S* x = static_cast<const S*>(from);
  R* y = static_cast<R*>(to);
  constexpr int kBytes = sizeof(S) > sizeof(R) ? sizeof(S) : sizeof(R);
  ForEachFlat<kVectorOf<kBytes>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    const Pack<S, kCount> pack = LoadPack<kCount>(x + at);
    Pack<R, kCount> result;
#pragma unroll
    for (int i = 0; i < kCount; ++i) result.at[i] = Target::From(Source::Load(pack.at[i]));
    StorePack(y + at, result);
  });
}

template <typename Source>
__device__ void Cast(CastTo type, const void* x, void* y, int64_t count) {
  switch (type) {
    case CastTo::kF32:
      return CastPair<Source, Plain<float>>(x, y, count);
    case CastTo::kF64:
      return CastPair<Source, Plain<double>>(x, y, count);
    case CastTo::kF16:
      return CastPair<Source, Half>(x, y, count);
    case CastTo::kBF16:
      return CastPair<Source, BFloat>(x, y, count);
    case CastTo::kI64:
      return CastPair<Source, Plain<int64_t>>(x, y, count);
    case CastTo::kI32:
      return CastPair<Source, Plain<int32_t>>(x, y, count);
    case CastTo::kI8:
      return CastPair<Source, Plain<int8_t>>(x, y, count);
    case CastTo::kU8:
      return CastPair<Source, Plain<uint8_t>>(x, y, count);
    case CastTo::kBool:
      return CastPair<Source, Boolean>(x, y, count);
  }
}

}  // namespace

#define ORIEL_CAST(type, ...)                                                                  \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_cast_##type, CastTo to, const void* x, void* y, \
                    int64_t count) {                                                           \
    Cast<__VA_ARGS__>(to, x, y, count);                                                        \
  }
ORIEL_CAST(f32, Plain<float>)
ORIEL_CAST(f64, Plain<double>)
ORIEL_CAST(f16, Half)
ORIEL_CAST(bf16, BFloat)
ORIEL_CAST(i64, Plain<int64_t>)
ORIEL_CAST(i32, Plain<int32_t>)
ORIEL_CAST(i8, Plain<int8_t>)
ORIEL_CAST(u8, Plain<uint8_t>)
ORIEL_CAST(bool, Boolean)

}  // namespace oriel::kernels::cuda
