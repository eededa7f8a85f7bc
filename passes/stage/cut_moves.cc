#include "passes/stage/cut_moves.h"

#include <algorithm>
#include <utility>

namespace oriel {

std::optional<std::vector<int64_t>> withPartMoved(std::vector<int64_t> firsts, int64_t parts,
                                                  int64_t from, int64_t to) {
  for (int64_t stage = from + 1; stage <= to; ++stage) --firsts[stage];
  for (int64_t stage = to + 1; stage <= from; ++stage) ++firsts[stage];
  const bool isEmpty =
      firsts.back() >= parts ||
      std::adjacent_find(firsts.begin(), firsts.end(), std::greater_equal<>()) != firsts.end();
  if (isEmpty) return std::nullopt;
  return firsts;
}

std::vector<int64_t> improvedCuts(
    std::vector<int64_t> firsts, int64_t parts, int64_t grids,
    const std::function<std::optional<bool>(const std::vector<int64_t>&)>& isBetter) {
  const auto stages = static_cast<int64_t>(firsts.size());
  bool hasMoved = true, isOver = false;
  auto attempt = [&](int64_t from, int64_t to, int64_t round) {
    std::optional<std::vector<int64_t>> moved = withPartMoved(firsts, parts, from, to);
    if (moved && round > 0) {
      moved =
          withPartMoved(*std::move(moved), parts, (to + round) % stages, (from + round) % stages);
    }
    if (!moved) return;
    const std::optional<bool> better = isBetter(*moved);
    isOver = !better;
    if (!better || !*better) return;
    firsts = *std::move(moved);
    hasMoved = true;
  };
  while (hasMoved && !isOver) {
    hasMoved = false;
    for (int64_t from = 0; from < stages && !isOver; ++from) {
      for (int64_t to = 0; to < stages && !isOver; ++to) {
        if (from == to) continue;
        for (int64_t round = 0; round < stages && !isOver; round += grids) attempt(from, to, round);
      }
    }
  }
  return firsts;
}

}  // namespace oriel
