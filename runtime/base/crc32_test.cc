#include "runtime/base/crc32.h"

#include <gtest/gtest.h>

namespace oriel::runtime {
namespace {

// The check value of CRC-32 (ISO 3309), at once and in two parts.
TEST(Crc32Test, OfTheDigits) {
  EXPECT_EQ(Crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(Crc32("6789", Crc32("12345")), 0xcbf43926u);
  EXPECT_EQ(JoinCrc32(Crc32("12345"), Crc32("6789"), 4), 0xcbf43926u);
  EXPECT_EQ(Crc32(""), 0u);
  EXPECT_EQ(Crc32(std::string_view(), Crc32("12345")), Crc32("12345"));
  EXPECT_EQ(Crc32Text(0xbadf00d), "0badf00d");
  EXPECT_EQ(JoinCrc32(Crc32("12345"), 0, 0), Crc32("12345"));
}

}  // namespace
}  // namespace oriel::runtime
