#include "passes/propagate/reshard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <queue>
#include <set>

#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/Builders.h"
#include "passes/propagate/versions.h"

namespace oriel {
namespace {

using Kind = ReshardStep::Kind;

constexpr int kAxes = 3;  // of two ranks each
constexpr int kRanks = 8;

Grid testGrid() {
  Grid grid;
  for (const char* name : {"a0", "a1", "a2"}) grid.axes.push_back({name, 2});
  return grid;
}

int coordinate(int rank, int axis) { return rank >> (kAxes - 1 - axis) & 1; }

// The place of a rank among those that differ in these axes only, row-major.
int placeOf(int rank, llvm::ArrayRef<int> axes) {
  int place = 0;
  for (int axis : axes) place = 2 * place + coordinate(rank, axis);
  return place;
}

// The ranks that differ from this one in these axes only, by place.
std::vector<int> groupOf(int rank, llvm::ArrayRef<int> axes) {
  std::vector<int> group(size_t{1} << axes.size());
  for (int other = 0; other < kRanks; ++other) {
    bool same = true;
    for (int axis = 0; axis < kAxes; ++axis) {
      same &= llvm::is_contained(axes, axis) || coordinate(other, axis) == coordinate(rank, axis);
    }
    if (same) group[placeOf(other, axes)] = other;
  }
  return group;
}

// A matrix on one rank.
struct Piece {
  int64_t rows, columns;
  std::vector<int64_t> elements;

  Piece(int64_t r, int64_t c) : rows(r), columns(c), elements(r * c) {}
  int64_t& at(int64_t r, int64_t c) { return elements[r * columns + c]; }
  int64_t at(int64_t r, int64_t c) const { return elements[r * columns + c]; }
  int64_t size(int64_t dim) const { return dim == 0 ? rows : columns; }

  // Part `i` of `count` along a dimension.
  Piece part(int64_t dim, int i, size_t count) const {
    Piece result(dim == 0 ? rows / count : rows, dim == 1 ? columns / count : columns);
    int64_t row = dim == 0 ? i * result.rows : 0, column = dim == 1 ? i * result.columns : 0;
    for (int64_t r = 0; r < result.rows; ++r) {
      for (int64_t c = 0; c < result.columns; ++c) result.at(r, c) = at(row + r, column + c);
    }
    return result;
  }
};

Piece join(const std::vector<Piece>& pieces, int64_t dim) {
  const Piece& first = pieces.front();
  Piece result(first.rows * (dim == 0 ? pieces.size() : 1),
               first.columns * (dim == 1 ? pieces.size() : 1));
  for (auto [i, piece] : llvm::enumerate(pieces)) {
    int64_t row = dim == 0 ? i * first.rows : 0, column = dim == 1 ? i * first.columns : 0;
    for (int64_t r = 0; r < piece.rows; ++r) {
      for (int64_t c = 0; c < piece.columns; ++c) result.at(row + r, column + c) = piece.at(r, c);
    }
  }
  return result;
}

Piece reduce(const std::vector<Piece>& pieces, bool max) {
  Piece result = pieces.front();
  for (const Piece& piece : llvm::drop_begin(pieces)) {
    for (auto [to, from] : llvm::zip_equal(result.elements, piece.elements)) {
      to = max ? std::max(to, from) : to + from;
    }
  }
  return result;
}

// What rank `summand` has of an element before anything is reduced: any numbers will do.
int64_t summandOf(int64_t row, int64_t column, int summand) {
  return (row * 131 + column * 31 + summand * summand * 7) * 2654435761 % 1009;
}

// What each rank has of a [rows, columns] matrix that was pending over the axes `pending`, and is
// over those of `sharding` still.
std::vector<Piece> piecesOf(const Sharding& sharding, int64_t rows, int64_t columns,
                            llvm::ArrayRef<int> pending, bool max) {
  std::vector<Piece> result;
  for (int rank = 0; rank < kRanks; ++rank) {
    Piece whole(rows, columns);
    AxisList reduced;
    for (int axis : pending) {
      if (!llvm::is_contained(max ? sharding.max : sharding.sum, axis)) reduced.push_back(axis);
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        std::optional<int64_t> total;
        for (int other : groupOf(rank, reduced)) {
          int64_t summand = summandOf(r, c, placeOf(other, pending));
          total = !total ? summand : max ? std::max(*total, summand) : *total + summand;
        }
        whole.at(r, c) = *total;
      }
    }
    for (int64_t dim = 0; dim < 2; ++dim) {
      const AxisList& axes = sharding.dims[dim];
      whole = whole.part(dim, placeOf(rank, axes), size_t{1} << axes.size());
    }
    result.push_back(std::move(whole));
  }
  return result;
}

std::vector<Piece> run(const ReshardStep& step, const std::vector<Piece>& before) {
  std::vector<Piece> after;
  size_t count = size_t{1} << step.axes.size();
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<Piece> all;
    for (int other : groupOf(rank, step.axes)) all.push_back(before[other]);
    int place = placeOf(rank, step.axes);
    switch (step.kind) {
      case Kind::kAllReduce:
        after.push_back(reduce(all, step.max));
        break;
      case Kind::kReduceScatter:
        after.push_back(reduce(all, step.max).part(step.dim, place, count));
        break;
      case Kind::kAllGather:
        after.push_back(join(all, step.dim));
        break;
      case Kind::kAllToAll:
        for (Piece& piece : all) piece = piece.part(step.dim, place, count);
        after.push_back(join(all, step.joinedDim));
        break;
      case Kind::kSlice:
        after.push_back(before[rank].part(step.dim, place, count));
        break;
    }
  }
  return after;
}

bool operator==(const Piece& a, const Piece& b) {
  return a.rows == b.rows && a.columns == b.columns && a.elements == b.elements;
}

// All shardings of a matrix: each axis cuts a dimension, or is pending, or neither.
std::vector<Sharding> allShardings(bool max) {
  std::vector<int> order = {0, 1, 2};
  std::vector<Sharding> found;
  do {
    std::vector<Sharding> current = {Sharding::replicated(2)};
    for (int axis : order) {
      std::vector<Sharding> next;
      for (const Sharding& sharding : current) {
        next.push_back(sharding);
        for (int64_t dim = 0; dim < 2; ++dim) {
          next.push_back(sharding);
          next.back().dims[dim].push_back(axis);
        }
        next.push_back(sharding);
        insertSorted(max ? next.back().max : next.back().sum, axis);
      }
      current = std::move(next);
    }
    found.insert(found.end(), current.begin(), current.end());
  } while (std::next_permutation(order.begin(), order.end()));
  llvm::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

class ReshardTest : public ::testing::Test {
 protected:
  mlir::RankedTensorType type(int64_t rows, int64_t columns) {
    return mlir::RankedTensorType::get({rows, columns}, mlir::Builder(&context_).getF32Type());
  }

  // Each pair of shardings of a matrix of this shape.
  template <typename Check>
  void forEachPair(int64_t rows, int64_t columns, bool max, Check check) {
    std::vector<Sharding> shardings = allShardings(max);
    llvm::erase_if(shardings, [&](const Sharding& sharding) {
      return !sizes_.divides({rows, columns}, sharding);
    });
    for (const Sharding& from : shardings) {
      for (const Sharding& to : shardings) {
        if (canBecome(from, to)) check(from, to);
      }
    }
  }

  void checkValues(int64_t rows, int64_t columns, bool max) {
    int pairs = 0;
    forEachPair(rows, columns, max, [&](const Sharding& from, const Sharding& to) {
      SCOPED_TRACE(sizes_.text(from) + " to " + sizes_.text(to));
      const AxisList& pending = max ? from.max : from.sum;
      std::vector<Piece> pieces = piecesOf(from, rows, columns, pending, max);
      Sharding last = from;
      for (const ReshardStep& step : planner_.plan(type(rows, columns), from, to).steps) {
        EXPECT_TRUE(llvm::is_sorted(step.axes));
        pieces = run(step, pieces);
        last = step.result;
        EXPECT_TRUE(pieces == piecesOf(last, rows, columns, pending, max)) << step.text(sizes_);
      }
      EXPECT_TRUE(last == to);
      ++pairs;
    });
    EXPECT_GT(pairs, 1000);
  }

  mlir::MLIRContext context_;
  AxisSizes sizes_{testGrid()};
  ReshardPlanner planner_{sizes_};
};

// Every step makes what its sharding says.
TEST_F(ReshardTest, StepsMakeTheTarget) { checkValues(8, 8, false); }
TEST_F(ReshardTest, StepsMakeTheTargetOfMaxima) { checkValues(8, 8, true); }
TEST_F(ReshardTest, StepsNeverCutWhatDoesNotDivide) { checkValues(4, 2, false); }

// Bytes that a rank sends in a step on `bytes` bytes.
double sent(Kind kind, double bytes, int64_t ranks) {
  switch (kind) {
    case Kind::kAllReduce:
      return allReduceBytes(bytes, ranks);
    case Kind::kReduceScatter:
      return reduceScatterBytes(bytes, ranks);
    case Kind::kAllGather:
      return allGatherBytes(bytes, ranks);
    case Kind::kAllToAll:
      return allToAllBytes(bytes, ranks);
    case Kind::kSlice:
      return 0;
  }
  return 0;
}

// Whether the axis is the next one that the target has in a dimension.
bool isNext(const AxisList& current, const AxisList& target, int axis) {
  return current.size() < target.size() && target[current.size()] == axis &&
         std::equal(current.begin(), current.end(), target.begin());
}

// Where reduce-scatters and all-to-alls may take an axis.
enum class Moves { kToTarget, kAnywhere };

// The bytes of the cheapest sequence of steps that lead to `to`. Slices are made where the target
// has them only: sharing a sum out to ranks that would do the same anyway is left alone.
double cheapest(const Sharding& from, const Sharding& to, double bytes, Moves moves) {
  std::set<Sharding> settled;
  using Entry = std::pair<double, Sharding>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  queue.emplace(0, from);
  while (!queue.empty()) {
    auto [cost, current] = queue.top();
    queue.pop();
    if (current == to) return cost;
    if (!settled.insert(current).second) continue;
    double local = bytes / static_cast<double>(size_t{1} << current.cutting().size());
    auto add = [&](Kind kind, const Sharding& next) {
      queue.emplace(cost + sent(kind, local, 2), next);
    };
    auto mayTake = [&](int64_t dim, int axis) {
      return moves == Moves::kAnywhere || isNext(current.dims[dim], to.dims[dim], axis);
    };
    for (int axis : current.sum) {
      Sharding reduced = current;
      llvm::erase(reduced.sum, axis);
      add(Kind::kAllReduce, reduced);
      for (int64_t dim = 0; dim < 2; ++dim) {
        if (!mayTake(dim, axis)) continue;
        Sharding scattered = reduced;
        scattered.dims[dim].push_back(axis);
        add(Kind::kReduceScatter, scattered);
      }
    }
    for (int64_t dim = 0; dim < 2; ++dim) {
      for (int axis = 0; axis < kAxes; ++axis) {
        if (current.uses(axis) || !isNext(current.dims[dim], to.dims[dim], axis)) continue;
        Sharding cut = current;
        cut.dims[dim].push_back(axis);
        add(Kind::kSlice, cut);
      }
      if (current.dims[dim].empty()) continue;
      Sharding joined = current;
      int axis = joined.dims[dim].pop_back_val();
      add(Kind::kAllGather, joined);
      int64_t other = 1 - dim;
      if (!mayTake(other, axis)) continue;
      joined.dims[other].push_back(axis);
      add(Kind::kAllToAll, joined);
    }
  }
  return -1;
}

// No other sequence sends less, if each axis goes where the target has it. Moving one out of the
// way for a while, to another dimension, would at best send half as much.
TEST_F(ReshardTest, SendsTheFewestBytes) {
  constexpr int64_t kSize = 4096;
  constexpr double kBytes = 4.0 * kSize * kSize, kRounding = 1.000001;
  forEachPair(kSize, kSize, false, [&](const Sharding& from, const Sharding& to) {
    SCOPED_TRACE(sizes_.text(from) + " to " + sizes_.text(to));
    double bytes = 0;
    Sharding current = from;
    for (const ReshardStep& step : planner_.plan(type(kSize, kSize), from, to).steps) {
      double local = kBytes / static_cast<double>(sizes_.product(current.cutting()));
      bytes += sent(step.kind, local, sizes_.product(step.axes));
      current = step.result;
    }
    EXPECT_LE(bytes, cheapest(from, to, kBytes, Moves::kToTarget) * kRounding);
    EXPECT_LE(bytes, cheapest(from, to, kBytes, Moves::kAnywhere) * 2 * kRounding);
  });
}

TEST_F(ReshardTest, NothingToDo) {
  Sharding cut{{{0}, {1}}, {2}, {}};
  const Reshard& plan = planner_.plan(type(8, 8), cut, cut);
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_EQ(plan.cost, 0);
}

TEST_F(ReshardTest, RingFormulas) {
  EXPECT_EQ(allReduceBytes(1000, 4), 1500);
  EXPECT_EQ(reduceScatterBytes(1000, 4), 750);
  EXPECT_EQ(allGatherBytes(250, 4), 750);
  EXPECT_EQ(allToAllBytes(1000, 4), 750);
}

TEST_F(ReshardTest, Text) {
  Sharding cut{{{0, 1}, {}}, {}, {}};
  const Reshard& plan = planner_.plan(type(8, 8), cut, Sharding::replicated(2));
  ASSERT_EQ(plan.steps.size(), 1);
  EXPECT_EQ(plan.steps[0].text(sizes_), "all_gather {a0, a1} of dimension 0");
}

}  // namespace
}  // namespace oriel
