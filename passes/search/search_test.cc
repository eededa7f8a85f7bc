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
#include "passes/strategy/strategy_reader.h"

namespace oriel {
namespace {

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
  SearchProblem problem = ProblemOn(1, 4);
  problem.cluster.device.memory = GetParam() * kGiB;
  ExpectWhatBruteForceFinds(problem);
  problem.positions = 64;
  problem.hasContext = true;
  ExpectWhatBruteForceFinds(problem);
}

// One that looks ahead, and leaves out what is like what does not fit.
TEST_P(SearchTest, ALongSearchFindsWhatBruteForceFinds) {
  SearchProblem problem = ProblemOn(16, 4);
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
  SearchProblem problem = ProblemOn(16, 4);
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
  SearchProblem problem = ProblemOn(1, 4);
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
  SearchProblem problem = ProblemOn(4, 8);
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
  SearchProblem problem = ProblemOn(1, 4);
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
  SearchProblem problem = ProblemOn(1, 4);
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
  SearchProblem problem = ProblemOn(1, 4);
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
      searchStrategies(ProblemOn(1, 4), {}, [](const std::vector<Strategy>& strategies) {
        return std::vector<absl::StatusOr<Evaluation>>(strategies.size(),
                                                       absl::UnimplementedError("no such op"));
      });
  EXPECT_EQ(result.status().message(), "no such op");
}

TEST(SearchTest, ErrorsOfSomeLeaveTheOthers) {
  SearchProblem problem = ProblemOn(1, 4);
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
  EXPECT_GT(result->refused, 0);
  EXPECT_LT(result->refused, result->simulated);
  EXPECT_EQ(result->firstRefusal.message(), "not whole");
}

// Of a model that one rank has no room for: two ranks do not divide it, four divide some of it.
TEST(SearchTest, AddsZerosWhereThatIsFaster) {
  SearchProblem problem = ProblemOn(1, 4);
  problem.paddable = {2, 4};
  Machine machine;
  const auto evaluate = [&](const std::vector<Strategy>& strategies) {
    std::vector<absl::StatusOr<Evaluation>> found = machine(strategies);
    for (size_t i = 0; i < strategies.size(); ++i) {
      const int64_t tp = strategies[i].mesh.tp;
      EXPECT_TRUE(tp > 1 || !strategies[i].padding);
      if (tp == 1) found[i]->programs.front().bytes.front() = 17. * kGiB;
      if (tp == 1 || strategies[i].padding) continue;
      if (tp == 2) found[i] = absl::InvalidArgumentError("tp = 2 does not divide the heads");
      if (tp == 4) {
        found[i]->seconds *= 1.5;
        found[i]->microbatch.forward *= 1.5;
        found[i]->microbatch.backward *= 1.5;
      }
    }
    return found;
  };
  const absl::StatusOr<SearchResult> result = searchStrategies(problem, {}, evaluate);
  ASSERT_TRUE(result.ok() && result->found()) << result.status();
  EXPECT_TRUE(result->tried.front().candidate.padding);
  // Two with zeros are in its place.
  EXPECT_EQ(result->refused, 0) << result->firstRefusal;
  problem.pins.padding = false;
  const absl::StatusOr<SearchResult> without = searchStrategies(problem, {}, evaluate);
  ASSERT_TRUE(without.ok() && without->found()) << without.status();
  EXPECT_GT(without->refused, 0);
  for (const TriedStrategy& tried : without->tried) EXPECT_FALSE(tried.candidate.padding);
  EXPECT_LT(result->tried.front().evaluation.seconds, without->tried.front().evaluation.seconds);
  problem.pins.padding = true;
  const absl::StatusOr<SearchResult> with = searchStrategies(problem, {}, evaluate);
  ASSERT_TRUE(with.ok() && with->found()) << with.status();
  EXPECT_EQ(with->refused, 0);
  for (const TriedStrategy& tried : with->tried) {
    EXPECT_EQ(tried.candidate.padding, tried.candidate.tp > 1);
  }
}

// Not where a microbatch takes longer with them.
TEST(SearchTest, AddsNoZerosWhereThatIsSlower) {
  SearchProblem problem = ProblemOn(1, 4);
  problem.pins.tp = 4;
  problem.paddable = {4};
  Machine machine;
  const absl::StatusOr<SearchResult> result =
      searchStrategies(problem, {}, [&](const std::vector<Strategy>& strategies) {
        std::vector<absl::StatusOr<Evaluation>> found = machine(strategies);
        for (size_t i = 0; i < strategies.size(); ++i) {
          if (strategies[i].padding) found[i]->microbatch.forward *= 2;
          if (strategies[i].padding) found[i]->seconds *= 2;
        }
        return found;
      });
  ASSERT_TRUE(result.ok() && result->found()) << result.status();
  EXPECT_FALSE(result->tried.front().candidate.padding);
}

TEST(SearchTest, TriesStagesSideBySide) {
  SearchProblem problem = ProblemOn(2, 4);
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
