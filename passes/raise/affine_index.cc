#include "passes/raise/affine_index.h"

#include <cmath>
#include <cstring>

#include "ir/oriel/folding.h"
#include "mlir/IR/Matchers.h"
#include "passes/raise/match.h"

namespace oriel {
namespace {

using mlir::Value;
using Shape = llvm::ArrayRef<int64_t>;

// Numbers below are followed: of a type that has them exactly, and such that a product of two of
// them, and a sum with another one, fits an int64_t. 0 for other types.
int64_t boundOf(mlir::Type type) {
  if (type.isSignlessInteger(64) || type.isSignlessInteger(32) || type.isF64())
    return int64_t{1} << 31;
  return type.isF32() ? int64_t{1} << 24 : 0;
}
// Bounds the time on a value that is read by both operands again and again.
constexpr int kMaxDepth = 10;
constexpr unsigned kMaxConcatenated = 4;

// Whether all elements of a value of this shape are below the bound.
bool isBelow(const AffineIndex& index, Shape shape, int64_t bound) {
  int64_t most = std::abs(index.constant);
  for (auto [coefficient, size] : llvm::zip(index.coefficients, shape)) {
    if (coefficient == 0) continue;
    if (std::abs(coefficient) >= bound || size >= bound) return false;
    most += std::abs(coefficient) * (size - 1);
    if (most >= bound) return false;
  }
  return most < bound;
}

std::optional<int64_t> wholeNumber(double element, int64_t bound) {
  if (!(std::abs(element) < static_cast<double>(bound)) || element != std::floor(element)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(element);
}

// The first `count` elements of a constant if all are whole and small.
template <typename Element>
std::optional<llvm::SmallVector<int64_t>> wholeElements(mlir::DenseElementsAttr table,
                                                        int64_t count) {
  const int64_t bound = boundOf(table.getElementType());
  llvm::SmallVector<int64_t> result;
  result.reserve(count);
  for (Element element :
       llvm::make_range(table.value_begin<Element>(), table.value_begin<Element>() + count)) {
    std::optional<int64_t> whole = wholeNumber(static_cast<double>(element), bound);
    if (!whole) return std::nullopt;
    result.push_back(*whole);
  }
  return result;
}

std::optional<llvm::SmallVector<int64_t>> wholeElements(mlir::DenseElementsAttr table,
                                                        int64_t count) {
  mlir::Type type = table.getElementType();
  if (type.isInteger(64)) return wholeElements<int64_t>(table, count);
  if (type.isInteger(32)) return wholeElements<int32_t>(table, count);
  if (type.isF32()) return wholeElements<float>(table, count);
  if (type.isF64()) return wholeElements<double>(table, count);
  return std::nullopt;
}

// How many of the leading dimensions only repeat what is behind them: positions are mostly the same
// for each sample.
size_t repeatedDims(mlir::DenseElementsAttr table) {
  Shape shape = table.getType().getShape();
  llvm::ArrayRef<char> bytes = table.getRawData();
  size_t dims = 0;
  while (dims < shape.size()) {
    const size_t slice = bytes.size() / shape[dims];
    if (std::memcmp(bytes.data(), bytes.data() + slice, bytes.size() - slice) != 0) break;
    bytes = bytes.take_front(slice);
    ++dims;
  }
  return dims;
}

std::optional<AffineIndex> ofTable(mlir::DenseElementsAttr table) {
  Shape shape = table.getType().getShape();
  AffineIndex index{llvm::SmallVector<int64_t>(shape.size(), 0)};
  if (table.empty()) return std::nullopt;
  // One element stands for all of a splat, which may be huge.
  const size_t repeated = table.isSplat() ? shape.size() : repeatedDims(table);
  int64_t count = 1;
  for (int64_t size : shape.drop_front(repeated)) count *= size;
  auto elements = wholeElements(table, count);
  if (!elements) return std::nullopt;
  index.constant = elements->front();
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > repeated;) {
    if (shape[d] > 1) index.coefficients[d] = (*elements)[stride] - index.constant;
    stride *= shape[d];
  }
  for (auto [at, element] : llvm::enumerate(*elements)) {
    int64_t rest = at, expected = index.constant;
    for (size_t d = shape.size(); d-- > repeated;) {
      expected += index.coefficients[d] * (rest % shape[d]);
      rest /= shape[d];
    }
    if (element != expected) return std::nullopt;
  }
  return index;
}

// The value repeated along new leading dimensions.
void broadcastTo(AffineIndex& index, size_t rank) {
  index.coefficients.insert(index.coefficients.begin(), rank - index.coefficients.size(), 0);
}

std::optional<AffineIndex> match(Value value, int depth);

template <typename Combine>
std::optional<AffineIndex> combined(Value lhs, Value rhs, size_t rank, int depth, Combine combine) {
  std::optional<AffineIndex> left = match(lhs, depth), right = match(rhs, depth);
  if (!left || !right) return std::nullopt;
  broadcastTo(*left, rank);
  broadcastTo(*right, rank);
  for (size_t d = 0; d < rank; ++d) {
    left->coefficients[d] = combine(left->coefficients[d], right->coefficients[d]);
  }
  left->constant = combine(left->constant, right->constant);
  return left;
}

std::optional<AffineIndex> scaled(std::optional<AffineIndex> index, int64_t factor) {
  if (!index) return std::nullopt;
  for (int64_t& c : index->coefficients) c *= factor;
  index->constant *= factor;
  return index;
}

bool isNumber(const AffineIndex& index) {
  return llvm::all_of(index.coefficients, [](int64_t c) { return c == 0; });
}

// A product with a number.
std::optional<AffineIndex> ofProduct(ir::MulOp op, size_t rank, int depth) {
  std::optional<AffineIndex> lhs = match(op.getLhs(), depth), rhs = match(op.getRhs(), depth);
  if (!lhs || !rhs) return std::nullopt;
  if (isNumber(*lhs)) std::swap(lhs, rhs);
  if (!isNumber(*rhs)) return std::nullopt;
  std::optional<AffineIndex> product = scaled(lhs, rhs->constant);
  broadcastTo(*product, rank);
  return product;
}

// Sums of one number.
std::optional<AffineIndex> ofCumsum(ir::CumsumOp op, int depth) {
  std::optional<AffineIndex> index = match(op.getInput(), depth);
  if (!index || !isNumber(*index)) return std::nullopt;
  const auto dim = static_cast<int64_t>(op.getDim());
  const int64_t number = index->constant, size = op.getType().getDimSize(dim);
  if (size >= boundOf(elementOf(op))) return std::nullopt;
  if (size > 1) index->coefficients[dim] = op.getReverse() ? -number : number;
  const int64_t summands = (op.getReverse() ? size : 1) - (op.getExclusive() ? 1 : 0);
  index->constant = number * summands;  // of the first element
  return index;
}

// A reshape that only adds or drops dimensions of size 1.
std::optional<AffineIndex> ofReshape(ir::ReshapeOp op, int depth) {
  Shape from = shapeOf(op.getInput()), to = op.getType().getShape();
  auto wide = [](int64_t size) { return size != 1; };
  if (!llvm::equal(llvm::make_filter_range(from, wide), llvm::make_filter_range(to, wide))) {
    return std::nullopt;
  }
  std::optional<AffineIndex> inner = match(op.getInput(), depth);
  if (!inner) return std::nullopt;
  AffineIndex index{llvm::SmallVector<int64_t>(to.size(), 0), inner->constant};
  size_t d = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i] == 1) continue;
    while (from[d] == 1) ++d;
    index.coefficients[i] = inner->coefficients[d++];
  }
  return index;
}

// Pieces of which each goes on where the one before it ends.
std::optional<AffineIndex> ofConcat(ir::ConcatOp op, int depth) {
  if (op.getInputs().size() > kMaxConcatenated) return std::nullopt;
  const size_t dim = op.getDim();
  std::optional<AffineIndex> all;
  std::optional<int64_t> step;
  int64_t at = 0;
  for (Value input : op.getInputs()) {
    const int64_t size = shapeOf(input)[dim];
    if (size == 0) continue;
    std::optional<AffineIndex> piece = match(input, depth);
    if (!piece) return std::nullopt;
    if (size > 1) step = step.value_or(piece->coefficients[dim]);
    if (all && !step) step = piece->constant - all->constant;
    if (size == 1) piece->coefficients[dim] = step.value_or(0);
    if (!all) {
      all = piece;
    } else {
      // One element, in front, was of no step yet.
      if (at == 1) all->coefficients[dim] = *step;
      if (piece->coefficients != all->coefficients ||
          piece->constant != all->constant + at * *step) {
        return std::nullopt;
      }
    }
    at += size;
  }
  return all;
}

// Elements of a table, which may have been of several dimensions, at indices that run along these:
// no index carries over from one to the next.
std::optional<AffineIndex> ofGather(ir::GatherOp op, int depth) {
  Value table = op.getInput();
  if (rankOf(table) != 1 || op.getFirst()) return std::nullopt;
  if (auto reshape = table.getDefiningOp<ir::ReshapeOp>()) table = reshape.getInput();
  const Shape shape = shapeOf(table), picked = shapeOf(op.getIndices());
  std::optional<AffineIndex> rows = match(table, depth), at = match(op.getIndices(), depth);
  if (!rows || !at || at->constant < 0 || ir::elementCount(shape) == 0) return std::nullopt;
  AffineIndex index{llvm::SmallVector<int64_t>(picked.size(), 0), rows->constant};
  int64_t rest = at->constant;
  for (auto [size, stride, step] :
       llvm::zip_equal(shape, ir::rowMajorStrides(shape), rows->coefficients)) {
    if (size == 1) continue;
    int64_t last = rest / stride;
    index.constant += step * last;
    rest %= stride;
    for (auto [d, coefficient] : llvm::enumerate(at->coefficients)) {
      if (coefficient < 0) return std::nullopt;
      // Else it runs along an inner dimension.
      if (coefficient % stride != 0) continue;
      index.coefficients[d] += step * (coefficient / stride);
      last += coefficient / stride * (picked[d] - 1);
      coefficient = 0;
    }
    if (last >= size) return std::nullopt;
  }
  if (rest != 0 || !isNumber(*at)) return std::nullopt;
  return index;
}

std::optional<AffineIndex> ofOp(mlir::Operation* op, size_t rank, int depth) {
  if (auto iota = llvm::dyn_cast<ir::IotaOp>(op)) {
    AffineIndex index{llvm::SmallVector<int64_t>(rank, 0)};
    if (iota.getType().getDimSize(iota.getDim()) > 1) index.coefficients[iota.getDim()] = 1;
    return index;
  }
  if (auto reshape = llvm::dyn_cast<ir::ReshapeOp>(op)) return ofReshape(reshape, depth);
  if (auto concat = llvm::dyn_cast<ir::ConcatOp>(op)) return ofConcat(concat, depth);
  if (auto cumsum = llvm::dyn_cast<ir::CumsumOp>(op)) return ofCumsum(cumsum, depth);
  if (auto gather = llvm::dyn_cast<ir::GatherOp>(op)) return ofGather(gather, depth);
  if (auto broadcast = llvm::dyn_cast<ir::BroadcastOp>(op)) {
    std::optional<AffineIndex> index = match(broadcast.getInput(), depth);
    if (index) broadcastTo(*index, rank);
    return index;
  }
  if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(op)) {
    std::optional<AffineIndex> inner = match(transpose.getInput(), depth);
    if (!inner) return std::nullopt;
    AffineIndex index{{}, inner->constant};
    for (int64_t d : transpose.getPermutation())
      index.coefficients.push_back(inner->coefficients[d]);
    return index;
  }
  if (auto slice = llvm::dyn_cast<ir::SliceOp>(op)) {
    std::optional<AffineIndex> index = match(slice.getInput(), depth);
    if (!index) return std::nullopt;
    for (size_t d = 0; d < rank; ++d) {
      index->constant += index->coefficients[d] * slice.getStarts()[d];
      index->coefficients[d] *= slice.getType().getDimSize(d) > 1 ? slice.getStrides()[d] : 0;
    }
    return index;
  }
  if (auto cast = llvm::dyn_cast<ir::CastOp>(op)) {
    return match(cast.getInput(), depth);
  }
  if (auto neg = llvm::dyn_cast<ir::NegOp>(op)) return scaled(match(neg.getInput(), depth), -1);
  if (auto add = llvm::dyn_cast<ir::AddOp>(op)) {
    return combined(add.getLhs(), add.getRhs(), rank, depth, std::plus<int64_t>());
  }
  if (auto sub = llvm::dyn_cast<ir::SubOp>(op)) {
    return combined(sub.getLhs(), sub.getRhs(), rank, depth, std::minus<int64_t>());
  }
  if (auto mul = llvm::dyn_cast<ir::MulOp>(op)) return ofProduct(mul, rank, depth);
  return std::nullopt;
}

std::optional<AffineIndex> match(Value value, int depth) {
  mlir::Operation* op = value.getDefiningOp();
  const int64_t bound = boundOf(elementOf(value));
  if (!op || depth == 0 || bound == 0) return std::nullopt;
  mlir::DenseElementsAttr table;
  std::optional<AffineIndex> index = mlir::matchPattern(op, mlir::m_Constant(&table))
                                         ? ofTable(table)
                                         : ofOp(op, rankOf(value), depth - 1);
  if (!index || !isBelow(*index, shapeOf(value), bound)) return std::nullopt;
  return index;
}

}  // namespace

std::optional<AffineIndex> matchAffineIndex(Value value) { return match(value, kMaxDepth); }

std::optional<AffineIndex> matchAffineDifference(Value lhs, Value rhs, int64_t rank) {
  return combined(lhs, rhs, rank, kMaxDepth, std::minus<int64_t>());
}

std::pair<int64_t, int64_t> rangeOf(const AffineIndex& index, Shape shape) {
  std::pair<int64_t, int64_t> range(index.constant, index.constant);
  for (auto [coefficient, size] : llvm::zip_equal(index.coefficients, shape)) {
    (coefficient < 0 ? range.first : range.second) += coefficient * (size - 1);
  }
  return range;
}

}  // namespace oriel
