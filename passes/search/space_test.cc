#include "passes/search/space.h"

#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "passes/search/search_testing.h"
#include "passes/strategy/strategy_reader.h"

namespace oriel {
namespace {

TEST(SpaceTest, HasWhatTheBatchAndTheMachinesAllow) {
  const SearchProblem problem = ProblemOn(2, 4);
  const std::vector<Candidate> all = allCandidates(problem);
  std::set<Candidate> unique(all.begin(), all.end());
  EXPECT_EQ(unique.size(), all.size());
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  std::set<int64_t> tps, shards;
  for (const Candidate& c : all) {
    EXPECT_EQ(c.ranks(), 8);
    EXPECT_EQ(c.micro * c.microbatches * c.dp, 32);
    EXPECT_LE(c.pp * c.interleave, 8);
    EXPECT_TRUE(c.zero < 2 || c.pp == 1);
    EXPECT_EQ(c.sequenceParallel, c.tp > 1);
    tps.insert(c.tp);
    if (c.tp == 1 && c.pp == 1) shards.insert(c.shards);
    // What is written is what is read.
    const absl::StatusOr<Strategy> read = parseStrategy(c.strategy().text, "");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == c.strategy()) << c.strategy().text;
  }
  EXPECT_EQ(tps, (std::set<int64_t>{1, 2, 4}));  // a layer stays on a node
  EXPECT_EQ(shards, (std::set<int64_t>{1, 4, 8}));
}

TEST(SpaceTest, AModelForOneNumberOfSamples) {
  SearchProblem problem = ProblemOn(1, 4);
  problem.samples = 8;
  for (const Candidate& c : allCandidates(problem)) EXPECT_EQ(c.micro * c.dp, 8);
  problem.samples = 64;
  EXPECT_TRUE(allCandidates(problem).empty());
  EXPECT_EQ(explainEmptySpace(problem).message(),
            "there is no strategy for 4 devices (4 per node), a batch of 32 samples and a model of "
            "8 parts, made for 64 samples at a time: choose another batch.global or number of "
            "devices");
}

TEST(SpaceTest, PositionsAreCutIfPinnedOrAskedFor) {
  SearchProblem problem = ProblemOn(2, 4);
  problem.positions = 12;
  for (const Candidate& c : allCandidates(problem)) EXPECT_EQ(c.cp, 1);
  problem.hasContext = true;
  std::set<int64_t> cps, ranksThatShard;
  for (const Candidate& c : allCandidates(problem)) {
    EXPECT_EQ(c.ranks(), 8);
    EXPECT_EQ(c.micro * c.microbatches * c.dp, 32);
    EXPECT_TRUE(c.zero == 0 || c.dp * c.cp > 1) << c.shortText();
    cps.insert(c.cp);
    if (c.cp == 4 && c.zero > 0) ranksThatShard.insert(c.sharing());
    const absl::StatusOr<Strategy> read = parseStrategy(c.strategy().text, "");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == c.strategy()) << c.strategy().text;
    EXPECT_EQ(read->mesh.ofSample(), c.ofSample());
  }
  EXPECT_EQ(cps, (std::set<int64_t>{1, 2, 4}));  // 8 does not divide the positions
  EXPECT_EQ(ranksThatShard, (std::set<int64_t>{4, 8}));
  problem.hasContext = false;
  problem.pins.cp = 2;
  for (const Candidate& c : allCandidates(problem)) EXPECT_EQ(c.cp, 2);
  problem.pins.cp = 8;
  EXPECT_EQ(explainEmptySpace(problem).message(),
            "no strategy has cp=8 for 8 devices (4 per node), a batch of 32 samples and a model of "
            "8 parts; cp is one of 1, 2, 4 there: it divides the 12 positions");
}

TEST(SpaceTest, NoPositions) {
  SearchProblem problem = ProblemOn(2, 4);
  problem.pins.cp = 2;
  EXPECT_EQ(explainEmptySpace(problem).message(),
            "no strategy has cp=2 for 8 devices (4 per node), a batch of 32 samples and a model of "
            "8 parts; its loss has no positions to cut");
}

TEST(SpaceTest, PinsThatContradict) {
  SearchProblem problem = ProblemOn(1, 8);
  problem.pins.tp = 3;
  EXPECT_EQ(explainEmptySpace(problem).message(),
            "no strategy has tp=3 for 8 devices (8 per node), a batch of 32 samples and a model of "
            "8 parts; tp is one of 1, 2, 4, 8 there");
  problem.pins.tp = 8;
  problem.pins.dp = 2;
  problem.pins.zero = 1;
  EXPECT_EQ(explainEmptySpace(problem).message(),
            "tp=8 and dp=2 exclude each other for 8 devices (8 per node), a batch of 32 samples "
            "and a model of 8 parts; tp is one of 1, 2, 4 there with dp=2");
}

// Where each of the ranks that split a layer has whole samples.
TEST(SpaceTest, EncodersApart) {
  SearchProblem problem = ProblemOn(1, 4);
  const Strategy::Module encoder = {"vision", {"model.vision.*"}, std::nullopt};
  problem.encoders = std::make_shared<const std::vector<Strategy::Module>>(1, encoder);
  for (const Candidate& c : allCandidates(problem)) {
    EXPECT_EQ(c.apart, nullptr);
    const std::vector<Candidate> others = neighboursOf(c, problem);
    const auto apart = std::find_if(others.begin(), others.end(),
                                    [](const Candidate& other) { return other.apart != nullptr; });
    EXPECT_EQ(apart != others.end(), c.tp > 1 && c.micro % c.tp == 0) << c.shortText();
  }
  problem.pins.apart = true;
  const std::vector<Candidate> all = allCandidates(problem);
  ASSERT_FALSE(all.empty());
  for (const Candidate& c : all) {
    ASSERT_NE(c.apart, nullptr);
    const Strategy strategy = c.strategy();
    ASSERT_EQ(strategy.modules.size(), 1u);
    EXPECT_EQ(strategy.modules.front().mesh->dp, c.dp * c.tp);
    const absl::StatusOr<Strategy> read = parseStrategy(strategy.text, "");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == strategy) << strategy.text;
    for (const Candidate& other : neighboursOf(c, problem)) EXPECT_NE(other.apart, nullptr);
  }
}

Candidate FourStages() {
  Candidate candidate;
  candidate.pp = 4;
  candidate.dp = 2;
  candidate.micro = 4;
  candidate.microbatches = 4;
  return candidate;
}

std::vector<Candidate> SideBySide(const Candidate& candidate, const SearchProblem& problem) {
  std::vector<Candidate> found;
  for (const Candidate& other : neighboursOf(candidate, problem)) {
    if (other.placement == Placement::kDpOutermost) found.push_back(other);
  }
  return found;
}

TEST(NeighboursTest, StagesSideBySideWhereLinksDiffer) {
  const SearchProblem problem = ProblemOn(2, 4);
  const Candidate candidate = FourStages();
  const std::vector<Candidate> found = SideBySide(candidate, problem);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(candidate < found.front());
  EXPECT_EQ(found.front().shortText(), candidate.shortText() + " dp_outermost");
  EXPECT_EQ(found.front().strategy().pipeline->placement, Placement::kDpOutermost);
  const std::vector<Candidate> back = neighboursOf(found.front(), problem);
  EXPECT_NE(std::find(back.begin(), back.end(), candidate), back.end());
  for (const Candidate& other : back) {
    EXPECT_TRUE(parseStrategy(other.strategy().text, "").ok()) << other.strategy().text;
  }
  // All on a node; one level of links; one rank of a stage; one stage.
  EXPECT_TRUE(SideBySide(candidate, ProblemOn(2, 8)).empty());
  SearchProblem flat = problem;
  flat.cluster.links.pop_back();
  EXPECT_TRUE(SideBySide(candidate, flat).empty());
  for (const Candidate& other : allCandidates(problem)) {
    EXPECT_EQ(SideBySide(other, problem).empty(), other.pp == 1 || other.dp == 1);
  }
}

TEST(SpaceTest, StagesSideBySideOnlyIfPinned) {
  SearchProblem problem = ProblemOn(2, 4);
  for (const Candidate& c : allCandidates(problem)) {
    EXPECT_EQ(c.placement, Placement::kPpOutermost);
  }
  problem.pins.placement = Placement::kDpOutermost;
  const std::vector<Candidate> all = allCandidates(problem);
  ASSERT_FALSE(all.empty());
  for (const Candidate& c : all) {
    EXPECT_EQ(c.placement, Placement::kDpOutermost);
    EXPECT_TRUE(c.pp > 1 && c.dp > 1);
    // What shards within a node is what it has of a stage: four ranks of two stages.
    const bool isDivided = c.zero > 0 && c.shards < c.dp;
    EXPECT_TRUE(!isDivided || c.shards == 4 / c.pp / c.tp) << c.shortText();
  }
  problem.pins.pp = 1;
  EXPECT_EQ(explainEmptySpace(problem).message(),
            "pp=1 and placement=dp_outermost exclude each other for 8 devices (4 per node), a "
            "batch of 32 samples and a model of 8 parts; pp is one of 2, 4 there with "
            "placement=dp_outermost");
}

TEST(PinsTest, WordsAreWhatIsRead) {
  const std::vector<std::string> words = {"tp=2",           "zero=1",
                                          "hsdp=0",         "micro=4",
                                          "schedule=zb-h1", "remat=selective",
                                          "sp=off",         "apart=on",
                                          "padding=off",    "placement=dp_outermost"};
  const absl::StatusOr<Pins> pins = parsePins(words);
  ASSERT_TRUE(pins.ok()) << pins.status();
  EXPECT_EQ(pins->words(), words);
}

TEST(SpaceTest, PaddingWithSizesThatAreBetterSo) {
  SearchProblem problem = ProblemOn(2, 4);
  for (const Candidate& c : allCandidates(problem)) EXPECT_FALSE(c.padding);
  problem.paddable = {2, 4};
  problem.padded = {4};
  int padded = 0;
  for (const Candidate& c : allCandidates(problem)) {
    const Strategy strategy = c.strategy();
    EXPECT_EQ(strategy.padding, c.tp == 4);
    padded += strategy.padding ? 1 : 0;
    const absl::StatusOr<Strategy> read = parseStrategy(strategy.text, "");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == strategy) << strategy.text;
  }
  EXPECT_GT(padded, 0);
}

TEST(SpaceTest, NextToASizeWithPaddingIsTheSameWithout) {
  SearchProblem problem = ProblemOn(2, 4);
  problem.paddable = problem.padded = {4};
  std::vector<Candidate> all = allCandidates(problem);
  const auto isPadded = [](const Candidate& c) { return c.padding && c.pp == 1; };
  const Candidate from = *std::find_if(all.begin(), all.end(), isPadded);
  int without = 0;
  for (const Candidate& other : neighboursOf(from, problem)) {
    if (other.tp != 4) EXPECT_FALSE(other.padding) << other.shortText();
    if (other.tp == 4 && !other.padding) ++without;
  }
  EXPECT_EQ(without, 1);
  problem.pins.padding = true;
  for (const Candidate& other : neighboursOf(from, problem)) {
    EXPECT_EQ(other.padding, other.tp == 4) << other.shortText();
  }
}

// 0, and as many as there are: one group of all.
TEST(PinsTest, GroupsThatShard) {
  Candidate candidate;
  candidate.dp = candidate.shards = 4;
  candidate.zero = 1;
  const auto allowed = [&](const char* word) { return parsePins({word})->allow(candidate); };
  EXPECT_TRUE(allowed("hsdp=0"));
  EXPECT_TRUE(allowed("hsdp=4"));
  EXPECT_FALSE(allowed("hsdp=2"));
  candidate.shards = 2;
  EXPECT_FALSE(allowed("hsdp=0"));
  EXPECT_FALSE(allowed("hsdp=4"));
  EXPECT_TRUE(allowed("hsdp=2"));
  candidate.zero = 0;
  EXPECT_TRUE(allowed("hsdp=0"));
  EXPECT_FALSE(allowed("hsdp=2"));
  EXPECT_EQ(parsePins({"hsdp=1"}).status().message(),
            "can't use 'hsdp=1'; a group of one rank shards nothing, which is zero=0");
}

TEST(PinsTest, Malformed) {
  EXPECT_EQ(parsePins({"tp"}).status().message(), "can't use 'tp'; write KEY=VALUE, e.g. tp=2");
  EXPECT_EQ(parsePins({"zero=4"}).status().message(),
            "can't use 'zero=4'; zero is a number from 0 to 3");
  EXPECT_EQ(parsePins({"tp=1", "tp=2"}).status().message(), "tp is given twice");
  EXPECT_EQ(parsePins({"mirco=2"}).status().message(),
            "there is no 'mirco' to fix; did you mean 'micro'?");
  EXPECT_TRUE(absl::IsInvalidArgument(parsePins({"remat=auto"}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(parsePins({"placement=tp"}).status()));
}

TEST(NeighboursTest, AreStrategiesOfTheSameRanks) {
  const SearchProblem problem = ProblemOn(2, 4);
  const std::vector<Candidate> all = allCandidates(problem);
  EXPECT_FALSE(all.empty());
  for (const Candidate& candidate : all) {
    const std::vector<Candidate> neighbours = neighboursOf(candidate, problem);
    EXPECT_FALSE(neighbours.empty()) << candidate.strategy().text;
    for (const Candidate& other : neighbours) {
      EXPECT_FALSE(other == candidate);
      EXPECT_EQ(other.ranks(), 8);
      EXPECT_EQ(other.micro * other.microbatches * other.dp, 32);
      EXPECT_TRUE(parseStrategy(other.strategy().text, "").ok()) << other.strategy().text;
    }
  }
}

TEST(NeighboursTest, CutPositionsWhereTheyDivide) {
  SearchProblem problem = ProblemOn(2, 4);
  const auto cps = [&](const Candidate& from) {
    std::set<std::pair<int64_t, int64_t>> found;  // with tp
    for (const Candidate& other : neighboursOf(from, problem)) {
      EXPECT_EQ(other.ranks(), 8);
      EXPECT_TRUE(parseStrategy(other.strategy().text, "").ok()) << other.strategy().text;
      if (other.pp == 1) found.insert({other.tp, other.cp});
    }
    return found;
  };
  Candidate from;
  from.tp = 4;
  from.dp = 2;
  from.micro = 2;
  from.microbatches = 8;
  EXPECT_EQ(cps(from), (std::set<std::pair<int64_t, int64_t>>{{2, 1}, {4, 1}}));
  problem.positions = 64;
  EXPECT_EQ(cps(from), (std::set<std::pair<int64_t, int64_t>>{{2, 1}, {4, 1}, {4, 2}, {2, 2}}));
  from.tp = 1;
  from.cp = 4;
  EXPECT_EQ(cps(from),
            (std::set<std::pair<int64_t, int64_t>>{{2, 4}, {1, 4}, {1, 8}, {1, 2}, {2, 2}}));
}

TEST(NeighboursTest, HaveAboutABlockOnEachStage) {
  SearchProblem problem = ProblemOn(1, 4);
  problem.parts = 100;
  problem.globalBatch = 64;
  std::set<int64_t> found;
  for (const Candidate& candidate : allCandidates(problem)) {
    if (candidate.pp != 4 || candidate.interleave != 2) continue;
    for (const Candidate& other : neighboursOf(candidate, problem)) {
      if (other.pp == 4) found.insert(other.interleave);
    }
  }
  EXPECT_EQ(found, (std::set<int64_t>{1, 2, 3, 4, 18}));  // 18 x 4 of 100
}

}  // namespace
}  // namespace oriel
