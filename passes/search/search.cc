#include "passes/search/search.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "passes/search/as_needed.h"
#include "passes/search/local_search.h"
#include "passes/search/preference.h"
#include "passes/search/trials.h"

namespace oriel {

namespace {

// So many at a time, whatever the number of threads, so that the same ones are simulated.
constexpr size_t kAtATime = 4;
// Of a microbatch, from which on more of them are tried, eight times as many, .., while they may
// fit.
constexpr int64_t kFewSamples = 8;
// A search that has simulated so many looks ahead, and again with twice as many, ..
constexpr int64_t kFirstLookAhead = 32;
// Of the devices' memory, what does not fit for sure in a strategy that is much like another.
constexpr double kTooMuch = 1.02;

// Its group on one stage, with nothing sharded. On as many ranks as candidates of one stage have,
// so that the model is of the same microbatch.
Candidate representativeOf(const Candidate& c, const SearchProblem& problem) {
  Candidate one;
  one.tp = c.tp;
  one.cp = c.cp;
  one.sequenceParallel = c.sequenceParallel;
  one.padding = c.padding;
  one.apart = c.apart;
  one.micro = c.micro;
  one.remat = c.remat;
  const int64_t most = problem.ranks / c.ofSample();
  if (problem.isOneMicrobatch) {
    one.dp = problem.globalBatch / c.micro;
  } else if (problem.samples) {
    one.dp = *problem.samples / c.micro;
  } else if (problem.globalBatch % (2 * c.micro * most) == 0) {
    one.dp = most;  // of several microbatches, all but the last have no all-reduce
  }
  one.microbatches = problem.globalBatch / one.micro / one.dp;
  return one;
}

// Whether `c` may be taken to need no less memory than `other`: more samples at a time, or less is
// sharded. Not proven, as stages may be cut otherwise.
bool takesNoLess(const Candidate& c, const Candidate& other) {
  auto same = [](const Candidate& one) {
    return std::tie(one.tp, one.cp, one.pp, one.dp, one.sequenceParallel, one.padding, one.apart,
                    one.remat, one.schedule, one.interleave);
  };
  const bool isShardedLess =
      (c.zero == other.zero && other.shards % c.shards == 0) || (c.zero == 0 && other.zero == 1);
  return same(c) == same(other) && other.micro <= c.micro && isShardedLess;
}

class Searcher {
 public:
  Searcher(const SearchProblem& problem, const SearchOptions& options, const Evaluate& evaluate)
      : problem_(problem),
        options_(options),
        evaluate_(evaluate),
        trials_(problem_, options, evaluate) {}

  absl::StatusOr<SearchResult> run() {
    candidates_ = allCandidates(problem_);
    choosePadding();
    if (candidates_.empty()) return explainEmptySpace(problem_);
    result_.candidates = static_cast<int64_t>(candidates_.size());
    findLeastCosts();
    dropUselessRemat();
    for (const Candidate& candidate : candidates_) {
      groups_[groupOf(candidate)].push_back(candidate);
    }
    queueGroups();
    while (!queue_.empty() && !isEnd()) {
      runRound();
      lookAhead();
    }
    result_.isWhole = queue_.empty() || !mayImprove(queue_.top());
    // Where memory is not the reason.
    if (result_.tried.empty() && !result_.firstRefusal.ok() &&
        (result_.impossible == result_.candidates || result_.leastBytes <= trials_.memory())) {
      return result_.firstRefusal;
    }
    trials_.sort();
    if (isByTime() && result_.found()) {
      tryVariants(trials_);
      climb(trials_);
      // They are shown, and may be what computes again as needed.
      if (options_.explain) {
        trials_.tryAll(trials_.untriedNeighboursOf(simplestOf(result_.tried, options_)));
      }
      tryAsNeeded(trials_);
      lookAround(trials_);
    }
    result_.isWhole = result_.isWhole && !trials_.wasTimeUp();
    return std::move(result_);
  }

 private:
  using Group = std::vector<Candidate>;
  // How samples and layers are cut.
  using Pieces = std::tuple<int64_t, int64_t, bool>;
  static Pieces piecesOf(const Candidate& c) { return {c.tp, c.cp, c.sequenceParallel}; }
  struct Entry {
    double bound;
    size_t order;                  // in which it was found: ties are decided
    const Group* group = nullptr;  // to be made exact; none:
    Candidate candidate;           // to be simulated

    friend bool operator<(const Entry& a, const Entry& b) {  // the lowest bound is the top
      return std::tie(a.bound, a.order) > std::tie(b.bound, b.order);
    }
  };

  // With zeros where tp does not divide all that it would split, unless a microbatch takes longer
  // so.
  void choosePadding() {
    if (problem_.pins.padding) {
      if (*problem_.pins.padding) problem_.padded = problem_.paddable;
    } else {
      comparePadding();
    }
    if (!problem_.padded.empty()) candidates_ = allCandidates(problem_);
  }

  // Sizes that can't do with them, or without, are no longer `paddable`: there is no choice.
  void comparePadding() {
    std::map<int64_t, Candidate> ofSizes;
    for (const Candidate& c : representativesOf(kFewSamples)) {
      if (problem_.paddable.count(c.tp) > 0) ofSizes.try_emplace(c.tp, c);
    }
    std::vector<Strategy> asked;
    for (auto& [tp, candidate] : ofSizes) {
      for (bool padding : {false, true}) {
        candidate.padding = padding;
        asked.push_back(candidate.strategy());
      }
    }
    // Not as trials: what is refused without zeros is no strategy of the space then.
    result_.simulated += static_cast<int64_t>(asked.size());
    const std::vector<absl::StatusOr<Evaluation>> found = evaluate_(asked);
    auto secondsOf = [](const absl::StatusOr<Evaluation>& evaluation) {
      return evaluation->microbatch.forward + evaluation->microbatch.backward;
    };
    size_t next = 0;
    for (const auto& [tp, candidate] : ofSizes) {
      const absl::StatusOr<Evaluation>& without = found[next++];
      const absl::StatusOr<Evaluation>& with = found[next++];
      const bool isBetter = !without.ok() || secondsOf(with) < secondsOf(without);
      if (with.ok() && isBetter) problem_.padded.insert(tp);
      if (!with.ok() || !without.ok()) problem_.paddable.erase(tp);
    }
  }

  // At each tp and cp of at most so many samples at a time, or of the fewest; nothing runs again.
  std::vector<Candidate> representativesOf(int64_t micro) const {
    std::map<Pieces, std::map<int64_t, Candidate>> ofMicro;
    for (const Candidate& c : candidates_) {
      ofMicro[piecesOf(c)].try_emplace(c.micro, c);
    }
    std::vector<Candidate> representatives;
    for (const auto& [pieces, all] : ofMicro) {
      const auto next = all.upper_bound(micro);
      const Candidate& like = (next == all.begin() ? next : std::prev(next))->second;
      representatives.push_back(representativeOf(like, problem_));
      representatives.back().remat = RematPolicy::kNone;
    }
    return representatives;
  }

  // For the bounds of groups: what a microbatch takes at each tp and cp, of about as many samples
  // as may fit.
  void findLeastCosts() {
    bool isSmall = true;
    for (int64_t micro = kFewSamples; isSmall && micro <= kMaxMicrobatches; micro *= kFewSamples) {
      std::vector<Candidate> asked = representativesOf(micro);
      asked.erase(std::remove_if(asked.begin(), asked.end(),
                                 [&](const Candidate& c) { return trials_.costs().isExact(c); }),
                  asked.end());
      isSmall = false;
      const std::vector<absl::StatusOr<Evaluation>> found = trials_.evaluate(asked);
      for (size_t i = 0; i < asked.size(); ++i) {
        if (!found[i].ok()) continue;
        trials_.costs().learn(asked[i], found[i]->microbatch);
        if (!anchor_) anchor_ = asked[i];
        isSmall |= found[i]->microbatch.stash * kFewSamples < trials_.memory();
      }
    }
  }

  // `selective` is `none` where there is nothing that it would compute again.
  void dropUselessRemat() {
    if (!anchor_ || problem_.pins.remat) return;
    Candidate one = *anchor_;
    one.remat = RematPolicy::kSelective;
    const std::vector<absl::StatusOr<Evaluation>> found = trials_.evaluate({one});
    if (!found.front().ok()) return;
    const MicrobatchCost all = trials_.costs().least(*anchor_), some = found.front()->microbatch;
    if (all.stash != some.stash || all.backward != some.backward) return;
    candidates_.erase(
        std::remove_if(candidates_.begin(), candidates_.end(),
                       [](const Candidate& c) { return c.remat == RematPolicy::kSelective; }),
        candidates_.end());
    result_.isSelectiveNone = true;
  }

  // What the search goes by.
  double valueOf(const Bound& bound) const { return isByTime() ? bound.seconds : bound.bytes; }
  bool isByTime() const { return options_.objective == SearchOptions::Objective::kTime; }

  // The lowest of those that may fit; none if no one does.
  std::optional<double> leastOf(const Group& group) const {
    std::optional<double> least;
    for (const Candidate& c : group) {
      const Bound bound = trials_.leastBoundOf(c);
      if (!trials_.mayFit(bound)) continue;
      least = std::min(least.value_or(valueOf(bound)), valueOf(bound));
    }
    return least;
  }

  // Larger microbatches first, since they tell about smaller ones.
  void queueGroups() {
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
      for (const Candidate& c : group->second) noteBytes(trials_.leastBoundOf(c).bytes);
      queueGroup(group->second);
    }
  }

  void queueGroup(const Group& group) {
    if (const std::optional<double> least = leastOf(group)) {
      queue_.push({*least, order_++, &group, {}});
    } else {
      result_.impossible += static_cast<int64_t>(group.size());
    }
  }

  void noteBytes(double bytes) {
    if (result_.leastBytes == 0 || bytes < result_.leastBytes) result_.leastBytes = bytes;
  }

  // What the wanted-th best of the space takes; or the best of all that was tried, if one is
  // wanted.
  std::optional<double> limit() const {
    if (static_cast<int64_t>(fitting_.size()) < options_.wanted) return std::nullopt;
    return options_.wanted == 1 ? trials_.leastSeconds() : fitting_[options_.wanted - 1];
  }

  bool mayImprove(const Entry& entry) const {
    return !isByTime() || !limit() || entry.bound < *limit();
  }
  bool isEnd() {
    if (!isByTime() && !fitting_.empty()) return true;
    return trials_.isTimeUp() || !mayImprove(queue_.top()) ||
           result_.simulated >= options_.mostSimulated;
  }

  void runRound() {
    std::vector<Entry> entries, later;
    std::vector<Candidate> asked;
    std::set<Pieces> pieces;
    while (asked.size() < kAtATime && !queue_.empty() && mayImprove(queue_.top())) {
      Entry entry = queue_.top();
      queue_.pop();
      if (entry.group) {
        const Candidate& c = entry.group->front();
        // What was learned since may have raised the bound.
        const std::optional<double> least = leastOf(*entry.group);
        if (!least || *least > entry.bound) {
          queueGroup(*entry.group);
          continue;
        }
        // One tells about the others that split layers alike.
        if (!trials_.costs().isExact(c) && !pieces.insert(piecesOf(c)).second) {
          later.push_back(std::move(entry));
          continue;
        }
        if (trials_.costs().isExact(c)) {
          queueMembers(*entry.group);
          continue;
        }
      } else if (trials_.known(entry.candidate)) {
        continue;  // as a neighbour
      } else if (takesTooMuch(entry.candidate)) {
        ++result_.impossible;
        continue;
      }
      asked.push_back(entry.group ? representativeOf(entry.group->front(), problem_)
                                  : entry.candidate);
      entries.push_back(std::move(entry));
    }
    for (Entry& entry : later) queue_.push(std::move(entry));
    std::vector<absl::StatusOr<Evaluation>> found = trials_.evaluate(asked);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].group) {
        takeGroup(*entries[i].group, asked[i], found[i]);
      } else {
        takeCandidate(entries[i], std::move(found[i]));
      }
    }
  }

  // What is next to the best, and not in the space, may rule out most of what a long search would
  // still simulate.
  void lookAhead() {
    if (!isByTime() || options_.wanted != 1 || fitting_.empty() ||
        result_.simulated < nextLookAhead_) {
      return;
    }
    trials_.sort();
    tryVariants(trials_);
    climb(trials_);
    while (nextLookAhead_ <= result_.simulated) nextLookAhead_ *= 2;
  }

  // By what was found not to fit.
  bool takesTooMuch(const Candidate& c) const {
    return std::any_of(result_.tried.begin(), result_.tried.end(), [&](const TriedStrategy& tried) {
      return !tried.fits && takesNoLess(c, tried.candidate) &&
             tried.evaluation.peakBytes() > kTooMuch * trials_.memory();
    });
  }

  void takeGroup(const Group& group, const Candidate& simulated,
                 const absl::StatusOr<Evaluation>& found) {
    if (!found.ok()) {
      result_.impossible += static_cast<int64_t>(group.size());
      return;
    }
    trials_.costs().learn(simulated, found->microbatch);
    queueMembers(group);
  }

  void queueMembers(const Group& group) {
    for (const Candidate& c : group) {
      const Bound bound = trials_.leastBoundOf(c);
      if (!trials_.mayFit(bound)) {
        ++result_.impossible;
      } else {
        queue_.push({valueOf(bound), order_++, nullptr, c});
      }
    }
  }

  void takeCandidate(const Entry& entry, absl::StatusOr<Evaluation> found) {
    if (!found.ok()) {
      ++result_.impossible;
      return;
    }
    const TriedStrategy& tried = trials_.add(entry.candidate, *std::move(found), entry.bound);
    if (!tried.fits) return;
    fitting_.insert(std::upper_bound(fitting_.begin(), fitting_.end(), tried.evaluation.seconds),
                    tried.evaluation.seconds);
  }

  SearchProblem problem_;
  const SearchOptions& options_;
  const Evaluate& evaluate_;
  Trials trials_;
  SearchResult& result_ = trials_.result;
  std::vector<Candidate> candidates_;
  std::optional<Candidate> anchor_;  // the first that is known
  std::map<GroupKey, Group> groups_;
  std::priority_queue<Entry> queue_;
  size_t order_ = 0;
  std::vector<double> fitting_;              // seconds of those of the space that fit, ascending
  int64_t nextLookAhead_ = kFirstLookAhead;  // when so many are simulated
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
