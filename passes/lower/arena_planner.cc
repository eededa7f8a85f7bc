#include "passes/lower/arena_planner.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace oriel {

namespace {

int64_t aligned(int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

bool overlap(const TimeSpan& a, const TimeSpan& b) { return a.begin <= b.end && b.begin <= a.end; }

// Of spans in order.
bool overlap(const std::vector<TimeSpan>& a, const std::vector<TimeSpan>& b) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (overlap(a[i], b[j])) return true;
    a[i].end < b[j].end ? ++i : ++j;
  }
  return false;
}

bool liesIn(const TimeSpan& span, const TimeSpan& other) {
  return other.begin <= span.begin && span.end <= other.end;
}

TimeSpan spanOf(const ArenaBlock& block) { return {block.begin, block.end}; }
TimeSpan gapOf(const ArenaBlock& block) { return {block.gapBegin, block.gapEnd}; }

// From the first of the spans to the last; none at all if there is none.
TimeSpan hullOf(const std::vector<TimeSpan>& spans) {
  return spans.empty() ? TimeSpan{0, -1} : TimeSpan{spans.front().begin, spans.back().end};
}

// Whether blocks whose hulls overlap are in use at the same time. Two with gaps count as such if
// only their gaps differ.
bool meet(const ArenaBlock& a, const ArenaBlock& b) {
  if (a.copy && b.copy) return overlap(a.copy->among, b.copy->among);
  if (b.copy) return meet(b, a);
  if (!a.copy) return !liesIn(spanOf(a), gapOf(b)) && !liesIn(spanOf(b), gapOf(a));
  return std::any_of(a.copy->beside.begin(), a.copy->beside.end(), [&](const TimeSpan& span) {
    return overlap(span, spanOf(b)) && !liesIn(span, gapOf(b));
  });
}

// Whether two of the blocks are in use at the same time. Orders ask for the same pairs: what was
// found is remembered, for as many blocks as have room.
class Meetings {
 public:
  explicit Meetings(const std::vector<ArenaBlock>& blocks) : blocks_(blocks) {
    hulls_.reserve(blocks.size());
    for (const ArenaBlock& block : blocks) hulls_.emplace_back(block);
    constexpr size_t kMost = 8192;  // 64 MiB
    if (blocks.size() <= kMost) known_.resize(blocks.size() * blocks.size());
  }

  bool operator()(size_t a, size_t b) {
    if (known_.empty()) return find(a, b);
    Known& known = known_[a * blocks_.size() + b];
    if (known == kUnknown) {
      known = find(a, b) ? kMeet : kApart;
      known_[b * blocks_.size() + a] = known;
    }
    return known == kMeet;
  }

 private:
  enum Known : uint8_t { kUnknown, kMeet, kApart };

  // A block in time, for a first look: on the clock of all, and on that of copies.
  struct Hull {
    TimeSpan beside, among;
    bool isCopy;

    explicit Hull(const ArenaBlock& block)
        : beside(block.copy ? hullOf(block.copy->beside) : spanOf(block)),
          among(block.copy ? hullOf(block.copy->among) : TimeSpan{0, -1}),
          isCopy(block.copy.has_value()) {}

    bool overlaps(const Hull& other) const {
      return isCopy && other.isCopy ? overlap(among, other.among) : overlap(beside, other.beside);
    }
  };

  bool find(size_t a, size_t b) const {
    return hulls_[a].overlaps(hulls_[b]) && meet(blocks_[a], blocks_[b]);
  }

  const std::vector<ArenaBlock>& blocks_;
  std::vector<Hull> hulls_;
  std::vector<Known> known_;  // by pair; empty for too many blocks
};

// Blocks that have a place, by offset.
class PlacedBlocks {
 public:
  explicit PlacedBlocks(Meetings& meetings) : meetings_(meetings) {}

  // The lowest offset at which nothing of so many bytes is where something else is at the same
  // time as this block.
  int64_t lowestFree(size_t block, int64_t bytes, int64_t& steps) {
    int64_t offset = 0;
    for (const Placed& other : placed_) {
      if (offset + bytes <= other.low) break;
      ++steps;
      if (other.high > offset && meetings_(block, other.block)) offset = other.high;
    }
    return offset;
  }

  void add(size_t block, int64_t offset, int64_t bytes) {
    auto above = std::upper_bound(placed_.begin(), placed_.end(), offset,
                                  [](int64_t low, const Placed& other) { return low < other.low; });
    placed_.insert(above, {offset, offset + bytes, block});
  }

 private:
  struct Placed {
    int64_t low, high;  // bytes [low, high) of the arena
    size_t block;
  };
  Meetings& meetings_;
  std::vector<Placed> placed_;
};

// Each block, in this order, at the lowest offset that is free over its lifetime. Not all of them
// have a place where the arena has as many bytes as one that is `known`, or more.
ArenaLayout placeInOrder(const std::vector<ArenaBlock>& blocks, const std::vector<size_t>& order,
                         int64_t known, Meetings& meetings) {
  ArenaLayout layout;
  layout.offsets.assign(blocks.size(), 0);
  PlacedBlocks placed(meetings);
  for (size_t index : order) {
    if (blocks[index].bytes == 0) continue;
    const int64_t bytes = aligned(blocks[index].bytes);
    const int64_t offset = placed.lowestFree(index, bytes, layout.steps);
    layout.offsets[index] = offset;
    layout.bytes = std::max(layout.bytes, offset + bytes);
    if (layout.bytes >= known) break;
    placed.add(index, offset, bytes);
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

ArenaLayout planArena(const std::vector<ArenaBlock>& blocks, const ArenaEffort& effort) {
  const ArenaPeak peak = peakOf(blocks);
  const int64_t bound = effort.lowerBound.value_or(peak.bytes);
  const int64_t enough = std::max(bound, effort.enough);
  auto ticks = [&](size_t i) { return blocks[i].end - blocks[i].begin; };
  auto atPeak = [&](size_t i) {
    return blocks[i].begin <= peak.time && peak.time <= blocks[i].end;
  };
  // When it is first in use.
  auto first = [&](size_t i) {
    const auto& copy = blocks[i].copy;
    return copy && !copy->among.empty() ? copy->among.front().begin : blocks[i].begin;
  };
  ArenaLayout best;
  int64_t steps = 0;
  Meetings meetings(blocks);
  auto attempt = [&](auto key) {
    const bool isFirst = best.offsets.empty();
    if (!isFirst && (best.bytes <= enough || steps > effort.steps)) return;
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    ArenaLayout layout =
        placeInOrder(blocks, orderBy(blocks.size(), key), isFirst ? kNone : best.bytes, meetings);
    steps += layout.steps;
    if (isFirst || layout.bytes < best.bytes) best = std::move(layout);
  };
  attempt([&](size_t i) { return -blocks[i].bytes; });
  // What a forward keeps is stacked in the order in which it is made, so that all above the top is
  // free meanwhile, and again as the backward takes it down.
  attempt([&](size_t i) {
    return std::tuple(!atPeak(i), atPeak(i) ? blocks[i].begin : -blocks[i].bytes);
  });
  // Copies take turns where they are of the same size and side by side.
  attempt([&](size_t i) { return std::tuple(!blocks[i].isStash, -blocks[i].bytes, first(i)); });
  attempt([&](size_t i) {
    return std::tuple(!blocks[i].isStash, blocks[i].isStash ? first(i) : -blocks[i].bytes);
  });
  attempt([&](size_t i) { return std::tuple(-ticks(i), -blocks[i].bytes); });
  attempt([&](size_t i) { return std::tuple(!atPeak(i), -ticks(i), -blocks[i].bytes); });
  attempt(
      [&](size_t i) { return std::tuple(!blocks[i].isStash, -blocks[i].bytes, -blocks[i].end); });
  best.lowerBound = bound;
  best.steps = steps;
  return best;
}

}  // namespace oriel
