// What a search has simulated, and what it learned from that about the rest.
#ifndef ORIEL_PASSES_SEARCH_TRIALS_H_
#define ORIEL_PASSES_SEARCH_TRIALS_H_

#include <array>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "passes/search/group_costs.h"
#include "passes/search/search.h"

namespace oriel {

// Refers to its arguments.
class Trials {
 public:
  Trials(const SearchProblem& problem, const SearchOptions& options, const Evaluate& evaluate)
      : problem_(problem), options_(options), evaluate_(evaluate) {}

  const SearchProblem& problem() const { return problem_; }
  const SearchOptions& options() const { return options_; }
  double memory() const { return static_cast<double>(problem_.cluster.device.memory); }
  GroupCosts& costs() { return costs_; }
  const GroupCosts& costs() const { return costs_; }
  // By the costs that are known.
  Bound leastBoundOf(const Candidate& candidate) const;
  // Stages are not equal, and the first one may be the small one: with some slack.
  bool mayFit(const Bound& bound) const;

  // Simulates each, and notes no more than how many, and how many of them are refused.
  std::vector<absl::StatusOr<Evaluation>> evaluate(const std::vector<Candidate>& candidates);
  // To `result.tried`, which is no longer sorted.
  const TriedStrategy& add(const Candidate& candidate, Evaluation evaluation, double bound);
  // Simulates each and adds it, unless the time is up; `result.tried` is sorted.
  void tryAll(const std::vector<Candidate>& asked);
  // As in SearchResult.
  void sort();

  // Null if it is not in `result.tried`.
  const TriedStrategy* known(const Candidate& candidate) const;
  // Neither known, nor one that tryAll() could not simulate.
  bool isUntried(const Candidate& candidate) const;
  std::vector<Candidate> untriedNeighboursOf(const Candidate& candidate) const;

  const TriedStrategy& fastest() const { return result.tried.front(); }  // once it is sorted
  double leastSeconds() const { return leastSeconds_; }  // of all that fit; none: infinite
  // Asks, once something fits; then for good.
  bool isTimeUp();
  // Whether that was so when asked.
  bool wasTimeUp() const { return isTimeUp_; }

  SearchResult result;

 private:
  double knownLeastRuns(const Candidate& c, const std::vector<double>& parts) const;

  const SearchProblem& problem_;
  const SearchOptions& options_;
  const Evaluate& evaluate_;
  GroupCosts costs_;
  // By the samples of a microbatch, their number, stages and grids; what splits them; what runs
  // again; when.
  using SplitKey =
      std::tuple<int64_t, int64_t, bool, std::shared_ptr<const std::vector<Strategy::Module>>>;
  using RunsKey = std::tuple<std::array<int64_t, 4>, SplitKey, RematPolicy, ScheduleKind>;
  mutable std::map<RunsKey, double> leastRuns_;
  std::set<Candidate> failed_;  // of tryAll()
  double leastSeconds_ = std::numeric_limits<double>::infinity();
  bool isTimeUp_ = false;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_TRIALS_H_
