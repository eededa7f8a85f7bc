#include "passes/search/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "passes/search/as_needed.h"
#include "passes/search/group_costs.h"
#include "passes/search/preference.h"

namespace oriel {

namespace {

// So many at a time, whatever the number of threads, so that the same ones are simulated.
constexpr size_t kAtATime = 4;
// A search that has simulated so many looks ahead, and again with twice as many, ..
constexpr int64_t kFirstLookAhead = 32;
// Of the devices' memory, what does not fit for sure in a strategy that is much like another.
constexpr double kTooMuch = 1.02;
// Of a bound's bytes: stages are not equal, and the first one may be the small one.
constexpr double kSureBytes = 0.85;

// Its group on one stage, with nothing sharded. On as many ranks as candidates of one stage have,
// so that the model is of the same microbatch.
Candidate representativeOf(const Candidate& c, const SearchProblem& problem) {
  Candidate one;
  one.tp = c.tp;
  one.cp = c.cp;
  one.sequenceParallel = c.sequenceParallel;
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
    return std::tie(one.tp, one.cp, one.pp, one.dp, one.sequenceParallel, one.apart, one.remat,
                    one.schedule, one.interleave);
  };
  const bool isShardedLess =
      (c.zero == other.zero && other.shards % c.shards == 0) || (c.zero == 0 && other.zero == 1);
  return same(c) == same(other) && other.micro <= c.micro && isShardedLess;
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
    if (result_.tried.empty() && !firstError_.ok() &&
        (result_.impossible == result_.candidates || result_.leastBytes <= memory())) {
      return firstError_;
    }
    std::sort(result_.tried.begin(), result_.tried.end(), isFaster);
    if (isByTime() && result_.found()) {
      tryVariants();
      climb();
      // They are shown, and may be what computes again as needed.
      if (options_.explain) tryAll(unknownNeighboursOf(simplestOf(result_.tried, options_)));
      recomputeAsNeeded();
      lookAround();
    }
    result_.isWhole = result_.isWhole && !isTimeUp_;
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

  double memory() const { return static_cast<double>(problem_.cluster.device.memory); }

  // For the bounds of groups: what a microbatch takes at each tp and cp, of about as many samples
  // as may fit.
  void findLeastCosts() {
    std::map<Pieces, std::map<int64_t, Candidate>> ofMicro;
    for (const Candidate& c : candidates_) {
      ofMicro[piecesOf(c)].try_emplace(c.micro, c);
    }
    constexpr int64_t kStep = 8;
    bool isSmall = true;
    for (int64_t micro = kStep; isSmall && micro <= kMaxMicrobatches; micro *= kStep) {
      std::vector<Candidate> asked;
      for (const auto& [pieces, all] : ofMicro) {
        const auto next = all.upper_bound(micro);
        const Candidate& like = (next == all.begin() ? next : std::prev(next))->second;
        asked.push_back(representativeOf(like, problem_));
        asked.back().remat = RematPolicy::kNone;
        if (costs_.isExact(asked.back())) asked.pop_back();
      }
      isSmall = false;
      const std::vector<absl::StatusOr<Evaluation>> found = evaluateAll(asked);
      for (size_t i = 0; i < asked.size(); ++i) {
        if (!found[i].ok()) continue;
        costs_.learn(asked[i], found[i]->microbatch);
        if (!anchor_) anchor_ = asked[i];
        isSmall |= found[i]->microbatch.stash * kStep < memory();
      }
    }
  }

  // `selective` is `none` where there is nothing that it would compute again.
  void dropUselessRemat() {
    if (!anchor_ || problem_.pins.remat) return;
    Candidate one = *anchor_;
    one.remat = RematPolicy::kSelective;
    const std::vector<absl::StatusOr<Evaluation>> found = evaluateAll({one});
    if (!found.front().ok()) return;
    const MicrobatchCost all = costs_.least(*anchor_), some = found.front()->microbatch;
    if (all.stash != some.stash || all.backward != some.backward) return;
    candidates_.erase(
        std::remove_if(candidates_.begin(), candidates_.end(),
                       [](const Candidate& c) { return c.remat == RematPolicy::kSelective; }),
        candidates_.end());
    result_.isSelectiveNone = true;
  }

  Bound leastBoundOf(const Candidate& c) const {
    const MicrobatchCost cost = costs_.least(c);
    return boundOf(c, cost, problem_.cluster, knownLeastRuns(c, cost.parts));
  }

  // The same for many candidates.
  double knownLeastRuns(const Candidate& c, const std::vector<double>& parts) const {
    if (c.pp == 1 || parts.empty()) return 0;
    const auto [known, isNew] =
        leastRuns_.try_emplace({{c.micro, c.microbatches, c.interleave, c.pp},
                                {c.tp, c.cp, c.sequenceParallel, c.apart},
                                c.remat,
                                c.schedule},
                               0);
    if (isNew) known->second = leastRuns(c, parts);
    return known->second;
  }

  // What the search goes by.
  double valueOf(const Bound& bound) const { return isByTime() ? bound.seconds : bound.bytes; }
  bool isByTime() const { return options_.objective == SearchOptions::Objective::kTime; }

  // The lowest of those that may fit; none if no one does.
  std::optional<double> leastOf(const Group& group) const {
    std::optional<double> least;
    for (const Candidate& c : group) {
      const Bound bound = leastBoundOf(c);
      if (bound.bytes * kSureBytes > memory()) continue;
      least = std::min(least.value_or(valueOf(bound)), valueOf(bound));
    }
    return least;
  }

  // Larger microbatches first, since they tell about smaller ones.
  void queueGroups() {
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) {
      for (const Candidate& c : group->second) noteBytes(leastBoundOf(c).bytes);
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
    return options_.wanted == 1 ? leastSeconds_ : fitting_[options_.wanted - 1];
  }

  bool mayImprove(const Entry& entry) const {
    return !isByTime() || !limit() || entry.bound < *limit();
  }
  bool isTimeUp() {
    const bool mayEnd = std::isfinite(leastSeconds_);
    isTimeUp_ = isTimeUp_ || (mayEnd && options_.isTimeUp());
    return isTimeUp_;
  }
  bool isEnd() {
    if (!isByTime() && !fitting_.empty()) return true;
    return isTimeUp() || !mayImprove(queue_.top()) || result_.simulated >= options_.mostSimulated;
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
        if (!costs_.isExact(c) && !pieces.insert(piecesOf(c)).second) {
          later.push_back(std::move(entry));
          continue;
        }
        if (costs_.isExact(c)) {
          queueMembers(*entry.group);
          continue;
        }
      } else if (known(entry.candidate)) {
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
    std::vector<absl::StatusOr<Evaluation>> found = evaluateAll(asked);
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
    std::sort(result_.tried.begin(), result_.tried.end(), isFaster);
    tryVariants();
    climb();
    while (nextLookAhead_ <= result_.simulated) nextLookAhead_ *= 2;
  }

  // By what was found not to fit.
  bool takesTooMuch(const Candidate& c) const {
    return std::any_of(result_.tried.begin(), result_.tried.end(), [&](const TriedStrategy& tried) {
      return !tried.fits && takesNoLess(c, tried.candidate) &&
             tried.evaluation.peakBytes() > kTooMuch * memory();
    });
  }

  void takeGroup(const Group& group, const Candidate& simulated,
                 const absl::StatusOr<Evaluation>& found) {
    if (!found.ok()) {
      result_.impossible += static_cast<int64_t>(group.size());
      return;
    }
    costs_.learn(simulated, found->microbatch);
    queueMembers(group);
  }

  void queueMembers(const Group& group) {
    for (const Candidate& c : group) {
      const Bound bound = leastBoundOf(c);
      if (bound.bytes * kSureBytes > memory()) {
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
    const TriedStrategy& tried = addTried(entry.candidate, *std::move(found), entry.bound);
    if (!tried.fits) return;
    fitting_.insert(std::upper_bound(fitting_.begin(), fitting_.end(), tried.evaluation.seconds),
                    tried.evaluation.seconds);
  }

  const TriedStrategy& addTried(const Candidate& candidate, Evaluation evaluation, double bound) {
    const bool fits = evaluation.peakBytes() <= memory();
    if (fits) leastSeconds_ = std::min(leastSeconds_, evaluation.seconds);
    result_.tried.push_back({candidate, std::move(evaluation), fits, bound});
    return result_.tried.back();
  }

  // Of strategies that were tried: other numbers of stages on a grid, encoders on a mesh of their
  // own, and stages side by side, where that could be the best if it gained what their bounds
  // differ by, or about what the encoders take of a forward, or all that stages wait for each other
  // but for the fill.
  void tryVariants() {
    tryPromising([&](const TriedStrategy& tried, const Candidate& other) -> std::optional<double> {
      const Candidate& from = tried.candidate;
      if (other.interleave == from.interleave && other.apart == from.apart) return std::nullopt;
      const double gain = other.apart == from.apart
                              ? leastBoundOf(other).seconds / leastBoundOf(from).seconds
                              : 1 - problem_.encoderShare;
      return tried.evaluation.seconds * gain;
    });
    tryPromising([&](const TriedStrategy& tried, const Candidate& other) -> std::optional<double> {
      if (other.placement == tried.candidate.placement) return std::nullopt;
      return std::max(leastBoundOf(other).seconds,
                      tried.evaluation.seconds * (1 - tried.evaluation.bubble));
    });
  }

  // Those neighbours of what was tried from which most can be expected: `secondsOf` says what they
  // may take, or that they are not meant.
  void tryPromising(const std::function<std::optional<double>(const TriedStrategy&,
                                                              const Candidate&)>& secondsOf) {
    std::vector<std::pair<double, Candidate>> expected;
    for (const TriedStrategy& tried : result_.tried) {
      const Candidate& from = tried.candidate;
      if (!tried.fits || (from.pp == 1 && from.ofSample() == 1)) continue;
      for (const Candidate& other : neighboursOf(from, problem_)) {
        if (other.pp != from.pp || known(other)) continue;
        const std::optional<double> seconds = secondsOf(tried, other);
        if (seconds && *seconds < result_.tried.front().evaluation.seconds) {
          expected.push_back({*seconds, other});
        }
      }
    }
    std::sort(expected.begin(), expected.end());
    std::vector<Candidate> asked;
    constexpr size_t kMax = 16;
    for (const auto& [seconds, other] : expected) {
      const bool isAsked = std::find(asked.begin(), asked.end(), other) != asked.end();
      if (!isAsked && asked.size() < kMax) asked.push_back(other);
    }
    tryAll(asked);
  }

  void tryAll(const std::vector<Candidate>& asked) {
    if (isTimeUp()) return;
    std::vector<absl::StatusOr<Evaluation>> found = evaluateAll(asked);
    for (size_t i = 0; i < asked.size(); ++i) {
      if (found[i].ok()) {
        addTried(asked[i], *std::move(found[i]), 0);
      } else {
        failed_.insert(asked[i]);
      }
    }
    std::sort(result_.tried.begin(), result_.tried.end(), isFaster);
  }

  // What differs from the fastest in one choice and may be faster, until nothing is. First in the
  // number of stages on a grid, which takes many steps of one.
  void climb() {
    while (true) {
      const Candidate from = result_.tried.front().candidate;
      tryAll(withOtherInterleave(promisingNeighboursOf(from), from));
      if (!(result_.tried.front().candidate == from)) continue;
      tryAll(promisingNeighboursOf(from));
      if (result_.tried.front().candidate == from) return;
    }
  }

  // What fits only because it computes again may do with less of that, by as much as memory asks
  // for. All blocks are compiled for it, many times, and for each grid: what promises most is
  // tried, after all else, and no deep pipelines.
  void recomputeAsNeeded() {
    if (problem_.pins.remat) return;
    constexpr size_t kAtOnce = 2;
    constexpr int kRounds = 3;
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Candidate> asked;
      for (const auto& [seconds, candidate] : expectedAsNeeded()) {
        // One tells about others that differ in what is sharded.
        auto isLike = [c = &candidate](const Candidate& other) {
          return std::tie(other.pp, other.tp, other.cp, other.micro) ==
                 std::tie(c->pp, c->tp, c->cp, c->micro);
        };
        const bool isNew = std::none_of(asked.begin(), asked.end(), isLike);
        if (isNew && asked.size() < kAtOnce) asked.push_back(candidate);
      }
      if (asked.empty()) return;
      tryAll(asked);
    }
  }

  // The candidates that may be faster so than the fastest, with about what they would take.
  std::vector<std::pair<double, Candidate>> expectedAsNeeded() {
    constexpr int64_t kMostStages = 2;  // more took minutes
    // By what they take, at least, if nothing runs again.
    std::set<std::pair<double, Candidate>> fastIfNone;
    for (const TriedStrategy& tried : result_.tried) {
      if (tried.candidate.remat == RematPolicy::kAuto ||
          tried.candidate.pp * tried.candidate.interleave > kMostStages)
        continue;
      const Candidate none = tried.candidate.with(RematPolicy::kNone);
      const Candidate full = tried.candidate.with(RematPolicy::kFull);
      // Not as it was simulated: what does not fit has less overlap.
      const double seconds = leastBoundOf(none).seconds;
      const TriedStrategy *whole = known(none), *least = known(full);
      const bool mayFit = least ? least->fits : leastBoundOf(full).bytes * kSureBytes <= memory();
      const bool isMeant = mayFit && !(whole && whole->fits);
      if (isMeant && seconds < secondsToBeat(none, result_.tried, options_))
        fastIfNone.insert({seconds, none});
    }
    constexpr size_t kMax = 8;
    std::vector<Candidate> missing;
    while (fastIfNone.size() > kMax) fastIfNone.erase(std::prev(fastIfNone.end()));
    for (const auto& [seconds, none] : fastIfNone) {
      for (const Candidate& c : {none, none.with(RematPolicy::kFull)}) {
        if (!known(c) && failed_.count(c) == 0) missing.push_back(c);
      }
    }
    tryAll(missing);
    std::vector<std::pair<double, Candidate>> expected;
    for (const auto& [atLeast, candidate] : fastIfNone) {
      const TriedStrategy* none = known(candidate);
      const TriedStrategy* full = known(candidate.with(RematPolicy::kFull));
      const Candidate asNeeded = candidate.with(RematPolicy::kAuto, problem_.cluster.device.memory);
      if (!none || none->fits || !full || !full->fits || known(asNeeded) ||
          failed_.count(asNeeded) > 0) {
        continue;
      }
      const double seconds = secondsAsNeeded(none->evaluation, full->evaluation, atLeast, memory());
      if (seconds < secondsToBeat(asNeeded, result_.tried, options_))
        expected.push_back({seconds, asNeeded});
    }
    std::sort(expected.begin(), expected.end());
    return expected;
  }

  std::vector<Candidate> promisingNeighboursOf(const Candidate& from) const {
    std::vector<Candidate> promising;
    for (const Candidate& candidate : unknownNeighboursOf(from)) {
      if (leastBoundOf(candidate).seconds < result_.tried.front().evaluation.seconds) {
        promising.push_back(candidate);
      }
    }
    return promising;
  }

  static std::vector<Candidate> withOtherInterleave(const std::vector<Candidate>& neighbours,
                                                    const Candidate& from) {
    std::vector<Candidate> others;
    for (const Candidate& other : neighbours) {
      const bool isInterleaved = from.interleave > 1 && other.interleave > 1;
      if (isInterleaved && other.interleave != from.interleave) others.push_back(other);
    }
    return others;
  }

  // What is next to the best, which goes to the front.
  void lookAround() {
    Candidate best = simplestOf(result_.tried, options_);
    auto isStill = [&] {
      const Candidate before = std::exchange(best, simplestOf(result_.tried, options_));
      return before == best;
    };
    while (options_.explain) {
      tryAll(withOtherInterleave(unknownNeighboursOf(best), best));
      if (!isStill()) continue;
      tryAll(unknownNeighboursOf(best));
      if (isStill()) break;
    }
    const auto place = std::find_if(result_.tried.begin(), result_.tried.end(),
                                    [&](const auto& tried) { return tried.candidate == best; });
    std::rotate(result_.tried.begin(), place, std::next(place));
    for (const Candidate& candidate : neighboursOf(best, problem_)) {
      const TriedStrategy* tried = known(candidate);
      const bool isOtherInAll = best.remat == RematPolicy::kAuto &&
                                candidate.remat == RematPolicy::kNone &&
                                !(candidate == best.with(RematPolicy::kNone));
      // What does not fit without would compute again as needed.
      if (tried && (tried->fits || !isOtherInAll)) result_.neighbours.push_back(*tried);
    }
  }

  std::vector<Candidate> unknownNeighboursOf(const Candidate& candidate) const {
    std::vector<Candidate> unknown;
    for (const Candidate& other : neighboursOf(candidate, problem_)) {
      const bool isUseless = other.remat == RematPolicy::kAuto ||
                             (result_.isSelectiveNone && other.remat == RematPolicy::kSelective);
      if (!isUseless && !known(other) && failed_.count(other) == 0) unknown.push_back(other);
    }
    return unknown;
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
  GroupCosts costs_;
  // By the samples of a microbatch, their number, stages and grids; what splits them; what runs
  // again; when.
  using SplitKey =
      std::tuple<int64_t, int64_t, bool, std::shared_ptr<const std::vector<Strategy::Module>>>;
  using RunsKey = std::tuple<std::array<int64_t, 4>, SplitKey, RematPolicy, ScheduleKind>;
  mutable std::map<RunsKey, double> leastRuns_;
  std::optional<Candidate> anchor_;  // the first that is known
  std::map<GroupKey, Group> groups_;
  std::priority_queue<Entry> queue_;
  size_t order_ = 0;
  std::set<Candidate> failed_;   // neighbours that can't be
  std::vector<double> fitting_;  // seconds of those of the space that fit, ascending
  double leastSeconds_ = std::numeric_limits<double>::infinity();  // of all that fit
  int64_t nextLookAhead_ = kFirstLookAhead;                        // when so many are simulated
  bool isTimeUp_ = false;
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
