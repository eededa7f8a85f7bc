#include "passes/stage/siamese_order.h"

#include <algorithm>
#include <map>
#include <utility>

namespace oriel {

namespace {

// Ops that do the same with the same parameters on what such ops make.
class Computations {
 public:
  explicit Computations(const std::vector<BranchOp>& ops) {
    std::map<std::pair<int, std::vector<int>>, int> known;
    for (const BranchOp& op : ops) {
      std::vector<int> operands;
      int weights = 0;
      for (int operand : op.operands) {
        operands.push_back(of_[operand]);
        weights = std::max(weights, weights_[of_[operand]]);
      }
      const auto next = static_cast<int>(weights_.size());
      auto [found, isNew] = known.try_emplace({op.kind, std::move(operands)}, next);
      if (isNew) {
        weights_.push_back(weights + op.hasWeight);
        counts_.push_back(0);
      }
      of_.push_back(found->second);
      ++counts_[found->second];
    }
  }

  int of(int op) const { return of_[op]; }
  int count() const { return static_cast<int>(counts_.size()); }

  // Most weights, one behind the other, of a computation that is there several times.
  int sharedWeights() const {
    int most = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > 1) most = std::max(most, weights_[i]);
    }
    return most;
  }

 private:
  std::vector<int> of_;       // by op
  std::vector<int> weights_;  // by computation
  std::vector<int> counts_;
};

}  // namespace

std::vector<int> siameseOrder(const std::vector<BranchOp>& ops, const std::vector<int>& order) {
  constexpr int kLeastWeights = 2;
  const Computations computations(ops);
  if (computations.sharedWeights() < kLeastWeights) return order;
  std::vector<std::vector<int>> same(computations.count());
  for (int op : order) same[computations.of(op)].push_back(op);
  std::vector<bool> isDone(ops.size(), false);
  std::vector<int> result;
  auto isReady = [&](int op) {
    const std::vector<int>& operands = ops[op].operands;
    return std::all_of(operands.begin(), operands.end(), [&](int own) { return isDone[own]; });
  };
  for (int first : order) {
    // What it reads has been taken with the others of its kind: the first one is ready.
    for (int op : same[computations.of(first)]) {
      if (isDone[op] || !isReady(op)) continue;
      isDone[op] = true;
      result.push_back(op);
    }
  }
  return result;
}

}  // namespace oriel
