// A number of f32 as one of bf16 and what that lacks: 16 bits each. The first is the nearest, of
// two the one that is farther from zero, so that the other says which way it was rounded: no bit is
// lost. (To nearest, ties to even, differs for one number of 2^17.)
#ifndef ORIEL_RUNTIME_BASE_REMAINDER_H_
#define ORIEL_RUNTIME_BASE_REMAINDER_H_

#include <cstdint>

namespace oriel::runtime {

// The bits of the nearest number of bf16. NaN stays NaN.
constexpr uint16_t RoundedAway(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t rounded = value != value ? bits >> 16 | 0x40 : (bits + 0x8000) >> 16;
  return static_cast<uint16_t>(rounded);
}

// What that lacks: the lower half of the number's bits.
constexpr int16_t RemainderOf(float value) {
  return static_cast<int16_t>(static_cast<uint16_t>(__builtin_bit_cast(uint32_t, value)));
}

// The number, of the two. Of NaN, some NaN.
constexpr float JoinRemainder(uint16_t rounded, int16_t remainder) {
  const uint32_t upper = rounded - (remainder < 0 ? 1u : 0u);
  return __builtin_bit_cast(float, upper << 16 | static_cast<uint16_t>(remainder));
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_REMAINDER_H_
