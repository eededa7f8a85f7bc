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

// A span of time, but for a gap in it.
struct Life {
  TimeSpan span;
  TimeSpan gap = {0, -1};
};

Life lifeOf(const ArenaBlock& block) {
  return {{block.begin, block.end}, {block.gapBegin, block.gapEnd}};
}

bool liesInGap(const Life& life, const Life& other) {
  return other.gap.begin <= life.span.begin && life.span.end <= other.gap.end;
}

// Whether they are in use at the same time. Two with gaps count as such if only their gaps differ.
bool overlap(const Life& a, const Life& b) {
  return a.span.begin <= b.span.end && b.span.begin <= a.span.end && !liesInGap(a, b) &&
         !liesInGap(b, a);
}

// Bytes [low, high) of the arena.
struct Range {
  int64_t low, high;
};

// What has its place, found by time. A life of 2^k ticks or more, and fewer than twice as many, is
// in level k: there time is cut into rows of 2^k ticks, of which it is in three at most.
class PlacedLives {
 public:
  void add(const Life& life, const Range& range) {
    const size_t level = levelOf(life);
    if (levels_.size() <= level) levels_.resize(level + 1);
    for (int64_t row = life.span.begin >> level; row <= life.span.end >> level; ++row) {
      levels_[level][row].push_back({life, range});
    }
  }

  // Calls `visit` with the ranges in use at the same time.
  template <typename Visit>
  void forEachAtTheTimeOf(const Life& life, Visit visit) const {
    for (size_t level = 0; level < levels_.size(); ++level) {
      const auto& rows = levels_[level];
      const int64_t last = life.span.end >> level;
      for (auto row = rows.lower_bound(life.span.begin >> level);
           row != rows.end() && row->first <= last; ++row) {
        for (const auto& [other, range] : row->second) {
          // Once, in the first row that both are in.
          const bool isFirst = std::max(other.span.begin, life.span.begin) >> level == row->first;
          if (isFirst && overlap(other, life)) visit(range);
        }
      }
    }
  }

 private:
  static size_t levelOf(const Life& life) {
    size_t level = 0;
    for (int64_t ticks = life.span.end - life.span.begin + 1; ticks > 1; ticks >>= 1) ++level;
    return level;
  }

  std::vector<std::map<int64_t, std::vector<std::pair<Life, Range>>>> levels_;
};

int64_t copiesOf(const ArenaBlock& block) {
  return block.copies.empty() ? 1 : static_cast<int64_t>(block.copies.size());
}

// Blocks with a place. Those of one copy and those of several have a clock each, and the latter are
// on both.
class PlacedBlocks {
 public:
  void add(const ArenaBlock& block, int64_t offset) {
    const int64_t bytes = aligned(block.bytes);
    if (block.copies.empty()) plain_.add(lifeOf(block), {offset, offset + bytes});
    for (const ArenaCopy& copy : block.copies) {
      const Range range{offset, offset + bytes};
      for (const TimeSpan& span : copy.beside) copiesBeside_.add({span}, range);
      for (const TimeSpan& span : copy.among) copiesAmong_.add({span}, range);
      offset += bytes;
    }
  }

  // The lowest at which nothing of the block is where something else is at the same time.
  int64_t lowestFree(const ArenaBlock& block) {
    const int64_t bytes = aligned(block.bytes);
    taken_.clear();
    if (block.copies.empty()) {
      auto take = [&](const Range& range) { taken_.push_back({range.low - bytes, range.high}); };
      plain_.forEachAtTheTimeOf(lifeOf(block), take);
      copiesBeside_.forEachAtTheTimeOf(lifeOf(block), take);
    }
    int64_t behind = 0;  // the first copy
    auto take = [&](const Range& range) {
      taken_.push_back({range.low - behind - bytes, range.high - behind});
    };
    for (const ArenaCopy& copy : block.copies) {
      for (const TimeSpan& span : copy.beside) plain_.forEachAtTheTimeOf({span}, take);
      for (const TimeSpan& span : copy.among) copiesAmong_.forEachAtTheTimeOf({span}, take);
      behind += bytes;
    }
    std::sort(taken_.begin(), taken_.end(), [](const Range& a, const Range& b) {
      return std::tie(a.low, a.high) < std::tie(b.low, b.high);
    });
    int64_t offset = 0;
    for (const Range& range : taken_) {
      if (offset <= range.low) break;
      offset = std::max(offset, range.high);
    }
    return offset;
  }

 private:
  PlacedLives plain_, copiesBeside_, copiesAmong_;
  std::vector<Range> taken_;  // offsets that are not free, the ends not included
};

// Each block, in this order, at the lowest offset that is free over its lifetime.
ArenaLayout placeInOrder(const std::vector<ArenaBlock>& blocks, const std::vector<size_t>& order) {
  ArenaLayout layout;
  layout.offsets.assign(blocks.size(), 0);
  PlacedBlocks placed;
  for (size_t index : order) {
    const ArenaBlock& block = blocks[index];
    if (block.bytes == 0) continue;
    const int64_t offset = placed.lowestFree(block);
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, offset + copiesOf(block) * aligned(block.bytes));
    placed.add(block, offset);
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

ArenaLayout planArena(const std::vector<ArenaBlock>& blocks, std::optional<int64_t> lowerBound) {
  const ArenaPeak peak = peakOf(blocks);
  const int64_t bound = lowerBound.value_or(peak.bytes);
  auto bytes = [&](size_t i) { return copiesOf(blocks[i]) * blocks[i].bytes; };
  auto ticks = [&](size_t i) { return blocks[i].end - blocks[i].begin; };
  auto atPeak = [&](size_t i) {
    return blocks[i].begin <= peak.time && peak.time <= blocks[i].end;
  };
  ArenaLayout best;
  auto attempt = [&](auto key) {
    if (!best.offsets.empty() && best.bytes == bound) return;
    ArenaLayout layout = placeInOrder(blocks, orderBy(blocks.size(), key));
    if (best.offsets.empty() || layout.bytes < best.bytes) best = std::move(layout);
  };
  attempt([&](size_t i) { return -bytes(i); });
  // What a forward keeps is stacked in the order in which it is made, so that all above the top is
  // free meanwhile, and again as the backward takes it down.
  attempt(
      [&](size_t i) { return std::tuple(!atPeak(i), atPeak(i) ? blocks[i].begin : -bytes(i)); });
  attempt([&](size_t i) { return std::tuple(-ticks(i), -bytes(i)); });
  attempt([&](size_t i) { return std::tuple(!atPeak(i), -ticks(i), -bytes(i)); });
  // Copies take turns where they are of the same size and side by side.
  attempt([&](size_t i) {
    return std::tuple(blocks[i].copies.empty(), -blocks[i].bytes, blocks[i].begin);
  });
  attempt([&](size_t i) {
    return std::tuple(blocks[i].copies.empty(), -blocks[i].bytes, -blocks[i].end);
  });
  best.lowerBound = bound;
  return best;
}

}  // namespace oriel
