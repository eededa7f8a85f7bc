// Rows of S as rows of what they are computed in: rows of bf16 are widened to f32 in memory of the
// object's own, others are left where they are.
//
//   WideRow<S> source(n), target(n);
//   const T* x = source.Read(input);
//   T* y = target.Begin(result);     // any contents
//   ..                               // computes y of x
//   target.End(result);
#ifndef ORIEL_KERNELS_COMMON_WIDE_ROW_H_
#define ORIEL_KERNELS_COMMON_WIDE_ROW_H_

#include <cstdint>
#include <type_traits>

#include "kernels/common/aligned.h"
#include "kernels/common/bfloat16.h"

namespace oriel::kernels {

template <typename S>
void WidenElements(const S* from, int64_t count, Compute<S>* to) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}
template <typename S>
void RoundElements(const Compute<S>* from, int64_t count, S* to) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) Assign(to + i, from[i]);
}

template <typename S>
class WideRow {
 public:
  using T = Compute<S>;
  static constexpr bool kInPlace = std::is_same_v<S, T>;

  // For rows of n elements.
  explicit WideRow(int64_t n) : wide_(kInPlace ? 0 : n), n_(n) {}

  // Until the next call.
  const T* Read(const S* row) {
    if constexpr (kInPlace) {
      return row;
    } else {
      WidenElements(row, n_, wide_.data());
      return wide_.data();
    }
  }

  T* Begin(S* row) {
    if constexpr (kInPlace) {
      return row;
    } else {
      return wide_.data();
    }
  }
  void End(S* row) const {
    if constexpr (!kInPlace) RoundElements<S>(wide_.data(), n_, row);
  }

 private:
  AlignedVector<T> wide_;
  int64_t n_;
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_WIDE_ROW_H_
