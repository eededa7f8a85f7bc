#include "passes/stage/towers.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace oriel {

namespace {

// Kinds that repeat with a period: op i and op i + period are of a kind, for all of the row that
// have such a partner.
struct Row {
  int begin;
  int end;
  int period;
};

class TowerFinder {
 public:
  explicit TowerFinder(const std::vector<SequenceOp>& ops)
      : ops_(ops), size_(static_cast<int>(ops.size())), taken_(size_, false) {
    std::vector<int> lastUse(size_, -1);
    liveBytes_.assign(size_ + 1, 0);
    reads_.assign(size_ + 1, 0);
    for (int i = 0; i < size_; ++i) {
      for (int operand : ops_[i].operands) {
        lastUse[operand] = i;
        // At the cuts behind the operand, up to the one in front of its reader.
        ++reads_[operand + 1];
        --reads_[i + 1];
      }
    }
    for (int i = 0; i < size_; ++i) {
      if (lastUse[i] < 0) continue;
      liveBytes_[i + 1] += ops_[i].bytes;
      liveBytes_[lastUse[i] + 1] -= ops_[i].bytes;
    }
    for (int cut = 1; cut <= size_; ++cut) {
      liveBytes_[cut] += liveBytes_[cut - 1];
      reads_[cut] += reads_[cut - 1];
    }
  }

  std::vector<Tower> find() {
    std::vector<Tower> towers;
    while (std::optional<Tower> best = findBest()) {
      for (const Block& block : *best) mark(block, true);
      towers.push_back(std::move(*best));
    }
    std::sort(towers.begin(), towers.end(),
              [](const Tower& a, const Tower& b) { return a.front().begin < b.front().begin; });
    return towers;
  }

 private:
  void mark(const Block& block, bool taken) {
    std::fill(taken_.begin() + block.begin, taken_.begin() + block.end, taken);
  }

  // The tower that costs most of those in what is left; of equal ones the one of shorter blocks.
  std::optional<Tower> findBest() {
    std::optional<Tower> best;
    double bestCost = 0;
    for (int period = 1; 2 * period <= size_; ++period) {
      for (const Row& row : rowsOf(period)) {
        std::optional<Tower> tower = towerOf(row);
        if (!tower) continue;
        const double cost = costOf(*tower);
        constexpr double kMore = 1 + 1e-9;
        if (best && cost <= bestCost * kMore) continue;
        best = std::move(tower);
        bestCost = cost;
      }
    }
    return best;
  }

  // As long as can be, of at least two periods.
  std::vector<Row> rowsOf(int period) const {
    std::vector<Row> rows;
    int length = 0;  // pairs in a row that match, up to here
    int free = 0;    // ops in a row that are not taken, up to the later one of the pair
    for (int i = 0; i < size_; ++i) {
      free = taken_[i] ? 0 : free + 1;
      const int first = i - period;
      const bool matches = first >= 0 && free > period && ops_[first].kind == ops_[i].kind;
      if (matches) ++length;
      if (matches && i + 1 < size_) continue;
      const int end = matches ? i + 1 : i;
      if (length >= period) rows.push_back({end - length - period, end, period});
      length = 0;
    }
    return rows;
  }

  std::optional<Tower> towerOf(const Row& row) {
    Tower tower;
    using Rank = std::tuple<double, int, double>;
    std::optional<Rank> best;
    for (int begin = row.begin; begin < row.begin + row.period; ++begin) {
      const int count = (row.end - begin) / row.period;
      if (count < 2) break;
      // Few bytes between blocks; many blocks; in between, a value that many read.
      double bytes = 0, reads = 0;
      for (int k = 1; k < count; ++k) {
        bytes += static_cast<double>(liveBytes_[begin + k * row.period]);
        reads += reads_[begin + k * row.period];
      }
      const Rank rank(bytes / (count - 1), -count, -reads / (count - 1));
      if (best && rank >= *best) continue;
      best = rank;
      tower.clear();
      for (int k = 0; k < count; ++k) {
        tower.push_back({begin + k * row.period, begin + (k + 1) * row.period});
      }
    }
    if (tower.empty() || !isTower(tower)) return std::nullopt;
    // A layer more at the end, without what is between the others.
    std::optional<Tower> longer = withRest(tower, row);
    addSeparateBlocks(&tower);
    if (!longer) return tower;
    addSeparateBlocks(&*longer);
    constexpr double kEnough = 0.5;
    return costOf(*longer) >= kEnough * costOf(tower) ? *longer : tower;
  }

  bool isTower(const Tower& tower) const {
    if (!hasWeight(tower.front())) return false;
    for (size_t i = 1; i < tower.size(); ++i) {
      if (!isBehind(tower[i], tower[i - 1])) return false;
    }
    return true;
  }

  // The row may end in the beginning of a block: blocks that are no longer than that.
  std::optional<Tower> withRest(const Tower& tower, const Row& row) const {
    const int begin = tower.front().begin, count = static_cast<int>(tower.size());
    int length = 0;
    double least = 0;
    for (int end = begin + 1; end <= row.end - count * row.period; ++end) {
      double bytes = 0;
      for (int k = 0; k < count; ++k)
        bytes += static_cast<double>(liveBytes_[end + k * row.period]);
      if (length > 0 && bytes > least) continue;
      least = bytes;
      length = end - begin;
    }
    if (length == 0) return std::nullopt;
    Tower longer;
    for (int k = 0; k <= count; ++k) {
      longer.push_back({begin + k * row.period, begin + k * row.period + length});
    }
    if (!isTower(longer) || readByWeights(longer[0], longer[1].begin)) return std::nullopt;
    return longer;
  }

  // Whether an op with a weight that is behind the block, up to `end`, reads what comes of it. Then
  // that is a part of the layer, even if a residual leads around it.
  bool readByWeights(const Block& block, int end) const {
    std::vector<bool> reached(end - block.begin, false);
    for (int i = block.begin; i < end; ++i) {
      bool isReached = i < block.end;
      for (int operand : ops_[i].operands) {
        isReached |= operand >= block.begin && reached[operand - block.begin];
      }
      if (isReached && i >= block.end && ops_[i].hasWeight) return true;
      reached[i - block.begin] = isReached;
    }
    return false;
  }

  double costOf(const Tower& tower) const {
    double cost = 0;
    for (const Block& block : tower) {
      for (int i = block.begin; i < block.end; ++i) cost += ops_[i].cost;
    }
    return cost;
  }

  bool hasWeight(const Block& block) const {
    return std::any_of(ops_.begin() + block.begin, ops_.begin() + block.end,
                       [](const SequenceOp& op) { return op.hasWeight; });
  }

  // The same sequence elsewhere, where only ops without weights are between it and the tower.
  void addSeparateBlocks(Tower* tower) {
    for (const Block& block : *tower) mark(block, true);
    const int period = tower->front().end - tower->front().begin;
    Tower before;
    Block first = tower->front(), last = tower->back();
    for (int begin = first.begin - period; begin >= 0; --begin) {
      const Block block{begin, begin + period};
      if (!isLike(block, tower->front()) || !isBehind(first, block)) continue;
      mark(block, true);
      before.push_back(first = block);
      begin -= period - 1;
    }
    for (int begin = last.end; begin + period <= size_; ++begin) {
      const Block block{begin, begin + period};
      if (!isLike(block, tower->front()) || !isBehind(block, last)) continue;
      mark(block, true);
      tower->push_back(last = block);
      begin += period - 1;
    }
    tower->insert(tower->begin(), before.rbegin(), before.rend());
    for (const Block& block : *tower) mark(block, false);
  }

  bool isLike(const Block& block, const Block& pattern) const {
    for (int i = 0; i < pattern.end - pattern.begin; ++i) {
      if (taken_[block.begin + i]) return false;
      if (ops_[block.begin + i].kind != ops_[pattern.begin + i].kind) return false;
    }
    return true;
  }

  // Whether `later` reads what ops make of what `block` makes, but no op in another block and
  // none with a weight.
  bool isBehind(const Block& later, const Block& block) const {
    std::vector<bool> reached(later.end - block.begin, false);
    for (int i = block.begin; i < later.end; ++i) {
      bool isReached = i < block.end;
      for (int operand : ops_[i].operands) {
        isReached |= operand >= block.begin && reached[operand - block.begin];
      }
      if (!isReached) continue;
      if (i >= later.begin) return true;
      if (i >= block.end && (taken_[i] || ops_[i].hasWeight)) continue;
      reached[i - block.begin] = true;
    }
    return false;
  }

  const std::vector<SequenceOp>& ops_;
  int size_;
  std::vector<bool> taken_;
  // At the cut in front of each op: bytes of values made before and read behind, and the reads.
  std::vector<int64_t> liveBytes_, reads_;
};

// The sequence without its conversions: who reads a converted value reads the value itself.
class Unconverted {
 public:
  explicit Unconverted(const std::vector<SequenceOp>& all) : all_(all) {
    // By place in `all`: the op in ops_ whose value it makes, or hands on.
    std::vector<int> source(all.size(), -1);
    for (size_t place = 0; place < all.size(); ++place) {
      std::vector<int> operands;
      for (int operand : all[place].operands) {
        if (source[operand] >= 0) operands.push_back(source[operand]);
      }
      if (all[place].isConversion) {
        if (!operands.empty()) source[place] = operands.front();
        continue;
      }
      source[place] = static_cast<int>(ops_.size());
      ops_.push_back(all[place]);
      ops_.back().operands = std::move(operands);
      placeOf_.push_back(static_cast<int>(place));
    }
  }

  const std::vector<SequenceOp>& ops() const { return ops_; }

  // The block of the whole sequence.
  Block withConversions(const Block& block) const {
    Block whole{placeOf_[block.begin], placeOf_[block.end - 1] + 1};
    while (whole.begin > 0 && all_[whole.begin - 1].isConversion && reads(whole, whole.begin - 1)) {
      --whole.begin;
    }
    return whole;
  }

 private:
  bool reads(const Block& block, int value) const {
    return std::any_of(
        all_.begin() + block.begin, all_.begin() + block.end, [&](const SequenceOp& op) {
          return std::find(op.operands.begin(), op.operands.end(), value) != op.operands.end();
        });
  }

  const std::vector<SequenceOp>& all_;
  std::vector<SequenceOp> ops_;
  std::vector<int> placeOf_;  // of each op in ops_
};

}  // namespace

std::vector<Tower> findTowers(const std::vector<SequenceOp>& ops) {
  const Unconverted unconverted(ops);
  std::vector<Tower> towers = TowerFinder(unconverted.ops()).find();
  for (Tower& tower : towers) {
    for (Block& block : tower) block = unconverted.withConversions(block);
  }
  return towers;
}

}  // namespace oriel
