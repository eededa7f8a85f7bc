// Normal numbers of random words, with the same bits on every machine and device: basic operations
// and square roots alone, which IEEE 754 rounds, and no product that is contracted with a sum.
#ifndef ORIEL_KERNELS_RANDOM_NORMAL_H_
#define ORIEL_KERNELS_RANDOM_NORMAL_H_

#include <cstdint>

#ifdef __CUDACC__
#define ORIEL_HOST_DEVICE __host__ __device__
#else
#define ORIEL_HOST_DEVICE
#endif

namespace oriel::kernels {

// nvcc contracts a product and a sum behind it into one rounding, unless it is told so here; the
// host's compiler by a flag of the files that include this (-ffp-contract=off).
ORIEL_HOST_DEVICE inline float Product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

// Natural logarithm of a normal number above 0: x = m 2^e with m in [1/√2, √2), and
// ln m = 2 artanh(s), s = (m - 1) / (m + 1), whose series is good to 1e-9 behind s^9.
ORIEL_HOST_DEVICE inline float LogOf(float x) {
  const auto bits = __builtin_bit_cast(int32_t, x);
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const int32_t exponent = (bits - kRootHalf) >> 23;
  const auto m = __builtin_bit_cast(float, bits - exponent * (1 << 23));
  const float s = (m - 1.0f) / (m + 1.0f);
  const float z = Product(s, s);
  float p = 2.0f / 9;
  p = Product(p, z) + 2.0f / 7;
  p = Product(p, z) + 2.0f / 5;
  p = Product(p, z) + 2.0f / 3;
  p = Product(p, z) + 2.0f;
  return Product(static_cast<float>(exponent), 0.69314718f) + Product(s, p);
}

// A word as a fraction of a turn: the quadrant is exact, and within it Taylor's series on
// [-π/4, π/4] are good to 2e-9.
ORIEL_HOST_DEVICE inline void SinCosOfTurn(uint32_t turn, float* sine, float* cosine) {
  const uint32_t quadrant = (turn + (uint32_t{1} << 29)) >> 30;
  const auto rest = static_cast<int32_t>(turn - (quadrant << 30));
  const float x = Product(static_cast<float>(rest), 1.57079633f * 0x1p-30f);
  const float z = Product(x, x);
  float s = 1.0f / 362880;
  s = Product(s, z) - 1.0f / 5040;
  s = Product(s, z) + 1.0f / 120;
  s = Product(s, z) - 1.0f / 6;
  s = x + Product(x, Product(s, z));
  float c = -1.0f / 3628800;
  c = Product(c, z) + 1.0f / 40320;
  c = Product(c, z) - 1.0f / 720;
  c = Product(c, z) + 1.0f / 24;
  c = Product(c, z) - 0.5f;
  c = Product(c, z) + 1.0f;
  const bool swapped = (quadrant & 1) != 0;
  const float a = swapped ? c : s, b = swapped ? s : c;
  *sine = (quadrant & 2) != 0 ? -a : a;
  *cosine = ((quadrant + 1) & 2) != 0 ? -b : b;
}

// What Box and Muller's method (1958) takes the root of, of a word: -2 ln u, u in (0, 1] of 31 bits
// and a half. Conversions from signed numbers are vector instructions.
ORIEL_HOST_DEVICE inline float SquaredRadius(uint32_t word) {
  const float u = Product(static_cast<float>(static_cast<int32_t>(word >> 1)) + 0.5f, 0x1p-31f);
  // Rounding may make u 1, and its logarithm a little more than 0.
  const float squared = Product(-2.0f, LogOf(u));
  return squared > 0.0f ? squared : 0.0f;
}

// In [0, 1), of a word's upper 24 bits.
ORIEL_HOST_DEVICE inline float UniformOf(uint32_t word) {
  return Product(static_cast<float>(static_cast<int32_t>(word >> 8)), 0x1p-24f);
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_RANDOM_NORMAL_H_
