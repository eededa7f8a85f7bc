#include "runtime/base/remainder.h"

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "runtime/base/float16.h"

namespace oriel::runtime {
namespace {

uint32_t Bits(float value) { return __builtin_bit_cast(uint32_t, value); }
float OfBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
float Joined(float value) { return JoinRemainder(RoundedAway(value), RemainderOf(value)); }

TEST(RemainderTest, NoBitIsLost) {
  std::mt19937 engine(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const float value = OfBits(static_cast<uint32_t>(engine()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(Bits(Joined(value)), Bits(value)) << std::hex << Bits(value);
  }
  constexpr float kLargest = std::numeric_limits<float>::max();  // rounds to infinity
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {0.f, -0.f, kLargest, -kLargest, kInfinity, -kInfinity,
                            std::numeric_limits<float>::denorm_min()}) {
    EXPECT_EQ(Bits(Joined(value)), Bits(value)) << value;
  }
  for (const uint32_t nan : {0x7fc00000u, 0x7fffffffu, 0x7f800001u, 0xff80ffffu}) {
    EXPECT_TRUE(std::isnan(Joined(OfBits(nan)))) << std::hex << nan;
    EXPECT_TRUE(std::isnan(BFloat16ToFloat(RoundedAway(OfBits(nan))))) << std::hex << nan;
  }
}

TEST(RemainderTest, OnlyTiesAreRoundedOtherwise) {
  std::mt19937 engine(2);
  for (int i = 0; i < 1'000'000; ++i) {
    const float value = OfBits(static_cast<uint32_t>(engine()));
    if ((Bits(value) & 0xffff) == 0x8000) continue;
    ASSERT_EQ(RoundedAway(value), FloatToBFloat16(value)) << std::hex << Bits(value);
  }
  EXPECT_EQ(RoundedAway(OfBits(0x3f808000)), 0x3f81);  // to even: 0x3f80
  EXPECT_EQ(RoundedAway(OfBits(0xbf818000)), 0xbf82);
}

}  // namespace
}  // namespace oriel::runtime
