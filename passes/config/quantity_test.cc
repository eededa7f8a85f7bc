#include "passes/config/quantity.h"

#include <gtest/gtest.h>

namespace oriel {
namespace {

TEST(Quantity, BytesInAText) {
  EXPECT_EQ(bytesIn("0"), 0);
  EXPECT_EQ(bytesIn("7 B"), 7);
  EXPECT_EQ(bytesIn("1024"), 1024);
  EXPECT_EQ(bytesIn("16 GiB"), int64_t{16} << 30);
  EXPECT_EQ(bytesIn("16GiB"), int64_t{16} << 30);
  EXPECT_EQ(bytesIn("1.5 GB"), 1500000000);
  EXPECT_EQ(bytesIn("800 MB"), 800000000);
  for (const char* text : {"", "GiB", "-1", "1 gib", "1e3", "nan", "inf", "8 GiB each",
                           "9999999 TiB", "25", "1023", "0.5"}) {
    EXPECT_EQ(bytesIn(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace oriel
