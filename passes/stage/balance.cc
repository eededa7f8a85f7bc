#include "passes/stage/balance.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "passes/stage/cut_moves.h"

namespace oriel {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSame = 1 + 1e-9;  // of sums in another order

struct BestCuts {
  std::vector<int64_t> firsts;
  double total;
};

// Those with the least total, where `total(so far, cost of the stages before, cost of a stage)`
// adds a stage, and kNever is one that must not be.
BestCuts bestCuts(const std::vector<double>& costs, int64_t stages,
                  const std::function<double(double, double, double)>& total) {
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
        const double value = total(least[stage - 1][begin], sums[begin], sums[end] - sums[begin]);
        if (first[stage][end] >= 0 && value >= least[stage][end]) continue;
        least[stage][end] = value;
        first[stage][end] = begin;
      }
    }
  }
  std::vector<int64_t> firsts(stages);
  int64_t end = parts;
  for (int64_t stage = stages; stage > 0; --stage) end = firsts[stage - 1] = first[stage][end];
  return {std::move(firsts), least[stages][parts]};
}

double mostOf(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}

double squaresOf(const std::vector<double>& values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

// What is to be small, the most important first: the cost of the slowest grid, the squares of
// those of grids, and of those of stages.
using Rank = std::array<double, 3>;

bool isLess(const Rank& a, const Rank& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] * kSame < b[i]) return true;
    if (b[i] * kSame < a[i]) return false;
  }
  return false;
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

double leastLargest(const std::vector<double>& costs, int64_t stages,
                    const std::function<double(double before, double own)>& total) {
  return bestCuts(costs, stages,
                  [&](double soFar, double before, double own) {
                    return std::max(soFar, total(before, own));
                  })
      .total;
}

std::vector<int64_t> balancedCuts(const std::vector<double>& costs, int64_t stages, int64_t grids) {
  const double most = leastLargest(costs, stages, [](double, double own) { return own; }) * kSame;
  std::vector<int64_t> firsts = bestCuts(costs, stages, [&](double soFar, double, double own) {
                                  return own > most ? kNever : soFar + own * own;
                                }).firsts;
  if (grids == stages) return firsts;
  auto rankOf = [&](const std::vector<int64_t>& cuts) {
    const std::vector<double> ofGrids = gridCosts(costs, cuts, grids);
    return Rank{mostOf(ofGrids), squaresOf(ofGrids), squaresOf(gridCosts(costs, cuts, stages))};
  };
  Rank least = rankOf(firsts);
  const auto parts = static_cast<int64_t>(costs.size());
  return improvedCuts(std::move(firsts), parts, grids, [&](const std::vector<int64_t>& cuts) {
    const Rank rank = rankOf(cuts);
    const bool isBetter = isLess(rank, least);
    if (isBetter) least = rank;
    return isBetter;
  });
}

}  // namespace oriel
