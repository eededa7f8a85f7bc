#include "driver/strategy_search.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "driver/console.h"
#include "driver/plan_text.h"
#include "driver/strategy_evaluator.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

std::string devicesText(int64_t count) {
  return absl::StrCat(count, count == 1 ? " device" : " devices");
}

class Finder {
 public:
  Finder(const StrategySearch& search, const Vocabulary& vocabulary)
      : search_(search), vocabulary_(vocabulary) {}

  absl::StatusOr<FoundStrategies> run() {
    FoundStrategies found;
    ORIEL_ASSIGN_OR_RETURN(found.problem, problemOn(search_.simulation.cluster));
    if (search_.isSmallest) {
      ORIEL_ASSIGN_OR_RETURN(found.problem.ranks, fewestRanks(found.problem));
    }
    absl::StatusOr<SearchResult> result = searchIn(&found.problem);
    if (!result.ok()) return noneCompiles(found.problem, result.status());
    found.result = *std::move(result);
    if (!found.result.found()) return nothingFits(found.problem, found.result);
    found.seconds = secondsSinceStart();
    progress(absl::StrFormat("search: %d of %d strategies simulated in %.1f s",
                             found.result.simulated, found.result.candidates, found.seconds));
    return found;
  }

 private:
  double secondsSinceStart() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  absl::StatusOr<SearchProblem> problemOn(const Cluster& cluster) {
    SimulationOptions options = search_.simulation;
    options.cluster = cluster;
    evaluator_ = std::make_unique<StrategyEvaluator>(options, vocabulary_);
    SearchProblem problem;
    problem.cluster = cluster;
    problem.ranks = search_.ranks.value_or(cluster.devices());
    problem.globalBatch = options.recipe.globalBatch;
    problem.isOneMicrobatch = options.recipe.isOneMicrobatch();
    problem.pins = search_.pins;
    ORIEL_ASSIGN_OR_RETURN(const StrategyEvaluator::ModelFacts facts, evaluator_->facts());
    problem.parts = facts.structure.parts;
    problem.positions = facts.structure.positions;
    problem.samples = facts.samples;
    problem.encoderShare = facts.structure.encoders.share;
    if (const auto& encoders = facts.structure.encoders.modules; !encoders.empty()) {
      problem.encoders = std::make_shared<const std::vector<Strategy::Module>>(encoders);
    }
    return problem;
  }

  // With context parallelism in the space where nothing fits without.
  absl::StatusOr<SearchResult> searchWith(SearchProblem* problem, const SearchOptions& options) {
    if (problem->pins.padding.value_or(true)) {
      std::set<int64_t> sizes;
      for (const Candidate& candidate : allCandidates(*problem)) sizes.insert(candidate.tp);
      problem->paddable = evaluator_->paddable(sizes);
    }
    absl::StatusOr<SearchResult> result = searchSpace(*problem, options);
    if ((result.ok() && result->found()) || !mayAddContext(*problem)) return result;
    problem->hasContext = true;
    absl::StatusOr<SearchResult> wider = searchSpace(*problem, options);
    if (!wider.ok()) return result;
    if (result.ok()) wider->simulated += result->simulated;
    return wider;
  }

  absl::StatusOr<SearchResult> searchSpace(const SearchProblem& problem,
                                           const SearchOptions& options) {
    progress(absl::StrCat("search: ", devicesText(problem.ranks),
                          problem.hasContext ? ", with context parallelism" : ""));
    return searchStrategies(problem, options, [this](const std::vector<Strategy>& strategies) {
      return evaluator_->evaluate(strategies);
    });
  }

  static bool mayAddContext(const SearchProblem& problem) {
    return problem.positions > 1 && !problem.hasContext && !problem.pins.cp;
  }

  static bool isEmptyWithoutContext(SearchProblem problem) {
    if (!mayAddContext(problem) || !allCandidates(problem).empty()) return false;
    problem.hasContext = true;
    return !allCandidates(problem).empty();
  }

  // On all ranks, or on the most on which there are strategies where nobody said how many.
  absl::StatusOr<SearchResult> searchIn(SearchProblem* problem) {
    SearchOptions options;
    options.wanted = search_.wanted;
    options.explain = search_.explain;
    options.isTimeUp = [this] {
      return search_.timeLimit && secondsSinceStart() >= *search_.timeLimit;
    };
    const int64_t all = problem->ranks;
    problem->hasContext = isEmptyWithoutContext(*problem);
    if (!search_.ranks && !search_.isSmallest) {
      while (problem->ranks > 1 && allCandidates(*problem).empty()) --problem->ranks;
      if (allCandidates(*problem).empty()) problem->ranks = all;
    }
    return searchWith(problem, options);
  }

  bool fits(SearchProblem problem) {
    problem.hasContext = isEmptyWithoutContext(problem);
    if (allCandidates(problem).empty()) return false;
    SearchOptions options;
    options.objective = SearchOptions::Objective::kFit;
    constexpr int64_t kMaxTries = 40;
    options.mostSimulated = kMaxTries;
    const absl::StatusOr<SearchResult> result = searchWith(&problem, options);
    return result.ok() && result->found();
  }

  // Of those of the cluster; its own number where that is none of them.
  absl::StatusOr<int64_t> fewestRanks(SearchProblem problem) {
    const int64_t most = problem.ranks, node = problem.cluster.devicesPerNode;
    std::vector<int64_t> sizes;
    for (int64_t ranks = 1; ranks < std::min(most, node); ranks *= 2) sizes.push_back(ranks);
    for (int64_t ranks = node; ranks < most; ranks *= 2) sizes.push_back(ranks);
    for (int64_t ranks : sizes) {
      problem.ranks = ranks;
      if (fits(problem)) return ranks;
    }
    return most;
  }

  // On that many ranks, none of the strategies can be. Fewer may do: powers of two divide most.
  absl::Status noneCompiles(SearchProblem problem, const absl::Status& first) {
    if (allCandidates(problem).empty()) return first;  // which says why
    std::string text = absl::StrCat(
        first.message(), "\n  that is the first of the strategies for ", devicesText(problem.ranks),
        " that were tried; no other can be compiled, or has enough memory");
    if (!problem.pins.padding.value_or(true)) {
      absl::StrAppend(&text, "; without --fix padding=off zeros are tried as well");
    }
    int64_t fewer = 1;
    while (fewer * 2 < problem.ranks) fewer *= 2;
    for (; fewer >= 1 && problem.ranks > 1; fewer /= 2) {
      problem.ranks = fewer;
      if (!fits(problem)) continue;
      absl::StrAppend(&text, "; --world ", fewer, " would do");
      break;
    }
    return {first.code(), text};
  }

  absl::Status nothingFits(const SearchProblem& problem, const SearchResult& result) {
    const auto memory = static_cast<double>(problem.cluster.device.memory);
    double least = result.leastBytes;
    std::string with;
    if (!result.tried.empty()) {
      least = result.tried.front().evaluation.peakBytes();
      with = absl::StrCat(" (", result.tried.front().candidate.shortText(), ")");
    }
    const std::string text =
        absl::StrCat("nothing fits: with ", devicesText(problem.ranks), ", a rank needs at least ",
                     bytesText(static_cast<int64_t>(least)), with, " and has ",
                     bytesText(problem.cluster.device.memory), ": ");
    const Cluster& cluster = problem.cluster;
    const int64_t nodes = (problem.ranks + cluster.devicesPerNode - 1) / cluster.devicesPerNode;
    constexpr int64_t kMaxTimes = 1024;
    for (int64_t times = problem.ranks < cluster.devicesPerNode * nodes ? 1 : 2; times <= kMaxTimes;
         times *= 2) {
      const Cluster larger = cluster.withNodes(nodes * times);
      if (static_cast<double>(least) * static_cast<double>(problem.ranks) /
              static_cast<double>(larger.devices()) >
          memory) {
        continue;
      }
      absl::StatusOr<SearchProblem> other = problemOn(larger);
      if (!other.ok()) return other.status();
      other->ranks = larger.devices();
      if (!fits(*other)) continue;
      return absl::ResourceExhaustedError(
          absl::StrCat(text, "the smallest cluster of such nodes that would do has ", larger.nodes,
                       larger.nodes == 1 ? " node" : " nodes", " (", devicesText(larger.devices()),
                       "), doubling from here; or take devices with more memory, or fix less"));
    }
    return absl::ResourceExhaustedError(
        absl::StrCat(text,
                     "more nodes don't help; take devices with more memory, fix less, or "
                     "train fewer parameters"));
  }

  const StrategySearch& search_;
  const Vocabulary& vocabulary_;
  std::unique_ptr<StrategyEvaluator> evaluator_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

absl::StatusOr<FoundStrategies> findStrategies(const StrategySearch& search,
                                               const Vocabulary& vocabulary) {
  return Finder(search, vocabulary).run();
}

}  // namespace oriel::driver
