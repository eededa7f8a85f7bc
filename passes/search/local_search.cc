#include "passes/search/local_search.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "passes/search/preference.h"

namespace oriel {

namespace {

// Those neighbours of what was tried from which most can be expected: `secondsOf` says what they
// may take, or that they are not meant.
void tryPromising(
    Trials& trials,
    const std::function<std::optional<double>(const TriedStrategy&, const Candidate&)>& secondsOf) {
  std::vector<std::pair<double, Candidate>> expected;
  for (const TriedStrategy& tried : trials.result.tried) {
    const Candidate& from = tried.candidate;
    if (!tried.fits || (from.pp == 1 && from.ofSample() == 1)) continue;
    for (const Candidate& other : neighboursOf(from, trials.problem())) {
      if (other.pp != from.pp || trials.known(other)) continue;
      const std::optional<double> seconds = secondsOf(tried, other);
      if (seconds && *seconds < trials.fastest().evaluation.seconds) {
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
  trials.tryAll(asked);
}

std::vector<Candidate> promisingNeighboursOf(const Trials& trials, const Candidate& from) {
  std::vector<Candidate> promising;
  for (const Candidate& candidate : trials.untriedNeighboursOf(from)) {
    if (trials.leastBoundOf(candidate).seconds < trials.fastest().evaluation.seconds) {
      promising.push_back(candidate);
    }
  }
  return promising;
}

std::vector<Candidate> withOtherInterleave(const std::vector<Candidate>& neighbours,
                                           const Candidate& from) {
  std::vector<Candidate> others;
  for (const Candidate& other : neighbours) {
    const bool isInterleaved = from.interleave > 1 && other.interleave > 1;
    if (isInterleaved && other.interleave != from.interleave) others.push_back(other);
  }
  return others;
}

}  // namespace

void tryVariants(Trials& trials) {
  auto boundOf = [&](const Candidate& c) { return trials.leastBoundOf(c).seconds; };
  tryPromising(trials,
               [&](const TriedStrategy& tried, const Candidate& other) -> std::optional<double> {
                 const Candidate& from = tried.candidate;
                 if (other.interleave == from.interleave && other.apart == from.apart) {
                   return std::nullopt;
                 }
                 const double gain = other.apart == from.apart ? boundOf(other) / boundOf(from)
                                                               : 1 - trials.problem().encoderShare;
                 return tried.evaluation.seconds * gain;
               });
  tryPromising(
      trials, [&](const TriedStrategy& tried, const Candidate& other) -> std::optional<double> {
        if (other.placement == tried.candidate.placement) return std::nullopt;
        return std::max(boundOf(other), tried.evaluation.seconds * (1 - tried.evaluation.bubble));
      });
}

void climb(Trials& trials) {
  while (true) {
    const Candidate from = trials.fastest().candidate;
    trials.tryAll(withOtherInterleave(promisingNeighboursOf(trials, from), from));
    if (!(trials.fastest().candidate == from)) continue;
    trials.tryAll(promisingNeighboursOf(trials, from));
    if (trials.fastest().candidate == from) return;
  }
}

void lookAround(Trials& trials) {
  SearchResult& result = trials.result;
  Candidate best = simplestOf(result.tried, trials.options());
  auto isStill = [&] {
    const Candidate before = std::exchange(best, simplestOf(result.tried, trials.options()));
    return before == best;
  };
  while (trials.options().explain) {
    trials.tryAll(withOtherInterleave(trials.untriedNeighboursOf(best), best));
    if (!isStill()) continue;
    trials.tryAll(trials.untriedNeighboursOf(best));
    if (isStill()) break;
  }
  const auto place = std::find_if(result.tried.begin(), result.tried.end(),
                                  [&](const auto& tried) { return tried.candidate == best; });
  std::rotate(result.tried.begin(), place, std::next(place));
  for (const Candidate& candidate : neighboursOf(best, trials.problem())) {
    const TriedStrategy* tried = trials.known(candidate);
    const bool isOtherInAll = best.remat == RematPolicy::kAuto &&
                              candidate.remat == RematPolicy::kNone &&
                              !(candidate == best.with(RematPolicy::kNone));
    // What does not fit without would compute again as needed.
    if (tried && (tried->fits || !isOtherInAll)) result.neighbours.push_back(*tried);
  }
}

}  // namespace oriel
