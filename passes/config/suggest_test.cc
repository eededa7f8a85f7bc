#include "passes/config/suggest.h"

#include <gtest/gtest.h>

namespace oriel {
namespace {

TEST(Suggest, EditDistanceCountsInsertionsDeletionsAndSubstitutions) {
  EXPECT_EQ(editDistance("", ""), 0u);
  EXPECT_EQ(editDistance("abc", ""), 3u);
  EXPECT_EQ(editDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(editDistance("logits", "logit"), 1u);
}

TEST(Suggest, NearestFirstAndTiesInTheOrderGiven) {
  EXPECT_EQ(nearestNames("lr", {"steps", "lrs", "l"}, 2), (std::vector<std::string>{"lrs", "l"}));
}

TEST(Suggest, OneNearNameIsAQuestionElseAList) {
  EXPECT_EQ(suggestion("logit", {"logits", "loss"}), "; did you mean 'logits'?");
  EXPECT_EQ(suggestion("zzzzzz", {"a", "bb"}), "; known: 'a', 'bb'");
  EXPECT_EQ(suggestion("x", {}), "");
}

TEST(Suggest, PatternsAreNearWhatTheyNearlyMatch) {
  EXPECT_EQ(editDistance("*", "any"), 0u);
  EXPECT_EQ(editDistance("a.*.b", "a.0.c.b"), 0u);
  EXPECT_EQ(editDistance("*gaet*", "x.attn_gate.weight"), 1u);
  EXPECT_EQ(suggestion("*gaet*", {"pos", "tok.weight", "x.attn_gate"}),
            "; did you mean 'x.attn_gate'?");
  EXPECT_EQ(suggestion("vison.*.weight", {"pos", "vision.0.weight"}),
            "; did you mean 'vision.0.weight'?");
  // Nothing of it is like a name.
  EXPECT_EQ(suggestion("*zz*", {"a", "bcd"}), "; known: 'a', 'bcd'");
}

TEST(Suggest, LongListsAreCut) {
  EXPECT_EQ(suggestion("zzzzzzzz", {"a", "b", "c", "d", "e", "f"}),
            "; known: 'a', 'b', 'c', 'd', 'e', ..");
}

}  // namespace
}  // namespace oriel
