#include "passes/lower/arena_planner.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace oriel {

namespace {

int64_t aligned(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool overlapInTime(const ArenaBlock& a, const ArenaBlock& b) {
  return a.begin <= b.end && b.begin <= a.end;
}

int64_t largestSumInUse(const std::vector<ArenaBlock>& blocks) {
  std::map<int64_t, int64_t> change;
  for (const ArenaBlock& block : blocks) {
    change[block.begin] += aligned(block.bytes);
    change[block.end + 1] -= aligned(block.bytes);
  }
  int64_t inUse = 0, largest = 0;
  for (const auto& [time, delta] : change) largest = std::max(largest, inUse += delta);
  return largest;
}

}  // namespace

ArenaLayout planArena(const std::vector<ArenaBlock>& blocks) {
  std::vector<size_t> bySize(blocks.size());
  std::iota(bySize.begin(), bySize.end(), size_t{0});
  std::stable_sort(bySize.begin(), bySize.end(),
                   [&](size_t a, size_t b) { return blocks[a].bytes > blocks[b].bytes; });

  ArenaLayout layout;
  layout.offsets.assign(blocks.size(), 0);
  layout.lowerBound = largestSumInUse(blocks);
  std::vector<size_t> placed;  // sorted by offset
  for (size_t index : bySize) {
    const int64_t bytes = aligned(blocks[index].bytes);
    int64_t offset = 0;
    for (size_t other : placed) {
      if (!overlapInTime(blocks[index], blocks[other])) continue;
      if (offset + bytes <= layout.offsets[other]) break;
      offset = std::max(offset, layout.offsets[other] + aligned(blocks[other].bytes));
    }
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    auto byOffset = [&](size_t a, size_t b) { return layout.offsets[a] < layout.offsets[b]; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), index, byOffset), index);
  }
  return layout;
}

}  // namespace oriel
