#include "passes/search/trials.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace oriel {

namespace {

// Of a bound's bytes, what is needed for sure.
constexpr double kSureBytes = 0.85;

bool isFaster(const TriedStrategy& a, const TriedStrategy& b) {
  if (a.fits != b.fits) return a.fits;
  const double first = a.fits ? a.evaluation.seconds : a.evaluation.peakBytes();
  const double second = b.fits ? b.evaluation.seconds : b.evaluation.peakBytes();
  return std::tie(first, a.candidate) < std::tie(second, b.candidate);
}

}  // namespace

Bound Trials::leastBoundOf(const Candidate& candidate) const {
  const MicrobatchCost cost = costs_.least(candidate);
  return boundOf(candidate, cost, problem_.cluster, knownLeastRuns(candidate, cost.parts));
}

bool Trials::mayFit(const Bound& bound) const { return bound.bytes * kSureBytes <= memory(); }

// The same for many candidates.
double Trials::knownLeastRuns(const Candidate& c, const std::vector<double>& parts) const {
  if (c.pp == 1 || parts.empty()) return 0;
  const auto [known, isNew] = leastRuns_.try_emplace({{c.micro, c.microbatches, c.interleave, c.pp},
                                                      {c.tp, c.cp, c.sequenceParallel, c.apart},
                                                      c.remat,
                                                      c.schedule},
                                                     0);
  if (isNew) known->second = leastRuns(c, parts);
  return known->second;
}

std::vector<absl::StatusOr<Evaluation>> Trials::evaluate(const std::vector<Candidate>& candidates) {
  std::vector<Strategy> strategies;
  for (const Candidate& candidate : candidates) strategies.push_back(candidate.strategy());
  result.simulated += static_cast<int64_t>(strategies.size());
  std::vector<absl::StatusOr<Evaluation>> found = evaluate_(strategies);
  for (const auto& evaluation : found) {
    if (evaluation.ok()) continue;
    if (++result.refused == 1) result.firstRefusal = evaluation.status();
  }
  return found;
}

const TriedStrategy& Trials::add(const Candidate& candidate, Evaluation evaluation, double bound) {
  const bool fits = evaluation.peakBytes() <= memory();
  if (fits) leastSeconds_ = std::min(leastSeconds_, evaluation.seconds);
  result.tried.push_back({candidate, std::move(evaluation), fits, bound});
  return result.tried.back();
}

void Trials::tryAll(const std::vector<Candidate>& asked) {
  if (isTimeUp()) return;
  std::vector<absl::StatusOr<Evaluation>> found = evaluate(asked);
  for (size_t i = 0; i < asked.size(); ++i) {
    if (found[i].ok()) {
      add(asked[i], *std::move(found[i]), 0);
    } else {
      failed_.insert(asked[i]);
    }
  }
  sort();
}

void Trials::sort() { std::sort(result.tried.begin(), result.tried.end(), isFaster); }

const TriedStrategy* Trials::known(const Candidate& candidate) const {
  for (const TriedStrategy& tried : result.tried) {
    if (tried.candidate == candidate) return &tried;
  }
  return nullptr;
}

bool Trials::isUntried(const Candidate& candidate) const {
  return !known(candidate) && failed_.count(candidate) == 0;
}

std::vector<Candidate> Trials::untriedNeighboursOf(const Candidate& candidate) const {
  std::vector<Candidate> untried;
  for (const Candidate& other : neighboursOf(candidate, problem_)) {
    const bool isUseless = other.remat == RematPolicy::kAuto ||
                           (result.isSelectiveNone && other.remat == RematPolicy::kSelective);
    if (!isUseless && isUntried(other)) untried.push_back(other);
  }
  return untried;
}

bool Trials::isTimeUp() {
  const bool mayEnd = std::isfinite(leastSeconds_);
  isTimeUp_ = isTimeUp_ || (mayEnd && options_.isTimeUp());
  return isTimeUp_;
}

}  // namespace oriel
