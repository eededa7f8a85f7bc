// Transcendental functions that a compiler can vectorise.
//
// The float versions are branch-free, so that loops over them become vector
// code; their relative error is below 3e-7 (vector_math_test.cc). The double
// versions are those of the C library. NaN gives NaN.
//
// Polynomials: exp is the Taylor series on |r| <= ln(2)/2; tanh, erf and
// log(erfc) were fitted for this file by weighted least squares on the
// intervals that the comments give (relative error of the fit below 5e-9).
#ifndef ORIEL_KERNELS_COMMON_VECTOR_MATH_H_
#define ORIEL_KERNELS_COMMON_VECTOR_MATH_H_

#include <cmath>
#include <cstdint>

namespace oriel::kernels {

// e^x for -86.9 <= x <= 88.72; elsewhere anything.
inline float ExpBounded(float x) {
  // Adding 1.5 * 2^23 rounds to a whole number, which is then in the low bits.
  constexpr float kRound = 12582912.0f;
  const float shifted = x * 1.44269504f + kRound;
  const float n = shifted - kRound;
  // ln 2 in two parts, the first short enough for an exact product.
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  // Twice the series of e^r, for half of 2^n: 2^128 would not be a number.
  float p = 2.0f / 5040;
  p = p * r + 2.0f / 720;
  p = p * r + 2.0f / 120;
  p = p * r + 2.0f / 24;
  p = p * r + 2.0f / 6;
  p = p * r + 1.0f;
  p = p * r + 2.0f;
  p = p * r + 2.0f;
  const uint32_t exponent = (__builtin_bit_cast(uint32_t, shifted) << 23) + (uint32_t{126} << 23);
  return p * __builtin_bit_cast(float, exponent);
}

// 0 where the result would be below 1.9e-38.
inline float Exp(float x) {
  // Two selections instead of clamps, which the compiler would turn into more than that.
  const float bounded = x > 88.7228394f ? __builtin_inff() : ExpBounded(x);
  return x < -86.9f ? 0.0f : bounded;
}
inline double Exp(double x) { return std::exp(x); }

inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }
inline double Sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

// Natural logarithm of a normal number above 0; +0 gives a large negative number, infinity a large
// one. In double precision (relative error below 1e-13), but branch-free, for sums of exponentials.
inline double LogOfSum(double x) {
  const int64_t bits = __builtin_bit_cast(int64_t, x);
  // x = m 2^e with m in [1/√2, √2): the offset is the bits of 1 less those of 1/√2.
  constexpr int64_t kOffset = 0x3ff0000000000000 - 0x3fe6a09e667f3bcd;
  const int64_t exponent = ((bits + kOffset) >> 52) - 1023;
  const double m = __builtin_bit_cast(double, bits - exponent * (int64_t{1} << 52));
  // log m = 2 artanh t, |t| <= 0.1716.
  const double t = (m - 1) / (m + 1);
  const double z = t * t;
  double p = 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  p = p * z + 2.0 / 5;
  p = p * z + 2.0 / 3;
  p = p * z + 2.0;
  return static_cast<double>(exponent) * 0.69314718055994530942 + t * p;
}

inline float Tanh(float x) {
  const float a = std::fabs(x);
  // |x| < 0.625: x + x³ P(x²). The argument is clamped so that no infinity arises.
  const float z = a < 0.625f ? x * x : 0.390625f;
  float p = -0.00571703678f;
  p = p * z + 0.0206505786f;
  p = p * z - 0.0537434965f;
  p = p * z + 0.133314908f;
  p = p * z - 0.333332837f;
  const float small = x + x * (z * p);
  const float large = 1.0f - 2.0f / (ExpBounded(a > 10.0f ? 20.0f : 2.0f * a) + 1.0f);
  return a < 0.625f ? small : std::copysign(large, x);
}
inline double Tanh(double x) { return std::tanh(x); }

inline float Erf(float x) {
  const float a = std::fabs(x);
  // |x| < 1: x P(x²).
  const float z = a < 1.0f ? x * x : 1.0f;
  float p = 7.85385782e-05f;
  p = p * z - 0.000801019254f;
  p = p * z + 0.00518832775f;
  p = p * z - 0.0268538110f;
  p = p * z + 0.112835854f;
  p = p * z - 0.376126260f;
  p = p * z + 1.12837911f;
  const float small = x * p;
  // 1 <= |x| <= 4: 1 - exp(-Q(|x|)); above, erf rounds to 1.
  const float b = a > 4.0f ? 4.0f : a;
  float q = -0.000186380086f;
  q = q * b + 0.00294766668f;
  q = q * b - 0.0218380961f;
  q = q * b + 0.103106819f;
  q = q * b + 0.638144732f;
  q = q * b + 1.12708926f;
  q = q * b + 0.000341512583f;
  const float large = 1.0f - ExpBounded(-q);
  return a < 1.0f ? small : std::copysign(large, x);
}
inline double Erf(double x) { return std::erf(x); }

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_VECTOR_MATH_H_
