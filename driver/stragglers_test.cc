#include "driver/stragglers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oriel::driver {
namespace {

using ::testing::HasSubstr;

void expectRefused(const std::vector<std::string>& words, const std::string& message) {
  const absl::StatusOr<Stragglers> stragglers = parseStragglers(words, 4);
  ASSERT_FALSE(stragglers.ok()) << words.front();
  EXPECT_THAT(std::string(stragglers.status().message()), HasSubstr(message));
}

TEST(StragglersTest, TheSlowestOfAProgramCounts) {
  const absl::StatusOr<Stragglers> stragglers = parseStragglers({"3=1.5", "2=2", "0=1"}, 8);
  ASSERT_TRUE(stragglers.ok()) << stragglers.status();
  EXPECT_EQ(slowdownOf(*stragglers, 0, 2), 1);
  EXPECT_EQ(slowdownOf(*stragglers, 2, 2), 2);
  EXPECT_EQ(slowdownOf(*stragglers, 3, 5), 1.5);
  EXPECT_EQ(slowdownOf(*stragglers, 4, 4), 1);
}

TEST(StragglersTest, Errors) {
  for (const char* word : {"3", "3=", "=2", "a=2", "1=fast", "1=nan", "1=inf", "1.5=2"}) {
    expectRefused({word}, "write RANK=FACTOR");
  }
  expectRefused({"4=2"}, "there is no rank 4; they are 0 to 3");
  expectRefused({"-1=2"}, "there is no rank -1");
  expectRefused({"1=0.5"}, "1 or more");
  expectRefused({"1=2", "1=3"}, "rank 1 is given twice");
}

}  // namespace
}  // namespace oriel::driver
