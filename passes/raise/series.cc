#include "passes/raise/series.h"

#include <algorithm>

#include "ir/oriel/folding.h"
#include "mlir/IR/IRMapping.h"
#include "passes/raise/match.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;

// Bounds the time that one concatenation takes.
constexpr size_t kMaxSeries = 4096;

bool isEmpty(mlir::Type type) {
  return llvm::cast<mlir::RankedTensorType>(type).getNumElements() == 0;
}

// Whether the ops are one, computed several times.
bool readsTheSame(const Series& series) {
  return llvm::all_of(
      series, [&](Operation* op) { return op->getOperands() == series.front()->getOperands(); });
}

// The slice that is as far behind `now` as that is behind `before`, without a gap.
Value sliceBehind(mlir::OpBuilder& builder, ir::SliceOp before, ir::SliceOp now) {
  llvm::SmallVector<int64_t> starts(now.getStarts()), limits(now.getLimits());
  llvm::ArrayRef<int64_t> sizes = shapeOf(now.getInput());
  for (size_t dim = 0; dim < starts.size(); ++dim) {
    const int64_t step = now.getStarts()[dim] - before.getStarts()[dim];
    if (step != 0 && step != limits[dim] - starts[dim]) return Value();
    starts[dim] += step;
    limits[dim] += step;
    if (starts[dim] < 0 || limits[dim] > sizes[dim]) return Value();
  }
  builder.setInsertionPointAfter(now);
  return ir::SliceOp::create(builder, now.getLoc(), now.getInput(), starts, limits,
                             now.getStrides());
}

// The row that is behind `now`, which is behind `before`.
Value rowBehind(mlir::OpBuilder& builder, ir::GatherOp before, ir::GatherOp now) {
  std::optional<int64_t> last = knownRow(before), row = knownRow(now);
  if (!last || !row || *row != *last + 1 || before.getDim() != now.getDim() ||
      before.getBatchDims() != now.getBatchDims() ||
      *row + 1 >= tensorType(now.getInput()).getDimSize(now.getDim())) {
    return Value();
  }
  auto type = tensorType(now.getIndices());
  builder.setInsertionPointAfter(now);
  Value index = ir::ConstantOp::create(
      builder, now.getLoc(),
      mlir::DenseElementsAttr::get(
          type, builder.getIntegerAttr(type.getElementType(), *row + 1).getValue()));
  mlir::IRMapping mapping;
  mapping.map(now.getIndices(), index);
  return builder.clone(*now, mapping)->getResult(0);
}

}  // namespace

Pieces operandsOf(const Series& series, unsigned index) {
  Pieces pieces;
  for (Operation* op : series) pieces.push_back(op->getOperand(index));
  return pieces;
}

bool isShared(const Pieces& pieces) { return llvm::all_equal(pieces); }

bool areConstants(const Pieces& pieces) {
  mlir::RankedTensorType type = tensorType(pieces.front());
  llvm::SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), static_cast<int64_t>(pieces.size()));
  return ir::mayFoldTo(type.clone(shape), /*uniform=*/false) &&
         llvm::all_of(pieces, [&](Value piece) {
           return piece.getType() == type && piece.getDefiningOp<ir::ConstantOp>();
         });
}

std::optional<Stretch> matchStretch(const Pieces& pieces) {
  auto first = pieces[0].getDefiningOp<ir::SliceOp>();
  auto second = pieces[1].getDefiningOp<ir::SliceOp>();
  if (!first || !second || isEmpty(first.getType())) return std::nullopt;
  llvm::ArrayRef<int64_t> starts = first.getStarts();
  const auto* differs = std::mismatch(starts.begin(), starts.end(), second.getStarts().begin(),
                                      second.getStarts().end())
                            .first;
  if (differs == starts.end()) return std::nullopt;
  const int64_t dim = differs - starts.begin();
  std::optional<int64_t> start = startOfStretch(first, dim);
  if (!start) return std::nullopt;
  int64_t end = *start;
  for (Value piece : pieces) {
    auto slice = piece.getDefiningOp<ir::SliceOp>();
    if (!slice || slice.getInput() != first.getInput() || slice.getType() != first.getType() ||
        startOfStretch(slice, dim) != end) {
      return std::nullopt;
    }
    end += slice.getType().getDimSize(dim);
  }
  return Stretch{first.getInput(), dim, *start};
}

std::optional<Series> matchSeries(const Pieces& pieces) {
  auto first = llvm::dyn_cast<mlir::OpResult>(pieces.front());
  if (!first) return std::nullopt;
  Operation* of = first.getOwner();
  // Without operands they are constants, or depend on nothing that could differ.
  if (!mlir::isMemoryEffectFree(of) || of->getNumOperands() == 0 ||
      llvm::any_of(of->getOperandTypes(), isEmpty) || llvm::any_of(of->getResultTypes(), isEmpty)) {
    return std::nullopt;
  }
  Series series;
  llvm::SmallPtrSet<Operation*, 8> seen;
  for (Value piece : pieces) {
    auto result = llvm::dyn_cast<mlir::OpResult>(piece);
    if (!result || result.getResultNumber() != first.getResultNumber()) return std::nullopt;
    Operation* op = result.getOwner();
    if (op->getName() != of->getName() || op->getBlock() != of->getBlock() ||
        op->getAttrDictionary() != of->getAttrDictionary() ||
        op->getOperandTypes() != of->getOperandTypes() ||
        op->getResultTypes() != of->getResultTypes() || !seen.insert(op).second) {
      return std::nullopt;
    }
    series.push_back(op);
  }
  return series;
}

Value NextInSeries::make(Value previous, Value current) {
  if (previous == current) return current;
  auto before = llvm::dyn_cast<mlir::OpResult>(previous);
  auto now = llvm::dyn_cast<mlir::OpResult>(current);
  if (!before || !now || before.getResultNumber() != now.getResultNumber() ||
      before.getType() != now.getType() ||
      before.getOwner()->getName() != now.getOwner()->getName()) {
    return Value();
  }
  auto [place, isNew] = made_.try_emplace({previous, current});
  if (!isNew || depth_ == kMaxDepth) return place->second;
  ++depth_;
  Value next = makeOf(before, now);
  --depth_;
  made_[{previous, current}] = next;
  return next;
}

Value NextInSeries::makeOf(mlir::OpResult previous, mlir::OpResult current) {
  Operation *before = previous.getOwner(), *now = current.getOwner();
  if (auto slice = llvm::dyn_cast<ir::SliceOp>(now)) {
    auto last = llvm::cast<ir::SliceOp>(before);
    if (last.getInput() == slice.getInput() && last.getStrides() == slice.getStrides()) {
      return sliceBehind(builder_, last, slice);
    }
  }
  if (auto gather = llvm::dyn_cast<ir::GatherOp>(now)) {
    auto last = llvm::cast<ir::GatherOp>(before);
    if (last.getInput() == gather.getInput()) return rowBehind(builder_, last, gather);
  }
  if (!mlir::isMemoryEffectFree(now) || now->getNumOperands() == 0 ||
      now->getAttrDictionary() != before->getAttrDictionary() ||
      now->getOperandTypes() != before->getOperandTypes()) {
    return Value();
  }
  mlir::IRMapping mapping;
  for (auto [last, operand] : llvm::zip_equal(before->getOperands(), now->getOperands())) {
    Value next = make(last, operand);
    if (!next) return Value();
    mapping.map(operand, next);
  }
  builder_.setInsertionPointAfter(now);
  return builder_.clone(*now, mapping)->getResult(current.getResultNumber());
}

std::optional<SeriesTree> SeriesSearch::find(const Pieces& pieces) {
  struct Visit {
    Pieces pieces;
    std::optional<size_t> user;  // the visit that led here
  };
  std::vector<Visit> visits = {{pieces, std::nullopt}};
  std::set<Series> seen;
  SeriesTree tree;
  for (size_t i = 0; i < visits.size(); ++i) {
    const Pieces current = visits[i].pieces;
    if (isShared(current)) continue;
    std::optional<Series> series;
    if (excluded_.count(keyOf(current)) == 0) {
      if (matchStretch(current)) {
        tree.stretches.push_back(current);
        continue;
      }
      if (areConstants(current)) continue;
      series = matchSeries(current);
      if (series && readsTheSame(*series)) series = std::nullopt;
    }
    if (seen.size() == kMaxSeries) {
      exclude(pieces);
      return std::nullopt;
    }
    if (!series) {
      // Nor can what led here be followed.
      for (std::optional<size_t> at = i; at; at = visits[*at].user) exclude(visits[*at].pieces);
      return std::nullopt;
    }
    if (!seen.insert(*series).second) continue;
    tree.series.push_back(*series);
    for (unsigned operand = 0; operand < series->front()->getNumOperands(); ++operand) {
      visits.push_back({operandsOf(*series, operand), i});
    }
  }
  // Series that begin alike stay in the order in which they were found, whatever their addresses.
  llvm::stable_sort(tree.series, [](const Series& one, const Series& other) {
    return one.front()->isBeforeInBlock(other.front());
  });
  return tree;
}

void SeriesSearch::exclude(const Pieces& pieces) { excluded_.insert(keyOf(pieces)); }

SeriesSearch::Key SeriesSearch::keyOf(const Pieces& pieces) {
  Key key;
  for (Value piece : pieces) key.push_back(piece.getAsOpaquePointer());
  return key;
}

}  // namespace oriel
