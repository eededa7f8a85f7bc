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

TEST(Suggest, LongListsAreCut) {
  EXPECT_EQ(suggestion("zzzzzzzz", {"a", "b", "c", "d", "e", "f"}),
            "; known: 'a', 'b', 'c', 'd', 'e', ..");
}

}  // namespace
}  // namespace oriel
