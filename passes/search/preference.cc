#include "passes/search/preference.h"

#include <algorithm>
#include <tuple>

namespace oriel {

namespace {

// How a model is laid out over ranks, the simplest first.
auto structureOf(const Candidate& candidate) {
  return std::tuple(candidate.pp, candidate.tp, candidate.cp, candidate.interleave);
}

bool isAbout(const TriedStrategy& tried, const TriedStrategy& fastest, double tolerance) {
  return tried.fits && tried.evaluation.seconds <= fastest.evaluation.seconds * (1 + tolerance);
}

}  // namespace

Candidate simplestOf(const std::vector<TriedStrategy>& tried, const SearchOptions& options) {
  const TriedStrategy& fastest = tried.front();
  const TriedStrategy* first = &fastest;  // of the simplest structure
  for (const TriedStrategy& each : tried) {
    if (!isAbout(each, fastest, options.structureTolerance)) break;
    if (structureOf(each.candidate) < structureOf(first->candidate)) first = &each;
  }
  Candidate best = first->candidate;
  for (const TriedStrategy& each : tried) {
    const bool isAlike = structureOf(each.candidate) == structureOf(first->candidate);
    if (isAlike && isAbout(each, *first, options.tolerance) &&
        isAbout(each, fastest, options.structureTolerance)) {
      best = std::min(best, each.candidate);
    }
  }
  return best;
}

double secondsToBeat(const Candidate& candidate, const std::vector<TriedStrategy>& tried,
                     const SearchOptions& options) {
  const TriedStrategy& fastest = tried.front();
  const double own = 1 + options.tolerance;
  if (!(structureOf(candidate) < structureOf(fastest.candidate))) {
    return fastest.evaluation.seconds / own;
  }
  double most = fastest.evaluation.seconds * (1 + options.structureTolerance);
  for (const TriedStrategy& each : tried) {
    if (!each.fits || structureOf(each.candidate) != structureOf(candidate)) continue;
    most = std::min(most, each.evaluation.seconds / own);
  }
  return most;
}

}  // namespace oriel
