#include "passes/raise/affine_index.h"

#include <cmath>
#include <cstring>

#include "mlir/IR/Matchers.h"
#include "passes/raise/match.h"

namespace oriel {
namespace {

using mlir::Value;
using Shape = llvm::ArrayRef<int64_t>;

// Positions are far below, every such number is exact in f32, and a few of them add up in an
// int64_t.
constexpr int64_t kBound = int64_t{1} << 24;
// Bounds the time on a value that is read by both operands again and again.
constexpr int kMaxDepth = 10;

// Whether all elements of a value of this shape are small.
bool isSmall(const AffineIndex& index, Shape shape) {
  int64_t most = std::abs(index.constant);
  for (auto [coefficient, size] : llvm::zip(index.coefficients, shape)) {
    if (coefficient == 0) continue;
    if (std::abs(coefficient) >= kBound || size >= kBound) return false;
    most += std::abs(coefficient) * (size - 1);
    if (most >= kBound) return false;
  }
  return most < kBound;
}

// Whether arithmetic on such numbers is exact.
bool isExact(mlir::Type type) {
  return type.isInteger(64) || type.isInteger(32) || type.isF32() || type.isF64();
}

std::optional<int64_t> wholeNumber(double element) {
  if (!(std::abs(element) < static_cast<double>(kBound)) || element != std::floor(element)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(element);
}

// The first `count` elements of a constant if all are whole and small.
template <typename Element>
std::optional<llvm::SmallVector<int64_t>> wholeElements(mlir::DenseElementsAttr table,
                                                        int64_t count) {
  llvm::SmallVector<int64_t> result;
  result.reserve(count);
  for (Element element :
       llvm::make_range(table.value_begin<Element>(), table.value_begin<Element>() + count)) {
    std::optional<int64_t> whole = wholeNumber(static_cast<double>(element));
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

std::optional<AffineIndex> ofOp(mlir::Operation* op, size_t rank, int depth) {
  if (auto iota = llvm::dyn_cast<ir::IotaOp>(op)) {
    AffineIndex index{llvm::SmallVector<int64_t>(rank, 0)};
    if (iota.getType().getDimSize(iota.getDim()) > 1) index.coefficients[iota.getDim()] = 1;
    return index;
  }
  if (auto reshape = llvm::dyn_cast<ir::ReshapeOp>(op)) return ofReshape(reshape, depth);
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
  return std::nullopt;
}

std::optional<AffineIndex> match(Value value, int depth) {
  mlir::Operation* op = value.getDefiningOp();
  if (!op || depth == 0 || !isExact(elementOf(value))) return std::nullopt;
  mlir::DenseElementsAttr table;
  std::optional<AffineIndex> index = mlir::matchPattern(op, mlir::m_Constant(&table))
                                         ? ofTable(table)
                                         : ofOp(op, rankOf(value), depth - 1);
  if (!index || !isSmall(*index, shapeOf(value))) return std::nullopt;
  return index;
}

}  // namespace

std::optional<AffineIndex> matchAffineIndex(Value value) { return match(value, kMaxDepth); }

}  // namespace oriel
