#include "passes/search/as_needed.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "passes/search/preference.h"

namespace oriel {

namespace {

// What the slowest program computes.
double computingOf(const Evaluation& evaluation) {
  double most = 0;
  for (const Evaluation::Program& program : evaluation.programs) {
    most = std::max(most, program.computing);
  }
  return most;
}

// The candidates that may be faster so than the fastest, with about what they would take.
std::vector<std::pair<double, Candidate>> expectedAsNeeded(Trials& trials) {
  const std::vector<TriedStrategy>& tried = trials.result.tried;
  constexpr int64_t kMostStages = 2;  // more took minutes
  // By what they take, at least, if nothing runs again.
  std::set<std::pair<double, Candidate>> fastIfNone;
  for (const TriedStrategy& each : tried) {
    if (each.candidate.remat == RematPolicy::kAuto ||
        each.candidate.pp * each.candidate.interleave > kMostStages)
      continue;
    const Candidate none = each.candidate.with(RematPolicy::kNone);
    const Candidate full = each.candidate.with(RematPolicy::kFull);
    // Not as it was simulated: what does not fit has less overlap.
    const double seconds = trials.leastBoundOf(none).seconds;
    const TriedStrategy *whole = trials.known(none), *least = trials.known(full);
    const bool mayFit = least ? least->fits : trials.mayFit(trials.leastBoundOf(full));
    const bool isMeant = mayFit && !(whole && whole->fits);
    if (isMeant && seconds < secondsToBeat(none, tried, trials.options()))
      fastIfNone.insert({seconds, none});
  }
  constexpr size_t kMax = 8;
  std::vector<Candidate> missing;
  while (fastIfNone.size() > kMax) fastIfNone.erase(std::prev(fastIfNone.end()));
  for (const auto& [seconds, none] : fastIfNone) {
    for (const Candidate& c : {none, none.with(RematPolicy::kFull)}) {
      if (trials.isUntried(c)) missing.push_back(c);
    }
  }
  trials.tryAll(missing);
  std::vector<std::pair<double, Candidate>> expected;
  for (const auto& [atLeast, candidate] : fastIfNone) {
    const TriedStrategy* none = trials.known(candidate);
    const TriedStrategy* full = trials.known(candidate.with(RematPolicy::kFull));
    const Candidate asNeeded =
        candidate.with(RematPolicy::kAuto, trials.problem().cluster.device.memory);
    if (!none || none->fits || !full || !full->fits || !trials.isUntried(asNeeded)) {
      continue;
    }
    const double seconds =
        secondsAsNeeded(none->evaluation, full->evaluation, atLeast, trials.memory());
    if (seconds < secondsToBeat(asNeeded, tried, trials.options()))
      expected.push_back({seconds, asNeeded});
  }
  std::sort(expected.begin(), expected.end());
  return expected;
}

}  // namespace

double secondsAsNeeded(const Evaluation& none, const Evaluation& full, double atLeast,
                       double memory) {
  const double again = computingOf(full) - computingOf(none);
  const double least = std::max(atLeast, full.seconds - again);
  const double share = (none.peakBytes() - memory) / (none.peakBytes() - full.peakBytes());
  return least + share * share * (full.seconds - least);
}

void tryAsNeeded(Trials& trials) {
  if (trials.problem().pins.remat) return;
  constexpr size_t kAtOnce = 2;
  constexpr int kRounds = 3;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Candidate> asked;
    for (const auto& [seconds, candidate] : expectedAsNeeded(trials)) {
      // One tells about others that differ in what is sharded.
      auto isLike = [c = &candidate](const Candidate& other) {
        return std::tie(other.pp, other.tp, other.cp, other.micro) ==
               std::tie(c->pp, c->tp, c->cp, c->micro);
      };
      const bool isNew = std::none_of(asked.begin(), asked.end(), isLike);
      if (isNew && asked.size() < kAtOnce) asked.push_back(candidate);
    }
    if (asked.empty()) return;
    trials.tryAll(asked);
  }
}

}  // namespace oriel
