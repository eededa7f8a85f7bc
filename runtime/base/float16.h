// Conversions between float and the two 16-bit formats, which are stored as their bits.
// To 16 bits rounds to nearest, ties to even; what is too large becomes infinite, NaN stays NaN.
#ifndef ORIEL_RUNTIME_BASE_FLOAT16_H_
#define ORIEL_RUNTIME_BASE_FLOAT16_H_

#include <cstdint>

namespace oriel::runtime {

inline float BFloat16ToFloat(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}

inline uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<uint16_t>(value != value ? (bits >> 16) | 0x40 : rounded);
}

inline float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t magnitude = bits & 0x7fff;
  // The exponent's bias differs by 112, which a product by 2^112 mends for subnormals too.
  const float scaled = __builtin_bit_cast(float, magnitude << 13) * 0x1p112f;
  const uint32_t special = (magnitude << 13) | 0x7f800000;  // infinity and NaN
  const uint32_t value = magnitude >= 0x7c00 ? special : __builtin_bit_cast(uint32_t, scaled);
  return __builtin_bit_cast(float, value | sign);
}

inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // rounds to 65536 or more
  if (magnitude < 0x38800000) {
    // Subnormal: adding 0.5 lets the hardware round at the last bit of a half.
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3f000000));
  }
  const uint32_t rounded = magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_FLOAT16_H_
