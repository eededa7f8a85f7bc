#include "passes/stage/balance.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace oriel {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSame = 1 + 1e-9;  // of sums in another order

// Cuts with the least total, where `total(soFar, cost of a stage)` adds a stage, and kNever is one
// that must not be.
std::vector<int64_t> bestCuts(const std::vector<double>& costs, int64_t stages,
                              const std::function<double(double, double)>& total) {
  const auto parts = static_cast<int64_t>(costs.size());
  std::vector<double> sums(parts + 1, 0);
  for (int64_t i = 0; i < parts; ++i) sums[i + 1] = sums[i] + costs[i];
  // By stages made and parts in them: the least total, and where the last stage begins.
  std::vector<std::vector<double>> least(stages + 1, std::vector<double>(parts + 1, kNever));
  std::vector<std::vector<int64_t>> first(stages + 1, std::vector<int64_t>(parts + 1, -1));
  least[0][0] = 0;
  for (int64_t stage = 1; stage <= stages; ++stage) {
    for (int64_t end = stage; end <= parts - (stages - stage); ++end) {
      for (int64_t begin = stage - 1; begin < end; ++begin) {
        if (least[stage - 1][begin] == kNever) continue;
        const double value = total(least[stage - 1][begin], sums[end] - sums[begin]);
        if (first[stage][end] >= 0 && value >= least[stage][end]) continue;
        least[stage][end] = value;
        first[stage][end] = begin;
      }
    }
  }
  std::vector<int64_t> firsts(stages);
  int64_t end = parts;
  for (int64_t stage = stages; stage > 0; --stage) end = firsts[stage - 1] = first[stage][end];
  return firsts;
}

double mostOf(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

// The cost of the slowest grid, then the sum of squares.
std::pair<double, double> rankOf(const std::vector<double>& grids) {
  double squares = 0;
  for (double cost : grids) squares += cost * cost;
  return {mostOf(grids), squares};
}

bool isLess(const std::pair<double, double>& a, const std::pair<double, double>& b) {
  if (a.first * kSame < b.first) return true;
  return a.first <= b.first * kSame && a.second * kSame < b.second;
}

}  // namespace

std::vector<double> gridCosts(const std::vector<double>& costs, const std::vector<int64_t>& firsts,
                              int64_t grids) {
  std::vector<double> sums(grids, 0);
  for (size_t stage = 0; stage < firsts.size(); ++stage) {
    const int64_t end =
        stage + 1 < firsts.size() ? firsts[stage + 1] : static_cast<int64_t>(costs.size());
    for (int64_t i = firsts[stage]; i < end; ++i) {
      sums[static_cast<int64_t>(stage) % grids] += costs[i];
    }
  }
  return sums;
}

std::vector<int64_t> balancedCuts(const std::vector<double>& costs, int64_t stages, int64_t grids) {
  std::vector<int64_t> firsts =
      bestCuts(costs, stages, [](double soFar, double cost) { return std::max(soFar, cost); });
  const double most = mostOf(gridCosts(costs, firsts, stages)) * kSame;
  firsts = bestCuts(costs, stages, [&](double soFar, double cost) {
    return cost > most ? kNever : soFar + cost * cost;
  });
  const auto parts = static_cast<int64_t>(costs.size());
  for (bool isBetter = grids < stages; isBetter;) {
    isBetter = false;
    for (int64_t stage = 1; stage < stages; ++stage) {
      for (int64_t step : {-1, 1}) {
        std::vector<int64_t> moved = firsts;
        moved[stage] += step;
        const int64_t end = stage + 1 < stages ? moved[stage + 1] : parts;
        if (moved[stage] <= moved[stage - 1] || moved[stage] >= end) continue;
        if (!isLess(rankOf(gridCosts(costs, moved, grids)),
                    rankOf(gridCosts(costs, firsts, grids)))) {
          continue;
        }
        firsts = std::move(moved);
        isBetter = true;
      }
    }
  }
  return firsts;
}

}  // namespace oriel
