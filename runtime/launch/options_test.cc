#include "runtime/launch/options.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

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

TEST(OptionsTest, LinkDelay) {
  const ParsedOptions parsed =
      Parse({"m.oplan", "--data", "d", "--link-delay", "latency=20us,bandwidth=2GB/s"});
  ASSERT_TRUE(parsed.options && parsed.options->link_delay);
  EXPECT_EQ(parsed.options->link_delay->latency, std::chrono::microseconds(20));
  EXPECT_EQ(parsed.options->link_delay->bandwidth, 2e9);
  EXPECT_FALSE(Parse({"m.oplan", "--data", "d"}).options->link_delay.has_value());
  EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--link-delay", "2GB/s"}),
              HasSubstr("--link-delay: '2GB/s' is neither latency=50us nor bandwidth=1GB/s"));
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
                                      "--allow-nan",
                                      "--tensorboard",
                                      "tb",
                                      "--profile",
                                      "--dump-gradients",
                                      "g",
                                      "--dump-parameters",
                                      "p",
                                      "--trace",
                                      "t.json",
                                      "--trace-steps",
                                      "4-9"});
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
  EXPECT_TRUE(options.allow_nan);
  EXPECT_EQ(options.tensorboard, "tb");
  EXPECT_TRUE(options.profile);
  EXPECT_EQ(options.trace, "t.json");
  ASSERT_TRUE(options.trace_steps.has_value());
  EXPECT_EQ(options.trace_steps->first, 4);
  EXPECT_EQ(options.trace_steps->last, 9);
}

TEST(OptionsTest, SeedsAreNotNegative) {
  EXPECT_FALSE(Parse({"m.oplan", "--data", "d", "--seed", "-1"}).options.has_value());
}

TEST(OptionsTest, ReplaceCompute) {
  const ParsedOptions parsed =
      Parse({"m.oplan", "--data", "d", "--replace-compute", "forward=20,backward.1=1.5"});
  ASSERT_TRUE(parsed.options.has_value());
  EXPECT_THAT(parsed.options->replace_compute,
              ElementsAre(Pair("backward.1", 1.5), Pair("forward", 20)));
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
  EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--keep", "5"}), HasSubstr("--save-dir"));
  EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--eval-every", "5"}), HasSubstr("--eval DIR"));
  EXPECT_THAT(Usage({"m.oplan", "--eval", "d", "--eval-every", "5"}), HasSubstr("--data DIR"));
}
TEST(OptionsTest, TraceStepsThatAreNone) {
  for (const char* steps : {"0-3", "3-2", "a-b", "1-2-3", "1-", "-3"}) {
    EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--trace", "t",
                       absl::StrCat("--trace-steps=", steps).c_str()}),
                HasSubstr("--trace-steps takes"))
        << steps;
  }
}
TEST(OptionsTest, TraceWithoutTraining) {
  EXPECT_THAT(Usage({"m.oplan", "--eval", "e", "--trace", "t"}), HasSubstr("--trace needs"));
  EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--trace-steps", "1-3"}),
              HasSubstr("--trace-steps needs"));
}
TEST(OptionsTest, ReplacementsThatAreNone) {
  for (const char* list : {"20", "forward", "=20", "forward=", "forward=-1", "forward=nan",
                           "forward=1,,", "forward=1,forward=2"}) {
    EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--replace-compute", list}),
                HasSubstr("--replace-compute takes"))
        << list;
  }
}
TEST(OptionsTest, ReplacedComputeHasNoNumbers) {
  for (const char* option : {"--save-dir", "--eval", "--dump-gradients", "--dump-parameters"}) {
    EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--replace-compute", "forward=20", option, "x"}),
                HasSubstr("--replace-compute leaves"))
        << option;
  }
}
TEST(OptionsTest, PlanIsNeeded) {
  EXPECT_THAT(Usage({"--data", "d"}), HasSubstr("give the plan to run"));
  EXPECT_TRUE(Parse({"--doctor", "--device", "cuda"}).options->doctor);
}
TEST(OptionsTest, UnknownDevice) {
  EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--device", "tpu"}), HasSubstr("tpu"));
  EXPECT_EQ(Parse({"m.oplan", "--data", "d", "--device", "cuda"}).options->device, "cuda");
  EXPECT_TRUE(Parse({"m.oplan", "--data", "d", "--check-nan"}).options->check_nan);
  EXPECT_FALSE(Parse({"m.oplan", "--data", "d"}).options->no_graphs);
  EXPECT_TRUE(Parse({"m.oplan", "--data", "d", "--no-graphs"}).options->no_graphs);
}
TEST(OptionsTest, UnknownCommunicator) {
  EXPECT_THAT(Usage({"m.oplan", "--data", "d", "--comm", "udp"}), HasSubstr("udp"));
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
