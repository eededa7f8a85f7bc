#include "passes/search/preference.h"

#include "gtest/gtest.h"

namespace oriel {
namespace {

TriedStrategy triedOf(int64_t pp, int zero, double seconds, bool fits = true) {
  TriedStrategy tried;
  tried.candidate.pp = pp;
  tried.candidate.zero = zero;
  tried.evaluation.seconds = seconds;
  tried.fits = fits;
  return tried;
}

// Fewer stages may cost 2 %, and less that is sharded 0.5 % beside them.
TEST(PreferenceTest, StructureBeforeAllElse) {
  const std::vector<TriedStrategy> tried = {triedOf(4, 0, 100), triedOf(1, 3, 101.2),
                                            triedOf(1, 1, 101.6), triedOf(1, 0, 101.9)};
  EXPECT_TRUE(simplestOf(tried, {}) == tried[2].candidate);
}

TEST(PreferenceTest, NothingSlowerThanTheStructureMayBe) {
  const std::vector<TriedStrategy> tried = {triedOf(4, 1, 100), triedOf(4, 0, 100.4),
                                            triedOf(1, 0, 102.1)};
  EXPECT_TRUE(simplestOf(tried, {}) == tried[1].candidate);
}

// What has a simpler structure may be slower than the fastest, but not than what has that structure
// already and fits.
TEST(PreferenceTest, WhatIsToBeat) {
  const std::vector<TriedStrategy> tried = {triedOf(4, 0, 100), triedOf(2, 1, 101),
                                            triedOf(1, 0, 90, /*fits=*/false)};
  EXPECT_DOUBLE_EQ(secondsToBeat(triedOf(4, 1, 0).candidate, tried, {}), 100 / 1.005);
  EXPECT_DOUBLE_EQ(secondsToBeat(triedOf(2, 0, 0).candidate, tried, {}), 101 / 1.005);
  EXPECT_DOUBLE_EQ(secondsToBeat(triedOf(1, 1, 0).candidate, tried, {}), 102);
}

}  // namespace
}  // namespace oriel
