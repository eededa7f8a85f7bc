#include "driver/strategy_options.h"

#include <fstream>

#include "passes/strategy/strategy_reader.h"
#include "runtime/base/status_testing.h"

namespace oriel::driver {
namespace {

using runtime::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string writeStrategy(const std::string& text) {
  const std::string path = ::testing::TempDir() + "strategy_options_test.yaml";
  std::ofstream(path) << text;
  return path;
}

void expectRefused(const StrategyOptions& options, const std::string& text) {
  EXPECT_THAT(strategyFromOptions(options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
}

TEST(StrategyOptionsTest, NothingIsOneRank) {
  ORIEL_ASSERT_OK_AND_ASSIGN(Strategy strategy, strategyFromOptions({}));
  EXPECT_EQ(strategy, Strategy());
}

TEST(StrategyOptionsTest, WorldIsDataParallel) {
  StrategyOptions options;
  options.world = 4;
  ORIEL_ASSERT_OK_AND_ASSIGN(Strategy strategy, strategyFromOptions(options));
  Strategy expected;
  expected.mesh = Mesh{4, 1, 1};
  EXPECT_EQ(strategy, expected);
}

TEST(StrategyOptionsTest, ShorthandEqualsTheFile) {
  StrategyOptions shorthand;
  shorthand.mesh = {"tp=2", "dp=4"};
  shorthand.zero = 2;
  shorthand.hsdp = 2;
  shorthand.sequenceParallel = true;
  shorthand.padding = true;
  shorthand.remat = "selective";
  shorthand.world = 8;
  ORIEL_ASSERT_OK_AND_ASSIGN(Strategy made, strategyFromOptions(shorthand));
  StrategyOptions file;
  file.file = writeStrategy(
      "mesh: {dp: 4, tp: 2}\nzero: 2\nhsdp: 2\nsequence_parallel: true\npadding: true\n"
      "remat: selective\n");
  file.world = 8;
  ORIEL_ASSERT_OK_AND_ASSIGN(Strategy read, strategyFromOptions(file));
  EXPECT_EQ(made, read);
  EXPECT_EQ(made.text, read.text);
}

TEST(StrategyOptionsTest, TheTextOfAShorthandReadsAsTheSameStrategy) {
  for (std::vector<std::string> mesh :
       {std::vector<std::string>{"dp=1"}, {"fsdp=4"}, {"dp=2", "fsdp=2", "tp=2"}}) {
    StrategyOptions options;
    options.mesh = mesh;
    options.zero = 3;
    options.memory = "1.5 GiB";
    ORIEL_ASSERT_OK_AND_ASSIGN(Strategy made, strategyFromOptions(options));
    ORIEL_ASSERT_OK_AND_ASSIGN(Strategy read, parseStrategy(made.text, "s.yaml"));
    EXPECT_EQ(made, read) << made.text;
  }
}

TEST(StrategyOptionsTest, StagesEqualTheFile) {
  StrategyOptions shorthand;
  shorthand.mesh = {"tp=2"};
  shorthand.stages = {"auto 4"};
  shorthand.schedule = "interleaved";
  shorthand.microbatches = 8;
  shorthand.balance = "parameters";
  shorthand.placement = "dp_outermost";
  ORIEL_ASSERT_OK_AND_ASSIGN(Strategy made, strategyFromOptions(shorthand));
  EXPECT_EQ(made.ranks(), 4);
  ORIEL_ASSERT_OK_AND_ASSIGN(Strategy read, parseStrategy(made.text, "s.yaml"));
  EXPECT_EQ(made, read) << made.text;
  shorthand = {};
  shorthand.stages = {"vision", "llm.0-1", "2-3"};
  ORIEL_ASSERT_OK_AND_ASSIGN(made, strategyFromOptions(shorthand));
  EXPECT_EQ(made.ranks(), 3);
  ORIEL_ASSERT_OK_AND_ASSIGN(read, parseStrategy(made.text, "s.yaml"));
  EXPECT_EQ(made, read) << made.text;
}

TEST(StrategyOptionsTest, OverlapEqualsTheFile) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"on"},
                                                {"off"},
                                                {"bucket=25MiB"},
                                                {"prefetch=0", "bucket=1.5 KB"}}) {
    StrategyOptions options;
    options.overlap = words;
    ORIEL_ASSERT_OK_AND_ASSIGN(Strategy made, strategyFromOptions(options));
    ORIEL_ASSERT_OK_AND_ASSIGN(Strategy read, parseStrategy(made.text, "s.yaml"));
    EXPECT_EQ(made.overlap, read.overlap) << made.text;
    EXPECT_EQ(made.overlap.has_value(), words.front() != "off");
  }
}

TEST(StrategyOptionsTest, RefusesWhatIsNoOverlap) {
  StrategyOptions options;
  for (const char* word : {"of", "bucket", ""}) {
    options.overlap = {word};
    expectRefused(options, "--overlap: can't use '" + std::string(word) + "'; write on, off, or");
  }
  for (const char* word : {"bucket=", "bucket=-1", "bucket=25gigs", "bucket=25"}) {
    options.overlap = {word};
    expectRefused(options, "--overlap: can't use '" + std::string(word) +
                               "'; write a size, e.g. bucket=25MiB; units are B, KB, KiB, MB,");
  }
  options.overlap = {"bukket=25MiB"};
  expectRefused(options, "--overlap: there is no size 'bukket'; did you mean 'bucket'?");
  options.overlap = {"bucket=1MiB", "bucket=2MiB"};
  expectRefused(options, "--overlap: bucket is given twice");
  options.overlap = {"on", "bucket=2MiB"};
  expectRefused(options, "--overlap: can't use 'on'");
}

TEST(StrategyOptionsTest, TheWorldIsSplitOverStages) {
  StrategyOptions options;
  options.stages = {"2"};
  options.world = 8;
  ORIEL_ASSERT_OK_AND_ASSIGN(Strategy strategy, strategyFromOptions(options));
  EXPECT_EQ(strategy.mesh, (Mesh{4, 1, 1}));
  options.world = 7;
  expectRefused(options, "--world 7 can't be split over 2 grids of ranks");
  options.mesh = {"dp=2"};
  expectRefused(options, "--world 7, but --mesh has 4 ranks on 2 grids");
}

TEST(StrategyOptionsTest, RefusesWhatIsNoPipeline) {
  StrategyOptions options;
  options.schedule = "1f1b";
  expectRefused(options, "--schedule is of several stages: say how many");
  options.stages = {"2"};
  options.schedule = "1f1";
  expectRefused(options, "--schedule: there is no schedule '1f1'; did you mean '1f1b'?");
  options.schedule = "interleaved";
  expectRefused(options, "--stages makes 2, all of them on one grid");
  options.schedule = "";
  options.microbatches = 0;
  expectRefused(options, "--microbatches must be 1 to 1048576, not 0");
  options.microbatches.reset();
  options.balance = "flops";
  expectRefused(options, "--balance must be time or parameters, not 'flops'");
  options.balance = "time";
  options.stages = {"a", "b"};
  expectRefused(options, "--balance is for cuts that are found");
  options.balance = "";
  options.placement = "pp";
  expectRefused(options, "--placement: there is no placement 'pp'");
  options.placement = "dp_outermost";
  options.stages = {"1"};
  expectRefused(options, "--placement dp_outermost lays the stages of a pipeline side by side");
  options.stages.clear();
  expectRefused(options, "--placement is of several stages: say how many");
  options.placement = "";
  options.stages = {"vision"};
  expectRefused(options, "--stages: can't use 'vision'");
  options.stages = {"a\"", "b"};
  expectRefused(options, "can't be the name of blocks");
}

TEST(StrategyOptionsTest, RefusesWhatIsNoMesh) {
  StrategyOptions options;
  for (const char* word : {"dp", "dp=", "dp=0", "dp=-2", "dp=two", "dp=1048577", ""}) {
    options.mesh = {word};
    expectRefused(options, "write AXIS=N");
  }
  options.mesh = {"=2"};
  expectRefused(options, "there is no axis ''");
  options.mesh = {"fsddp=2"};
  expectRefused(options, "there is no axis 'fsddp'; did you mean 'fsdp'?");
  options.mesh = {"ep=2"};
  expectRefused(options, "ep is not supported yet; the axes of a mesh are dp, fsdp, cp and tp");
  options.mesh = {"pp=2"};
  expectRefused(options, "pp is no axis: pipeline stages are --stages");
  options.mesh = {"dp=2", "dp=2"};
  expectRefused(options, "dp is given twice");
  options.mesh = {"dp=1048576", "tp=2"};
  expectRefused(options, "--mesh has more than 1048576 ranks");
}

TEST(StrategyOptionsTest, RefusesWhatContradictsTheMesh) {
  StrategyOptions options;
  options.mesh = {"dp=2"};
  options.world = 8;
  expectRefused(options, "--world 8, but --mesh has 2 ranks");
  options.world.reset();
  options.sequenceParallel = true;
  expectRefused(options, "--sp splits the sequence");
  options.sequenceParallel = false;
  options.hsdp = 2;
  expectRefused(options, "--hsdp needs");
  options.zero = 4;
  expectRefused(options, "--zero must be 0 to 3, not 4");
  options.zero = 1;
  options.hsdp = 1;
  expectRefused(options, "--hsdp must be 2 to 1048576, not 1");
  options = {};
  options.world = 0;
  expectRefused(options, "--world must be 1 to 1048576, not 0");
  options = {};
  options.remat = "auto";
  expectRefused(options, "--remat auto keeps what fits: give memory");
  options.memoryFrom = MemoryFrom::kCluster;
  EXPECT_EQ(strategyFromOptions(options)->remat, RematPolicy::kAuto);
  options.remat = "selektive";
  expectRefused(options,
                "--remat: there is no remat policy 'selektive'; did you mean 'selective'?");
}

TEST(StrategyOptionsTest, RefusesShorthandBesideAFile) {
  StrategyOptions options;
  options.file = writeStrategy("mesh: {dp: 4, tp: 2}\n");
  options.world = 4;
  expectRefused(options, "ranks: drop --world");
  options.world.reset();
  options.mesh = {"dp=4", "tp=2"};
  options.zero = 0;
  EXPECT_THAT(strategyFromOptions(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--strategy and --mesh, --zero say the same thing"),
                             HasSubstr(options.file))));
}

}  // namespace
}  // namespace oriel::driver
