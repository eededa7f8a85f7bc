#include "passes/config/glob.h"

#include <gtest/gtest.h>

namespace oriel {
namespace {

TEST(Glob, MatchesTheWholeText) {
  EXPECT_TRUE(matchesGlob("*", ""));
  EXPECT_TRUE(matchesGlob("a*c", "abbbc"));
  EXPECT_TRUE(matchesGlob("*.bias", "layers.0.bias"));
  EXPECT_TRUE(matchesGlob("a?c", "abc"));
  EXPECT_TRUE(matchesGlob("*ab*ab", "xabyabzab"));
  EXPECT_FALSE(matchesGlob("a?c", "ac"));
  EXPECT_FALSE(matchesGlob("abc", "abcd"));
  EXPECT_FALSE(matchesGlob("*.bias", "layers.bias.0"));
  EXPECT_FALSE(matchesGlob("", "a"));
}

}  // namespace
}  // namespace oriel
