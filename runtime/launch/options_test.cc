#include "runtime/launch/options.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

ParsedOptions Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "oriel-run");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

// The message of a usage error.
std::string Usage(const std::vector<const char*>& arguments) {
  ::testing::internal::CaptureStderr();
  const ParsedOptions parsed = Parse(arguments);
  EXPECT_FALSE(parsed.options.has_value());
  EXPECT_EQ(parsed.exit_code, kExitUsage);
  return ::testing::internal::GetCapturedStderr();
}

TEST(OptionsTest, AllOfThem) {
  const ParsedOptions parsed = Parse({"m.oplan",
                                      "--data",
                                      "d",
                                      "-n",
                                      "4",
                                      "--comm",
                                      "mpi",
                                      "--steps",
                                      "10",
                                      "--seed",
                                      "18446744073709551615",
                                      "--metrics",
                                      "m.jsonl",
                                      "--save-dir",
                                      "s",
                                      "--save-every",
                                      "5",
                                      "--resume",
                                      "r",
                                      "--eval",
                                      "e",
                                      "--eval-logits",
                                      "l.npy",
                                      "--threads",
                                      "2",
                                      "--no-shuffle",
                                      "--profile",
                                      "--dump-gradients",
                                      "g",
                                      "--dump-parameters",
                                      "p"});
  ASSERT_TRUE(parsed.options.has_value());
  const RunOptions& options = *parsed.options;
  EXPECT_EQ(options.plan, "m.oplan");
  EXPECT_EQ(options.data, "d");
  EXPECT_EQ(options.ranks, 4);
  EXPECT_EQ(options.comm, "mpi");
  EXPECT_EQ(options.steps, 10);
  EXPECT_EQ(options.seed, ~uint64_t{0});
  EXPECT_EQ(options.save_every, 5);
  EXPECT_EQ(options.eval_logits, "l.npy");
  EXPECT_EQ(options.threads, 2);
  EXPECT_TRUE(options.no_shuffle);
  EXPECT_TRUE(options.profile);
}

TEST(OptionsTest, DefaultsLeaveThePlanToDecide) {
  const ParsedOptions parsed = Parse({"m.oplan", "--eval", "e"});
  ASSERT_TRUE(parsed.options.has_value());
  EXPECT_FALSE(parsed.options->ranks.has_value());
  EXPECT_FALSE(parsed.options->steps.has_value());
  EXPECT_FALSE(parsed.options->seed.has_value());
  EXPECT_EQ(parsed.options->comm, "");
}

TEST(OptionsTest, HelpHasExamples) {
  ::testing::internal::CaptureStdout();
  const ParsedOptions parsed = Parse({"--help"});
  const std::string help = ::testing::internal::GetCapturedStdout();
  EXPECT_FALSE(parsed.options.has_value());
  EXPECT_EQ(parsed.exit_code, kExitOk);
  EXPECT_THAT(help, HasSubstr("Examples:"));
  EXPECT_THAT(help, HasSubstr("--resume DIR"));
}

TEST(OptionsTest, NoPlan) { EXPECT_THAT(Usage({"--data", "d"}), HasSubstr("plan is required")); }
TEST(OptionsTest, NothingToDo) { EXPECT_THAT(Usage({"m.oplan"}), HasSubstr("nothing to do")); }
TEST(OptionsTest, StepsWithoutData) {
  EXPECT_THAT(Usage({"m.oplan", "--eval", "e", "--steps", "5"}), HasSubstr("--steps needs"));
}
TEST(OptionsTest, SaveEveryWithoutFolder) {
  EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--save-every", "5"}), HasSubstr("--save-dir"));
}
TEST(OptionsTest, UnknownCommunicator) {
  EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--comm", "tcp"}), HasSubstr("tcp"));
}
TEST(OptionsTest, UnknownOption) {
  EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--step", "5"}), HasSubstr("--step"));
}
TEST(OptionsTest, NoNumber) {
  Usage({"m.oplan", "--data", "d", "--steps", "many"});
  Usage({"m.oplan", "--data", "d", "--steps", "-1"});
  Usage({"m.oplan", "--data", "d", "-n", "0"});
}

}  // namespace
}  // namespace oriel::runtime
