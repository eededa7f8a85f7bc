// Division of indices by a number that is known when a kernel is prepared; for host and device
// code. Numbers of 32 bits are divided by a product and a shift.
#ifndef ORIEL_KERNELS_CUDA_DIVISOR_H_
#define ORIEL_KERNELS_CUDA_DIVISOR_H_

#include <cstdint>

namespace oriel::kernels::cuda {

// Loops whose indices and offsets are all below this may count in 32 bits, and add a grid's threads
// a few times.
inline constexpr int64_t kSmallIndices = int64_t{1} << 30;

// With s the smallest number for which 2^s >= size, and factor = 2^(31 + s) / size, rounded up by
// less than 1: the quotient of n < 2^31 is off by less than n / 2^(31 + s) < 1 / size, so that its
// whole part is exact.
struct Divisor {
  int64_t size = 1;
  uint32_t factor = 0;
  int32_t shift = 0;  // 31 + s

  static constexpr Divisor By(int64_t size) {
    Divisor divisor{size, 0, 31};
    if (size < 1 || size >= int64_t{1} << 31) return divisor;
    while (int64_t{1} << (divisor.shift - 31) < size) ++divisor.shift;
    const uint64_t power = uint64_t{1} << divisor.shift;
    divisor.factor = static_cast<uint32_t>((power + static_cast<uint64_t>(size) - 1) /
                                           static_cast<uint64_t>(size));
    return divisor;
  }
  constexpr int64_t Quotient(int64_t n) const { return n / size; }
  constexpr int32_t Quotient(int32_t n) const {
    return static_cast<int32_t>(static_cast<uint64_t>(static_cast<uint32_t>(n)) * factor >> shift);
  }
  // Makes *n the rest, and gives the quotient.
  template <typename I>
  constexpr I Split(I* n) const {
    const I quotient = Quotient(*n);
    *n -= quotient * static_cast<I>(size);
    return quotient;
  }
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_DIVISOR_H_
