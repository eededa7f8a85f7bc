#include "passes/search/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "passes/search/bound.h"
#include "passes/search/search_testing.h"
#include "passes/stage/balance.h"
#include "passes/strategize/strategy_reader.h"

namespace oriel {
namespace {

SearchProblem Problem(int64_t nodes, int64_t devices) {
  SearchProblem problem;
  problem.cluster = TwoLevelCluster(nodes, devices);
  problem.ranks = nodes * devices;
  problem.globalBatch = 32;
  problem.parts = 8;
  return problem;
}

// A machine by a formula, that takes no less than the bounds: more samples at a time are a little
// faster, each piece of a layer or of the positions costs collectives, stages wait for the busiest
// of their cuts, and what is sharded is sent.
class Machine {
 public:
  std::vector<absl::StatusOr<Evaluation>> operator()(const std::vector<Strategy>& strategies) {
    std::vector<absl::StatusOr<Evaluation>> found;
    for (const Strategy& strategy : strategies) {
      ++asked;
      found.push_back(Evaluate(strategy));
    }
    return found;
  }

  Evaluation Evaluate(const Strategy& strategy) const {
    if (strategy.remat == RematPolicy::kFull) return Evaluate(strategy, 1);
    double again = 0;  // the share of all that can run again
    if (strategy.remat == RematPolicy::kAuto) {
      const auto memory = static_cast<double>(*strategy.memory);
      while (again < 1 && Evaluate(strategy, again).peakBytes() > memory) again += 1. / 64;
    }
    return Evaluate(strategy, again);
  }

  Evaluation Evaluate(const Strategy& strategy, double again) const {
    const auto tp = static_cast<double>(strategy.mesh.tp),
               cp = static_cast<double>(strategy.mesh.cp),
               dp = static_cast<double>(strategy.mesh.dp);
    const auto pp = static_cast<double>(strategy.grids());
    const auto runs = static_cast<double>(*strategy.pipeline->microbatches);
    const double micro = static_cast<double>(batch) / dp / runs;
    const double shards = cp * static_cast<double>(strategy.hsdp.value_or(strategy.mesh.dp));
    MicrobatchCost cost;
    cost.forward = (0.01 * micro + 0.002) / tp / cp + 0.004 * (tp - 1) + 0.003 * (cp - 1);
    cost.backward = (2 + again) * cost.forward;
    cost.update = 0.01 / tp;
    cost.parameters = 4. * kGiB / tp;
    cost.gradients = 8. * kGiB / tp;
    cost.optimizerState = 16. * kGiB / tp;
    cost.stash = (2 - 1.8 * again) * kGiB * micro / tp / cp;
    const bool isZeroBubble = strategy.pipeline->schedule == ScheduleKind::kZbH1;
    const double faster = isZeroBubble ? 3 : static_cast<double>(strategy.pipeline->interleave);
    // Of the last part, more is split.
    cost.parts = {1, 1, 1, 1, 1, 1, 1, 1 + 4 / tp / cp};
    const std::vector<double> grids =
        gridCosts(cost.parts, balancedCuts(cost.parts, strategy.stageCount(), strategy.grids()),
                  strategy.grids());
    const double busiest = *std::max_element(grids.begin(), grids.end()) / (8 + 4 / tp / cp);
    const double all = cost.forward + cost.backward;
    const double held = strategy.pipeline->interleave > 1 ? 1.5 * pp : pp;
    Evaluation evaluation;
    evaluation.seconds = (runs * busiest + (1 - busiest) / faster) * all * 1.02 + cost.update +
                         (strategy.zero == 3 ? 0.02 : 0.005 * strategy.zero) * runs * dp * cp;
    Evaluation::Program program;
    program.bytes = {(cost.parameters / (strategy.zero >= 3 ? shards : 1) +
                      cost.gradients / (strategy.zero >= 2 ? shards : 1) +
                      cost.optimizerState / (strategy.zero >= 1 ? shards : 1)) /
                         pp,
                     cost.stash * std::min(runs, held) / pp};
    program.computing = runs * busiest * all + cost.update;
    evaluation.programs = {program};
    evaluation.microbatch = cost;
    return evaluation;
  }

  int64_t batch = 32;
  int64_t asked = 0;
};

TEST(SpaceTest, HasWhatTheBatchAndTheMachinesAllow) {
  const SearchProblem problem = Problem(2, 4);
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
  SearchProblem problem = Problem(1, 4);
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
  SearchProblem problem = Problem(2, 4);
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
  SearchProblem problem = Problem(2, 4);
  problem.pins.cp = 2;
  EXPECT_EQ(explainEmptySpace(problem).message(),
            "no strategy has cp=2 for 8 devices (4 per node), a batch of 32 samples and a model of "
            "8 parts; its loss has no positions to cut");
}

TEST(SpaceTest, PinsThatContradict) {
  SearchProblem problem = Problem(1, 8);
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
  SearchProblem problem = Problem(1, 4);
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
  const SearchProblem problem = Problem(2, 4);
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
  EXPECT_TRUE(SideBySide(candidate, Problem(2, 8)).empty());
  SearchProblem flat = problem;
  flat.cluster.links.pop_back();
  EXPECT_TRUE(SideBySide(candidate, flat).empty());
  for (const Candidate& other : allCandidates(problem)) {
    EXPECT_EQ(SideBySide(other, problem).empty(), other.pp == 1 || other.dp == 1);
  }
}

TEST(SpaceTest, StagesSideBySideOnlyIfPinned) {
  SearchProblem problem = Problem(2, 4);
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
  const std::vector<std::string> words = {"tp=2",    "zero=1",         "hsdp=0",
                                          "micro=4", "schedule=zb-h1", "remat=selective",
                                          "sp=off",  "apart=on",       "placement=dp_outermost"};
  const absl::StatusOr<Pins> pins = parsePins(words);
  ASSERT_TRUE(pins.ok()) << pins.status();
  EXPECT_EQ(pins->words(), words);
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
  const SearchProblem problem = Problem(2, 4);
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
  SearchProblem problem = Problem(2, 4);
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
  SearchProblem problem = Problem(1, 4);
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

class SearchTest : public testing::TestWithParam<int64_t> {};

void ExpectBounds(const SearchResult& result) {
  for (const TriedStrategy& tried : result.tried) {
    EXPECT_LE(tried.bound, tried.evaluation.seconds) << tried.candidate.shortText();
  }
}

// Nothing in the space is faster than what is found, and few are asked for.
void ExpectWhatBruteForceFinds(const SearchProblem& problem) {
  Machine machine;
  SearchOptions options;
  options.tolerance = options.structureTolerance = 0;
  const absl::StatusOr<SearchResult> result = searchStrategies(
      problem, options, [&](const auto& strategies) { return machine(strategies); });
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<Candidate> all = allCandidates(problem);
  EXPECT_EQ(result->candidates, static_cast<int64_t>(all.size()));
  double best = 0;
  for (const Candidate& candidate : all) {
    const Evaluation evaluation = machine.Evaluate(candidate.strategy());
    const bool fits = evaluation.peakBytes() <= static_cast<double>(problem.cluster.device.memory);
    if (fits && (best == 0 || evaluation.seconds < best)) best = evaluation.seconds;
  }
  ExpectBounds(*result);
  ASSERT_EQ(result->found(), best > 0);
  if (best > 0) {
    EXPECT_LE(result->tried.front().evaluation.seconds, best);
    EXPECT_TRUE(result->isWhole);
  }
  EXPECT_LT(machine.asked, static_cast<int64_t>(all.size()) / 2);
}

TEST_P(SearchTest, FindsWhatBruteForceFinds) {
  SearchProblem problem = Problem(1, 4);
  problem.cluster.device.memory = GetParam() * kGiB;
  ExpectWhatBruteForceFinds(problem);
  problem.positions = 64;
  problem.hasContext = true;
  ExpectWhatBruteForceFinds(problem);
}

// One that looks ahead, and leaves out what is like what does not fit.
TEST_P(SearchTest, ALongSearchFindsWhatBruteForceFinds) {
  SearchProblem problem = Problem(16, 4);
  problem.cluster.links.back().bandwidth = 1e15;  // what is sent there, the machine has no time for
  problem.globalBatch = 512;
  problem.cluster.device.memory = GetParam() * kGiB;
  Machine machine;
  machine.batch = problem.globalBatch;
  SearchOptions options;
  options.tolerance = options.structureTolerance = 0;
  const absl::StatusOr<SearchResult> result = searchStrategies(
      problem, options, [&](const auto& strategies) { return machine(strategies); });
  ASSERT_TRUE(result.ok()) << result.status();
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : allCandidates(problem)) {
    const Evaluation evaluation = machine.Evaluate(candidate.strategy());
    const bool fits = evaluation.peakBytes() <= static_cast<double>(GetParam() * kGiB);
    if (fits) best = std::min(best, evaluation.seconds);
  }
  ASSERT_EQ(result->found(), std::isfinite(best));
  if (result->found()) {
    EXPECT_LE(result->tried.front().evaluation.seconds, best);
  }
  ExpectBounds(*result);
  EXPECT_LT(machine.asked, result->candidates / 4);
  std::set<Candidate> unique;
  for (const TriedStrategy& tried : result->tried) {
    EXPECT_TRUE(unique.insert(tried.candidate).second) << tried.candidate.shortText();
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, SearchTest, testing::Values(1, 6, 8, 10, 14, 20, 64));

// Fewer shards, or more samples at a time, take no less.
TEST(SearchTest, WhatIsLikeWhatDoesNotFitIsNotAsked) {
  SearchProblem problem = Problem(16, 4);
  problem.globalBatch = 512;
  problem.cluster.device.memory = 64 * kGiB;
  Machine machine;
  machine.batch = problem.globalBatch;
  int64_t asked = 0, inSpace = 0;
  const auto evaluate = [&](const std::vector<Strategy>& strategies) {
    std::vector<absl::StatusOr<Evaluation>> found = machine(strategies);
    for (size_t i = 0; i < found.size(); ++i) {
      found[i]->programs.front().bytes.push_back(100. * kGiB);  // which no bound knows
      asked += strategies[i].grids() > 1;
    }
    return found;
  };
  const absl::StatusOr<SearchResult> result = searchStrategies(problem, {}, evaluate);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->found());
  EXPECT_TRUE(result->isWhole);
  for (const Candidate& candidate : allCandidates(problem)) {
    inSpace += candidate.pp > 1 && candidate.remat != RematPolicy::kSelective;
  }
  EXPECT_LT(asked, inSpace / 2) << "of " << inSpace;
  EXPECT_GT(asked, 0);
}

TEST(SearchTest, TheWantedBestAreExact) {
  SearchProblem problem = Problem(1, 4);
  Machine machine;
  SearchOptions options;
  options.wanted = 5;
  options.tolerance = options.structureTolerance = 0;
  const absl::StatusOr<SearchResult> result = searchStrategies(
      problem, options, [&](const auto& strategies) { return machine(strategies); });
  ASSERT_TRUE(result.ok());
  std::vector<double> all;
  for (const Candidate& candidate : allCandidates(problem)) {
    const Evaluation evaluation = machine.Evaluate(candidate.strategy());
    if (candidate.remat == RematPolicy::kSelective) continue;  // the same as none on this machine
    if (evaluation.peakBytes() <= 16. * kGiB) all.push_back(evaluation.seconds);
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_LE(result->tried[i].evaluation.seconds, all[i]);
  }
}

TEST(SearchTest, EndsWithWhatFitsWhenTheTimeIsUp) {
  SearchProblem problem = Problem(4, 8);
  problem.globalBatch = 256;
  Machine machine;
  machine.batch = problem.globalBatch;
  const Evaluate evaluate = [&](const auto& strategies) { return machine(strategies); };
  SearchOptions options;
  options.explain = true;
  const absl::StatusOr<SearchResult> whole = searchStrategies(problem, options, evaluate);
  int asked = 0;
  options.isTimeUp = [&] { return ++asked > 0; };
  const absl::StatusOr<SearchResult> ended = searchStrategies(problem, options, evaluate);
  ASSERT_TRUE(whole.ok() && ended.ok());
  EXPECT_TRUE(ended->found());
  EXPECT_GT(asked, 0);
  EXPECT_LT(ended->simulated, whole->simulated);
  EXPECT_TRUE(whole->isWhole);
  EXPECT_FALSE(ended->isWhole);
  EXPECT_GE(ended->tried.front().evaluation.seconds, whole->tried.front().evaluation.seconds);
}

TEST(SearchTest, TheSimplestOfThoseThatAreAsFast) {
  SearchProblem problem = Problem(1, 4);
  Machine machine;
  SearchOptions options;
  const auto evaluate = [&](const auto& strategies) { return machine(strategies); };
  options.tolerance = options.structureTolerance = 0;
  const absl::StatusOr<SearchResult> fastest = searchStrategies(problem, options, evaluate);
  options.tolerance = options.structureTolerance = 0.2;
  options.wanted = 20;
  const absl::StatusOr<SearchResult> simplest = searchStrategies(problem, options, evaluate);
  ASSERT_TRUE(fastest.ok() && simplest.ok());
  const TriedStrategy& best = simplest->tried.front();
  EXPECT_TRUE(best.candidate < fastest->tried.front().candidate);
  EXPECT_LE(best.evaluation.seconds, 1.2 * fastest->tried.front().evaluation.seconds);
  for (const TriedStrategy& tried : simplest->tried) {
    if (!tried.fits || tried.evaluation.seconds > 1.2 * fastest->tried.front().evaluation.seconds) {
      continue;
    }
    const Candidate &a = tried.candidate, &b = best.candidate;
    EXPECT_GE(std::tie(a.pp, a.tp, a.cp, a.interleave), std::tie(b.pp, b.tp, b.cp, b.interleave))
        << a.shortText();
  }
  // The structure may cost more than what else there is to choose.
  options.tolerance = 0;
  const absl::StatusOr<SearchResult> ofStructure = searchStrategies(problem, options, evaluate);
  ASSERT_TRUE(ofStructure.ok());
  const TriedStrategy& first = ofStructure->tried.front();
  EXPECT_LT(first.candidate.pp, fastest->tried.front().candidate.pp);
  for (const TriedStrategy& tried : ofStructure->tried) {
    const Candidate &a = tried.candidate, &b = first.candidate;
    if (!tried.fits ||
        std::tie(a.pp, a.tp, a.cp, a.interleave) != std::tie(b.pp, b.tp, b.cp, b.interleave)) {
      continue;
    }
    EXPECT_LE(first.evaluation.seconds, tried.evaluation.seconds) << a.shortText();
  }
}

TEST(SearchTest, ThePinsHold) {
  SearchProblem problem = Problem(1, 4);
  problem.pins.tp = 2;
  problem.pins.remat = RematPolicy::kFull;
  Machine machine;
  const absl::StatusOr<SearchResult> result =
      searchStrategies(problem, {}, [&](const auto& strategies) { return machine(strategies); });
  ASSERT_TRUE(result.ok());
  for (const TriedStrategy& tried : result->tried) {
    EXPECT_EQ(tried.candidate.tp, 2);
    EXPECT_EQ(tried.candidate.remat, RematPolicy::kFull);
  }
}

// What must run again is less than all of it, and more than nothing.
TEST(SearchTest, WhatRunsAgainIsWhatMemoryAsksFor) {
  SearchProblem problem = Problem(1, 4);
  problem.cluster.device.memory = 20 * kGiB;
  Machine machine;
  auto evaluate = [&](const auto& strategies) { return machine(strategies); };
  problem.pins = *parsePins({"tp=1", "pp=1", "micro=4", "zero=1"});
  const absl::StatusOr<SearchResult> asNeeded = searchStrategies(problem, {}, evaluate);
  problem.pins.remat = RematPolicy::kFull;
  const absl::StatusOr<SearchResult> full = searchStrategies(problem, {}, evaluate);
  ASSERT_TRUE(asNeeded.ok() && asNeeded->found() && full.ok() && full->found());
  const TriedStrategy& best = asNeeded->tried.front();
  EXPECT_EQ(best.candidate.remat, RematPolicy::kAuto) << best.candidate.shortText();
  EXPECT_LT(best.evaluation.seconds, full->tried.front().evaluation.seconds);
  EXPECT_EQ(best.candidate.strategy().memory, problem.cluster.device.memory);
  EXPECT_TRUE(*parseStrategy(best.candidate.strategy().text, "") == best.candidate.strategy());
  // All of it is beside the first.
  std::vector<std::string> beside;
  for (const TriedStrategy& other : asNeeded->neighbours) {
    beside.push_back(other.candidate.shortText());
  }
  EXPECT_NE(
      std::find(beside.begin(), beside.end(), best.candidate.with(RematPolicy::kFull).shortText()),
      beside.end());
  for (const TriedStrategy& tried : full->tried) {
    EXPECT_EQ(tried.candidate.remat, RematPolicy::kFull);
  }
}

TEST(SearchTest, AnErrorOfAllIsTheErrorOfTheSearch) {
  const absl::StatusOr<SearchResult> result =
      searchStrategies(Problem(1, 4), {}, [](const std::vector<Strategy>& strategies) {
        return std::vector<absl::StatusOr<Evaluation>>(strategies.size(),
                                                       absl::UnimplementedError("no such op"));
      });
  EXPECT_EQ(result.status().message(), "no such op");
}

TEST(SearchTest, ErrorsOfSomeLeaveTheOthers) {
  SearchProblem problem = Problem(1, 4);
  Machine machine;
  const absl::StatusOr<SearchResult> result =
      searchStrategies(problem, {}, [&](const std::vector<Strategy>& strategies) {
        std::vector<absl::StatusOr<Evaluation>> found = machine(strategies);
        for (size_t i = 0; i < strategies.size(); ++i) {
          if (strategies[i].mesh.tp == 1) found[i] = absl::InvalidArgumentError("not whole");
        }
        return found;
      });
  ASSERT_TRUE(result.ok());
  ASSERT_TRUE(result->found());
  EXPECT_GT(result->tried.front().candidate.tp, 1);
}

TEST(SearchTest, TriesStagesSideBySide) {
  SearchProblem problem = Problem(2, 4);
  problem.cluster.links.back().bandwidth = 1e15;
  problem.pins.pp = 2;
  problem.pins.dp = 4;
  Machine machine;
  const auto evaluate = [&](const std::vector<Strategy>& strategies) {
    std::vector<absl::StatusOr<Evaluation>> found = machine(strategies);
    for (size_t i = 0; i < strategies.size(); ++i) {
      const bool isBeside = strategies[i].pipeline->placement == Placement::kDpOutermost;
      if (!isBeside) found[i]->seconds *= 1.1;  // by its transfers
    }
    return found;
  };
  const absl::StatusOr<SearchResult> result = searchStrategies(problem, {}, evaluate);
  ASSERT_TRUE(result.ok() && result->found());
  EXPECT_EQ(result->tried.front().candidate.placement, Placement::kDpOutermost);
  problem.pins.placement = Placement::kPpOutermost;
  const absl::StatusOr<SearchResult> pinned = searchStrategies(problem, {}, evaluate);
  ASSERT_TRUE(pinned.ok() && pinned->found());
  for (const TriedStrategy& tried : pinned->tried) {
    EXPECT_EQ(tried.candidate.placement, Placement::kPpOutermost);
  }
}

}  // namespace
}  // namespace oriel
