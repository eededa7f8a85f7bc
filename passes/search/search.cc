#include "passes/search/search.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

namespace oriel {

namespace {

// So many at a time, whatever the number of threads, so that the same ones are simulated.
constexpr size_t kAtATime = 8;
// Of a bound's bytes: stages are not equal, and the first one may be the small one.
constexpr double kSureBytes = 0.85;

// What candidates of a group have in common: the work of a rank for a microbatch, but for stages.
using GroupKey = std::tuple<int64_t, bool, int64_t, RematPolicy>;
GroupKey groupOf(const Candidate& c) { return {c.tp, c.sequenceParallel, c.micro, c.remat}; }

// One stage, and no more data parallelism than the model needs.
Candidate representativeOf(const Candidate& c, const SearchProblem& problem) {
  Candidate one;
  one.tp = c.tp;
  one.sequenceParallel = c.sequenceParallel;
  one.micro = c.micro;
  one.remat = c.remat;
  if (problem.isOneMicrobatch) {
    one.dp = problem.globalBatch / c.micro;
  } else if (problem.samples) {
    one.dp = *problem.samples / c.micro;
  }
  one.microbatches = problem.globalBatch / one.micro / one.dp;
  return one;
}

bool isFaster(const TriedStrategy& a, const TriedStrategy& b) {
  if (a.fits != b.fits) return a.fits;
  const double first = a.fits ? a.evaluation.seconds : a.evaluation.peakBytes();
  const double second = b.fits ? b.evaluation.seconds : b.evaluation.peakBytes();
  return std::tie(first, a.candidate) < std::tie(second, b.candidate);
}

class Searcher {
 public:
  Searcher(const SearchProblem& problem, const SearchOptions& options, const Evaluate& evaluate)
      : problem_(problem), options_(options), evaluate_(evaluate) {}

  absl::StatusOr<SearchResult> run() {
    candidates_ = allCandidates(problem_);
    if (candidates_.empty()) return explainEmptySpace(problem_);
    result_.candidates = static_cast<int64_t>(candidates_.size());
    for (size_t i = 0; i < candidates_.size(); ++i) {
      groups_[groupOf(candidates_[i])].members.push_back(i);
    }
    findLeastCost();
    queueGroups();
    while (!queue_.empty() && !isEnd()) runRound();
    result_.isWhole = queue_.empty() || !mayImprove(queue_.top());
    if (result_.tried.empty() && result_.impossible == result_.candidates && !firstError_.ok()) {
      return firstError_;
    }
    std::sort(result_.tried.begin(), result_.tried.end(), isFaster);
    if (options_.withNeighbours && isByTime() && result_.found()) climb();
    return std::move(result_);
  }

 private:
  struct Group {
    std::vector<size_t> members;
  };
  struct Entry {
    double bound;
    size_t order;                    // in which it was found: ties are decided
    const Group* group = nullptr;    // to be made exact; or
    size_t candidate = 0;            // to be simulated
    friend bool operator<(const Entry& a, const Entry& b) {  // the lowest bound is the top
      return std::tie(a.bound, a.order) > std::tie(b.bound, b.order);
    }
  };

  double memory() const { return static_cast<double>(problem_.cluster.device.memory); }

  // For bounds of groups: what the largest microbatch takes where a layer is split the least. More
  // samples at a time are hardly faster.
  void findLeastCost() {
    constexpr int64_t kMostMicro = 64;
    std::map<int64_t, Candidate> ofMicro;  // of the least tp
    for (const Candidate& c : candidates_) {
      if (c.tp == std::get<0>(groups_.begin()->first)) ofMicro.try_emplace(c.micro, c);
    }
    auto largest = ofMicro.upper_bound(kMostMicro);
    for (const auto& [micro, like] : {largest == ofMicro.begin() ? *largest : *std::prev(largest),
                                      *ofMicro.begin()}) {
      anchor_ = representativeOf(like, problem_);
      anchor_.remat = RematPolicy::kNone;
      const std::vector<absl::StatusOr<Evaluation>> found = evaluateAll({anchor_});
      if (!found.front().ok()) continue;
      anchorCost_ = found.front()->microbatch;
      return;
    }
  }

  Bound leastBoundOf(const Candidate& c) const {
    const MicrobatchCost cost =
        anchorCost_ ? leastCost(*anchorCost_, anchor_, c) : MicrobatchCost();
    return boundOf(c, cost, problem_.cluster);
  }

  // What the search goes by.
  double valueOf(const Bound& bound) const { return isByTime() ? bound.seconds : bound.bytes; }
  bool isByTime() const { return options_.objective == SearchOptions::Objective::kTime; }

  void queueGroups() {
    for (auto& [key, group] : groups_) {
      double least = 0;
      bool isPossible = false;
      for (size_t member : group.members) {
        const Bound bound = leastBoundOf(candidates_[member]);
        noteBytes(bound.bytes);
        if (bound.bytes * kSureBytes > memory()) continue;
        if (!isPossible || valueOf(bound) < least) least = valueOf(bound);
        isPossible = true;
      }
      if (isPossible) {
        queue_.push({least, order_++, &group, 0});
      } else {
        result_.impossible += static_cast<int64_t>(group.members.size());
      }
    }
  }

  void noteBytes(double bytes) {
    if (result_.leastBytes == 0 || bytes < result_.leastBytes) result_.leastBytes = bytes;
  }

  // What the wanted-th best takes.
  std::optional<double> limit() const {
    if (static_cast<int64_t>(fitting_.size()) < options_.wanted) return std::nullopt;
    return fitting_[options_.wanted - 1];
  }

  bool mayImprove(const Entry& entry) const {
    return !isByTime() || !limit() || entry.bound < *limit();
  }
  bool isEnd() const {
    if (!isByTime() && !fitting_.empty()) return true;
    return !mayImprove(queue_.top()) || result_.simulated >= options_.mostSimulated;
  }

  void runRound() {
    std::vector<Entry> entries;
    std::vector<Candidate> asked;
    while (entries.size() < kAtATime && !queue_.empty() && mayImprove(queue_.top())) {
      entries.push_back(queue_.top());
      queue_.pop();
      const Entry& entry = entries.back();
      asked.push_back(entry.group ? representativeOf(candidates_[entry.group->members.front()],
                                                     problem_)
                                  : candidates_[entry.candidate]);
    }
    std::vector<absl::StatusOr<Evaluation>> found = evaluateAll(asked);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].group) {
        takeGroup(*entries[i].group, found[i]);
      } else {
        takeCandidate(entries[i], std::move(found[i]));
      }
    }
  }

  void takeGroup(const Group& group, const absl::StatusOr<Evaluation>& found) {
    if (!found.ok()) {
      result_.impossible += static_cast<int64_t>(group.members.size());
      return;
    }
    for (size_t member : group.members) {
      const Bound bound = boundOf(candidates_[member], found->microbatch, problem_.cluster);
      if (bound.bytes * kSureBytes > memory()) {
        ++result_.impossible;
      } else {
        queue_.push({valueOf(bound), order_++, nullptr, member});
      }
    }
  }

  void takeCandidate(const Entry& entry, absl::StatusOr<Evaluation> found) {
    if (!found.ok()) {
      ++result_.impossible;
      return;
    }
    const TriedStrategy& tried =
        addTried(candidates_[entry.candidate], *std::move(found), entry.bound);
    if (!tried.fits) return;
    fitting_.insert(std::upper_bound(fitting_.begin(), fitting_.end(), tried.evaluation.seconds),
                    tried.evaluation.seconds);
  }

  const TriedStrategy& addTried(const Candidate& candidate, Evaluation evaluation, double bound) {
    const bool fits = evaluation.peakBytes() <= memory();
    result_.tried.push_back({candidate, std::move(evaluation), fits, bound});
    return result_.tried.back();
  }

  // What differs from the best in one choice, until that is no better.
  void climb() {
    while (true) {
      const Candidate best = result_.tried.front().candidate;
      std::vector<Candidate> all = neighboursOf(best, problem_), asked;
      for (const Candidate& candidate : all) {
        if (!known(candidate)) asked.push_back(candidate);
      }
      std::vector<absl::StatusOr<Evaluation>> found = evaluateAll(asked);
      for (size_t i = 0; i < asked.size(); ++i) {
        if (found[i].ok()) addTried(asked[i], *std::move(found[i]), 0);
      }
      std::sort(result_.tried.begin(), result_.tried.end(), isFaster);
      if (!(result_.tried.front().candidate == best)) continue;
      for (const Candidate& candidate : all) {
        if (const TriedStrategy* tried = known(candidate)) result_.neighbours.push_back(*tried);
      }
      return;
    }
  }

  const TriedStrategy* known(const Candidate& candidate) const {
    for (const TriedStrategy& tried : result_.tried) {
      if (tried.candidate == candidate) return &tried;
    }
    return nullptr;
  }

  std::vector<absl::StatusOr<Evaluation>> evaluateAll(const std::vector<Candidate>& candidates) {
    std::vector<Strategy> strategies;
    for (const Candidate& candidate : candidates) strategies.push_back(candidate.strategy());
    result_.simulated += static_cast<int64_t>(strategies.size());
    std::vector<absl::StatusOr<Evaluation>> found = evaluate_(strategies);
    for (const auto& evaluation : found) {
      if (firstError_.ok() && !evaluation.ok()) firstError_ = evaluation.status();
    }
    return found;
  }

  const SearchProblem& problem_;
  const SearchOptions& options_;
  const Evaluate& evaluate_;
  std::vector<Candidate> candidates_;
  std::map<GroupKey, Group> groups_;
  std::priority_queue<Entry> queue_;
  size_t order_ = 0;
  Candidate anchor_;
  std::optional<MicrobatchCost> anchorCost_;
  std::vector<double> fitting_;  // seconds of those that fit, ascending
  absl::Status firstError_;
  SearchResult result_;
};

}  // namespace

double Evaluation::Program::peakBytes() const {
  double sum = 0;
  for (double part : bytes) sum += part;
  return sum;
}

double Evaluation::peakBytes() const {
  double most = 0;
  for (const Program& program : programs) most = std::max(most, program.peakBytes());
  return most;
}

absl::StatusOr<SearchResult> searchStrategies(const SearchProblem& problem,
                                              const SearchOptions& options,
                                              const Evaluate& evaluate) {
  return Searcher(problem, options, evaluate).run();
}

}  // namespace oriel
