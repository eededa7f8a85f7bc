#include "passes/lower/arena_planner.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace oriel {

namespace {

int64_t aligned(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool liesInGap(const ArenaBlock& block, const ArenaBlock& other) {
  return other.gapBegin <= block.begin && block.end <= other.gapEnd;
}

// Whether they are in use at the same time. Two with gaps count as such if only their gaps differ.
bool overlap(const ArenaBlock& a, const ArenaBlock& b) {
  return a.begin <= b.end && b.begin <= a.end && !liesInGap(a, b) && !liesInGap(b, a);
}

// Blocks that have their place, found by time. A block whose lifetime has 2^k ticks or more, and
// fewer than twice as many, is in level k: there time is cut into rows of 2^k ticks, of which it is
// in three at most.
class PlacedBlocks {
 public:
  void add(const ArenaBlock& block, int64_t offset) {
    const size_t level = levelOf(block);
    if (levels_.size() <= level) levels_.resize(level + 1);
    const Entry entry{block, offset, offset + aligned(block.bytes)};
    for (int64_t row = block.begin >> level; row <= block.end >> level; ++row) {
      levels_[level][row].push_back(entry);
    }
  }

  // Ranges of the arena that blocks in use at the same time have, by offset.
  const std::vector<std::pair<int64_t, int64_t>>& rangesInUse(const ArenaBlock& block) {
    ranges_.clear();
    for (size_t level = 0; level < levels_.size(); ++level) {
      const auto& rows = levels_[level];
      const int64_t last = block.end >> level;
      for (auto row = rows.lower_bound(block.begin >> level);
           row != rows.end() && row->first <= last; ++row) {
        for (const Entry& entry : row->second) {
          // Once, in the first row that both are in.
          const bool isFirst = std::max(entry.block.begin, block.begin) >> level == row->first;
          if (isFirst && overlap(entry.block, block)) ranges_.emplace_back(entry.low, entry.high);
        }
      }
    }
    std::sort(ranges_.begin(), ranges_.end());
    return ranges_;
  }

 private:
  struct Entry {
    ArenaBlock block;
    int64_t low, high;  // offsets, the latter not included
  };

  static size_t levelOf(const ArenaBlock& block) {
    size_t level = 0;
    for (int64_t ticks = block.end - block.begin + 1; ticks > 1; ticks >>= 1) ++level;
    return level;
  }

  std::vector<std::map<int64_t, std::vector<Entry>>> levels_;
  std::vector<std::pair<int64_t, int64_t>> ranges_;
};

// Each block, in this order, at the lowest offset that is free over its lifetime.
ArenaLayout placeInOrder(const std::vector<ArenaBlock>& blocks, const std::vector<size_t>& order) {
  ArenaLayout layout;
  layout.offsets.assign(blocks.size(), 0);
  PlacedBlocks placed;
  for (size_t index : order) {
    const int64_t bytes = aligned(blocks[index].bytes);
    if (bytes == 0) continue;
    int64_t offset = 0;
    for (const auto& [low, high] : placed.rangesInUse(blocks[index])) {
      if (offset + bytes <= low) break;
      offset = std::max(offset, high);
    }
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    placed.add(blocks[index], offset);
  }
  return layout;
}

// Orders of blocks, by a key: the smallest first.
template <typename Key>
std::vector<size_t> orderBy(size_t count, Key key) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

}  // namespace

ArenaPeak peakOf(const std::vector<ArenaBlock>& blocks) {
  std::map<int64_t, int64_t> change;
  for (const ArenaBlock& block : blocks) {
    change[block.begin] += aligned(block.bytes);
    change[block.end + 1] -= aligned(block.bytes);
    if (block.gapEnd < block.gapBegin) continue;
    change[block.gapBegin] -= aligned(block.bytes);
    change[block.gapEnd + 1] += aligned(block.bytes);
  }
  ArenaPeak peak;
  int64_t inUse = 0;
  for (const auto& [time, delta] : change) {
    inUse += delta;
    if (inUse > peak.bytes) peak = {inUse, time};
  }
  return peak;
}

ArenaLayout planArena(const std::vector<ArenaBlock>& blocks) {
  const ArenaPeak peak = peakOf(blocks);
  auto ticks = [&](size_t i) { return blocks[i].end - blocks[i].begin; };
  auto atPeak = [&](size_t i) {
    return blocks[i].begin <= peak.time && peak.time <= blocks[i].end;
  };
  ArenaLayout best;
  auto attempt = [&](auto key) {
    if (!best.offsets.empty() && best.bytes == peak.bytes) return;
    ArenaLayout layout = placeInOrder(blocks, orderBy(blocks.size(), key));
    if (best.offsets.empty() || layout.bytes < best.bytes) best = std::move(layout);
  };
  attempt([&](size_t i) { return -blocks[i].bytes; });
  // What a forward keeps is stacked in the order in which it is made, so that all above the top is
  // free meanwhile, and again as the backward takes it down.
  attempt([&](size_t i) {
    return std::tuple(!atPeak(i), atPeak(i) ? blocks[i].begin : -blocks[i].bytes);
  });
  attempt([&](size_t i) { return std::tuple(-ticks(i), -blocks[i].bytes); });
  attempt([&](size_t i) { return std::tuple(!atPeak(i), -ticks(i), -blocks[i].bytes); });
  best.lowerBound = peak.bytes;
  return best;
}

}  // namespace oriel
