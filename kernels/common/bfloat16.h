// bf16 in memory, f32 in registers: the element type of kernels that take bf16 themselves.
//
//   template <typename S>                          // float, double or BFloat16
//   void Scale(const S* x, Compute<S> a, S* y, int64_t n) {
//   #pragma omp simd
//     for (int64_t i = 0; i < n; ++i) Assign(y + i, a * static_cast<Compute<S>>(x[i]));
//   }
//
// What is stored is rounded to nearest, ties to even.
#ifndef ORIEL_KERNELS_COMMON_BFLOAT16_H_
#define ORIEL_KERNELS_COMMON_BFLOAT16_H_

#include <cstdint>

#include "runtime/base/float16.h"

namespace oriel::kernels {

struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): converts as float and double do
  BFloat16(float value) : bits(runtime::FloatToBFloat16(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator float() const { return runtime::BFloat16ToFloat(bits); }
};
static_assert(sizeof(BFloat16) == 2);

template <typename S>
struct ComputeType {
  using Type = S;
};
template <>
struct ComputeType<BFloat16> {
  using Type = float;
};
// What elements of S are computed in.
template <typename S>
using Compute = typename ComputeType<S>::Type;

// *to = value. In a loop marked `omp simd` a temporary object of a class would keep GCC 12 from
// vectorizing it.
template <typename S>
inline void Assign(S* to, Compute<S> value) {
  *to = value;
}
inline void Assign(BFloat16* to, float value) { to->bits = runtime::FloatToBFloat16(value); }

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_BFLOAT16_H_
