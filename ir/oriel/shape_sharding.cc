// Sharding rules of ops that move, repeat, pick or reduce elements.
#include <climits>
#include <cstring>
#include <numeric>

#include "ir/oriel/builders.h"
#include "ir/oriel/folding.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

namespace {

ShardingRule linearIn(ShardingRule rule, std::initializer_list<unsigned> operands) {
  rule.linear.emplace_back(operands);
  return rule;
}

// Of an element in the raw data, in which booleans are packed.
int64_t storedBits(mlir::DenseElementsAttr constant) {
  const unsigned bits = constant.getElementType().getIntOrFloatBitWidth();
  return bits == 1 ? 1 : llvm::alignTo(bits, CHAR_BIT);
}

bool bitOf(llvm::ArrayRef<char> data, int64_t index) {
  return (static_cast<unsigned char>(data[index / CHAR_BIT]) >> (index % CHAR_BIT)) & 1;
}

// Whether every slice of the constant along a dimension is the same, bit by bit.
bool isUniformAlong(mlir::DenseElementsAttr constant, int64_t dim) {
  if (constant.isSplat()) return true;
  llvm::ArrayRef<int64_t> shape = constant.getType().getShape();
  llvm::ArrayRef<char> data = constant.getRawData();
  const int64_t inner = elementCount(shape.drop_front(dim + 1)) * storedBits(constant);
  const int64_t block = shape[dim] * inner, end = constant.getNumElements() * storedBits(constant);
  if (inner % CHAR_BIT == 0) {
    for (int64_t first = 0; first < end; first += block) {
      const char* begin = data.data() + first / CHAR_BIT;
      for (int64_t slice = inner; slice < block; slice += inner) {
        if (std::memcmp(begin, begin + slice / CHAR_BIT, inner / CHAR_BIT) != 0) return false;
      }
    }
    return true;
  }
  for (int64_t i = 0; i < end; ++i) {
    if (bitOf(data, i) != bitOf(data, i - i % block + i % inner)) return false;
  }
  return true;
}

// The first elements along each dimension.
mlir::DenseElementsAttr firstOf(mlir::DenseElementsAttr constant, mlir::RankedTensorType type) {
  const auto strides = rowMajorStrides(constant.getType().getShape());
  llvm::ArrayRef<char> data = constant.getRawData();
  const int64_t bits = storedBits(constant);
  if (bits == 1) {
    llvm::SmallVector<bool> values;
    values.reserve(type.getNumElements());
    walkStrided<1>(type.getShape(), {strides}, [&](auto index) {
      values.push_back(bitOf(data, index[0]));
      return true;
    });
    return mlir::DenseElementsAttr::get(type, values);
  }
  const int64_t bytes = bits / CHAR_BIT, row = type.getShape().back();
  std::vector<char> values;
  values.reserve(type.getNumElements() * bytes);
  walkStrided<1>(type.getShape().drop_back(), {strides}, [&](auto index) {
    llvm::append_range(values, data.slice(index[0] * bytes, row * bytes));
    return true;
  });
  return mlir::DenseElementsAttr::getFromRawBuffer(type, values);
}

}  // namespace

ShardingRule ConstantOp::getShardingRule() {
  auto constant = llvm::dyn_cast<mlir::DenseElementsAttr>(getValue());
  if (!constant || !mayFoldTo(getType(), /*uniform=*/false)) {
    // A large constant that is not a splat is not worth looking at element by element.
    return constant && constant.isSplat() ? pointwiseRule(*this) : wholeRule(*this);
  }
  llvm::SmallVector<int64_t> whole;
  for (int64_t dim = 0; dim < getType().getRank(); ++dim) {
    if (!isUniformAlong(constant, dim)) whole.push_back(dim);
  }
  return pointwiseRule(*this, whole);
}

mlir::Operation* ConstantOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange,
                                        const LocalPieces& pieces) {
  auto constant = llvm::cast<mlir::DenseElementsAttr>(getValue());
  auto type = getType().clone(
      localShape(getType().getShape(), getShardingRule().results.front(), pieces.counts()));
  mlir::DenseElementsAttr local =
      constant.isSplat() ? constant.resizeSplat(type) : firstOf(constant, type);
  return ConstantOp::create(builder, getLoc(), local, getOrigin());
}

// Booleans can't be counted from another beginning.
ShardingRule IotaOp::getShardingRule() {
  if (!getType().getElementType().isInteger(1)) return pointwiseRule(*this);
  return pointwiseRule(*this, {static_cast<int64_t>(getDim())});
}

// Counted in i64, so that narrow types round as the whole does.
mlir::Operation* IotaOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                    const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  const FactorList& along = rule.results.front()[getDim()];
  if (along.empty() || pieces[along.front()] == 1) {
    return cloneLocal(*this, builder, operands, rule, pieces);
  }
  auto type =
      getType().clone(localShape(getType().getShape(), rule.results.front(), pieces.counts()));
  mlir::Type i64 = builder.getI64Type();
  mlir::Value first = pieces.first(builder, getLoc(), along.front());
  mlir::Value local = IotaOp::create(builder, getLoc(), type.clone(i64), getDim(), getOrigin());
  auto index = AddOp::create(builder, getLoc(), local, first, getOrigin());
  if (type.getElementType() == i64) return index;
  return CastOp::create(builder, getLoc(), type, index, getOrigin());
}

namespace {

// Walks both shapes from the outside in, and makes a factor of what both sides still have to
// cover. Where neither size divides the other, their common divisor is split and the rest up to
// the next common boundary stays whole.
class ReshapeFactors {
 public:
  ReshapeFactors(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to)
      : from_{from, TensorFactors(from.size())}, to_{to, TensorFactors(to.size())} {}

  void build(ShardingRule& rule) {
    while (from_.next() && to_.next()) {
      int64_t common = std::gcd(from_.left, to_.left);
      if (common > 1) {
        int factor = static_cast<int>(rule.factors.size());
        rule.factors.push_back({common, FactorKind::kParallel});
        from_.dims[from_.dim].push_back(factor);
        to_.dims[to_.dim].push_back(factor);
        from_.left /= common;
        to_.left /= common;
        continue;
      }
      skipToBoundary();
    }
    rule.operands[0] = from_.dims;
    rule.results[0] = to_.dims;
  }

 private:
  struct Side {
    llvm::ArrayRef<int64_t> shape;
    TensorFactors dims;
    size_t dim = 0;
    int64_t left = 0;  // of the dimension; 0: not begun

    // Moves to a dimension with something left to cover; false at the end.
    bool next() {
      if (left > 1) return true;
      if (left == 1) ++dim;
      for (; dim < shape.size(); ++dim) {
        left = shape[dim];
        if (left != 1) return true;
      }
      left = 0;
      return false;
    }
  };

  // Both sides leave out dimensions until they have covered as many elements.
  void skipToBoundary() {
    int64_t from = from_.left, to = to_.left;
    from_.left = to_.left = 1;
    while (from != to) {
      Side& behind = from < to ? from_ : to_;
      if (!behind.next()) return;
      (from < to ? from : to) *= behind.left;
      behind.left = 1;
    }
  }

  Side from_, to_;
};

}  // namespace

ShardingRule ReshapeOp::getShardingRule() {
  ShardingRule rule = wholeRule(*this);
  if (elementCount(getType().getShape()) > 0) {
    ReshapeFactors(shapeOf(getInput()), getType().getShape()).build(rule);
  }
  return linearIn(std::move(rule), {0});
}

ShardingRule TransposeOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims input = rule.parallel(shapeOf(getInput()));
  Dims result;
  for (int64_t dim : getPermutation()) result.push_back(input[dim]);
  rule.operand(0, input);
  rule.result(0, result);
  rule.linearIn({0});
  return rule.take();
}

ShardingRule BroadcastOp::getShardingRule() { return linearIn(pointwiseRule(*this), {0}); }

namespace {

// A dimension of the same size is untouched by a slice or a pad; the others stay whole.
ShardingRule untouchedDims(mlir::Operation* op) {
  llvm::SmallVector<int64_t> changed;
  auto sizes = llvm::zip_equal(shapeOf(op->getOperand(0)), shapeOf(op->getResult(0)));
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (std::get<0>(size) != std::get<1>(size)) changed.push_back(i);
  }
  return pointwiseRule(op, changed);
}

}  // namespace

ShardingRule SliceOp::getShardingRule() { return linearIn(untouchedDims(*this), {0}); }

mlir::Operation* SliceOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                     const LocalPieces& pieces) {
  llvm::SmallVector<int64_t> limits(getLimits());
  llvm::ArrayRef<int64_t> local = shapeOf(operands.front());
  for (size_t i = 0; i < limits.size(); ++i) limits[i] = std::min(limits[i], local[i]);
  return SliceOp::create(builder, getLoc(), operands.front(), getStarts(), limits, getStrides(),
                         getOrigin());
}

ShardingRule PadOp::getShardingRule() {
  ShardingRule rule = untouchedDims(*this);
  return getValue() == 0 ? linearIn(std::move(rule), {0}) : rule;
}

ShardingRule ConcatOp::getShardingRule() {
  ShardingRule rule = pointwiseRule(*this, {static_cast<int64_t>(getDim())});
  llvm::SmallVector<unsigned, 2> all = llvm::to_vector<2>(llvm::seq<unsigned>(getNumOperands()));
  rule.linear.push_back(std::move(all));
  return rule;
}

// A piece of the rows gives zeros for the others. A piece is not cut again, and booleans have no
// sum.
ShardingRule GatherOp::getShardingRule() {
  RuleBuilder rule(*this);
  llvm::ArrayRef<int64_t> input = shapeOf(getInput());
  bool isCut = !getFirst() && !getType().getElementType().isInteger(1);
  int rows = isCut ? rule.sum(input[getDim()]) : kWhole;
  Dims outer = rule.parallel(input.take_front(getDim()));
  Dims picked = rule.parallel(shapeOf(getIndices()).drop_front(getBatchDims()));
  Dims inner = rule.parallel(input.drop_front(getDim() + 1));
  rule.operand(0, outer + rows + inner);
  rule.operand(1, getBatchDims() == 0 ? picked : outer + picked);
  rule.result(0, outer + picked + inner);
  rule.linearIn({0});
  return rule.take();
}

mlir::Operation* GatherOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                      const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  return cloneLocalAt(*this, builder, operands, rule, pieces, rule.operands[0][getDim()], "rows");
}

ShardingRule ScatterAddOp::getShardingRule() {
  RuleBuilder rule(*this);
  llvm::ArrayRef<int64_t> result = getType().getShape();
  int rows = getFirst() ? kWhole : rule.parallel(result[getDim()]);
  Dims outer = rule.parallel(result.take_front(getDim()));
  Dims added = rule.sum(shapeOf(getIndices()).drop_front(getBatchDims()));
  Dims inner = rule.parallel(result.drop_front(getDim() + 1));
  rule.operand(0, getBatchDims() == 0 ? added : outer + added);
  rule.operand(1, outer + added + inner);
  rule.result(0, outer + rows + inner);
  rule.linearIn({1});
  return rule.take();
}

mlir::Operation* ScatterAddOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                          const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  return cloneLocalAt(*this, builder, operands, rule, pieces, rule.results[0][getDim()], "rows");
}

namespace {

// `kind`: of the reduced dimensions; none leaves them whole.
template <typename OpTy>
ShardingRule reduceRule(OpTy op, std::optional<FactorKind> kind) {
  RuleBuilder rule(op);
  Dims input, result;
  for (auto [i, size] : llvm::enumerate(shapeOf(op.getInput()))) {
    if (!llvm::is_contained(op.getDims(), static_cast<int64_t>(i))) {
      input.push_back(rule.parallel(size));
      result.push_back(input.back());
      continue;
    }
    input.push_back(kind ? rule.add(size, *kind) : kWhole);
    if (op.getKeepDims()) result.push_back(kWhole);
  }
  rule.operand(0, input);
  rule.result(0, result);
  return rule.take();
}

// Whether an argmax is one of rows of numbers.
bool takesSteps(ArgmaxOp op) {
  const int64_t rank = shapeOf(op.getInput()).size();
  return static_cast<int64_t>(op.getDim()) == rank - 1 &&
         op.getType().getElementType().isInteger(64) &&
         llvm::isa<mlir::FloatType>(op.getInput().getType().getElementType());
}

}  // namespace

ShardingRule ReduceSumOp::getShardingRule() {
  return linearIn(reduceRule(*this, FactorKind::kSum), {0});
}
// Means of pieces are not summands of the mean: it is a scaled sum. A mean of integers is rounded.
ShardingRule ReduceMeanOp::getShardingRule() {
  std::optional<FactorKind> kind;
  if (!getType().getElementType().isInteger()) kind = FactorKind::kSteps;
  return linearIn(reduceRule(*this, kind), {0});
}

llvm::SmallVector<mlir::Value> ReduceMeanOp::decompose(mlir::OpBuilder& builder) {
  if (getType().getElementType().isInteger() || getDims().empty()) return {};
  double count = 1;
  for (int64_t dim : getDims()) count *= static_cast<double>(shapeOf(getInput())[dim]);
  mlir::Value sum =
      ReduceSumOp::create(builder, getLoc(), getInput(), getDims(), getKeepDims(), getOrigin());
  mlir::Value share = scalarConstant(builder, getLoc(), 1.0 / count, sum, getOrigin());
  return {MulOp::create(builder, getLoc(), sum, share, getOrigin())};
}

ShardingRule ReduceMaxOp::getShardingRule() { return reduceRule(*this, FactorKind::kMax); }
ShardingRule ReduceMinOp::getShardingRule() { return reduceRule(*this, std::nullopt); }
ShardingRule ReduceProdOp::getShardingRule() { return reduceRule(*this, std::nullopt); }

ShardingRule CumsumOp::getShardingRule() {
  return linearIn(pointwiseRule(*this, {static_cast<int64_t>(getDim())}), {0});
}

ShardingRule TopkOp::getShardingRule() {
  return pointwiseRule(*this, {static_cast<int64_t>(getDim())});
}

// Rows take steps: the largest element of all is needed before its place.
ShardingRule ArgmaxOp::getShardingRule() {
  RuleBuilder rule(*this);
  const bool bySteps = takesSteps(*this);
  Dims input, result;
  for (auto [i, size] : llvm::enumerate(shapeOf(getInput()))) {
    bool reduced = static_cast<int64_t>(i) == static_cast<int64_t>(getDim());
    int factor = !reduced ? rule.parallel(size) : bySteps ? rule.steps(size) : kWhole;
    input.push_back(factor);
    if (!reduced || getKeepDims()) result.push_back(reduced ? kWhole : factor);
  }
  rule.operand(0, input);
  rule.result(0, result);
  return rule.take();
}

llvm::SmallVector<mlir::Value> ArgmaxOp::decompose(mlir::OpBuilder& builder) {
  if (!takesSteps(*this)) return {};
  mlir::Location loc = getLoc();
  const int64_t origin = getOrigin(), size = shapeOf(getInput()).back();
  mlir::Value max = ReduceMaxOp::create(builder, loc, getInput(), {static_cast<int64_t>(getDim())},
                                        /*keep_dims=*/false, origin);
  mlir::Value remaining = RemainingFromOp::create(builder, loc, getInput(), max,
                                                  /*first=*/mlir::Value(), /*size=*/0, origin);
  mlir::Value whole = scalarConstant(builder, loc, static_cast<double>(size), remaining, origin);
  mlir::Value index = SubOp::create(builder, loc, whole, remaining, origin);
  if (!getKeepDims()) return {index};
  return {ReshapeOp::create(builder, loc, getType(), index, origin)};
}

ShardingRule RemainingFromOp::getShardingRule() {
  RuleBuilder rule(*this);
  Dims rows = rule.parallel(shapeOf(getValue()));
  int elements = getFirst() ? kWhole : rule.add(shapeOf(getInput()).back(), FactorKind::kMax);
  rule.operand(0, rows + elements);
  rule.operand(1, rows);
  rule.result(0, rows);
  return rule.take();
}

mlir::Operation* RemainingFromOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                             const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  return cloneLocalAt(*this, builder, operands, rule, pieces, rule.operands[0].back(), "size");
}

}  // namespace oriel::ir
