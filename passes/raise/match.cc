#include "passes/raise/match.h"

#include <cmath>
#include <tuple>

#include "ir/oriel/segment.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace oriel {

using mlir::Value;

std::optional<double> splatValue(Value value) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  if (!constant) return std::nullopt;
  auto dense = llvm::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  if (!dense || dense.empty() || !dense.isSplat() ||
      !llvm::isa<mlir::FloatType>(dense.getElementType())) {
    return std::nullopt;
  }
  return dense.getSplatValue<llvm::APFloat>().convertToDouble();
}

bool isSplat(Value value, double expected) {
  std::optional<double> splat = splatValue(value);
  return splat && std::abs(*splat - expected) <= 1e-6 * std::abs(expected);
}

std::optional<std::pair<Value, double>> matchScaled(Value value) {
  auto keepsShape = [&](Value x) { return x.getType() == value.getType(); };
  auto constant = [](Value x) { return splatValue(x).has_value(); };
  if (auto match = matchEither<ir::MulOp>(value, constant)) {
    if (keepsShape(match->second)) {
      return std::make_pair(match->second, *splatValue(match->first));
    }
  }
  if (auto op = value.getDefiningOp<ir::DivOp>()) {
    std::optional<double> divisor = splatValue(op.getRhs());
    if (divisor && *divisor != 0 && keepsShape(op.getLhs())) {
      return std::make_pair(Value(op.getLhs()), 1.0 / *divisor);
    }
  }
  return std::nullopt;
}

std::optional<std::pair<Value, double>> matchShifted(Value value) {
  auto constant = [](Value x) { return splatValue(x).has_value(); };
  auto match = matchEither<ir::AddOp>(value, constant);
  if (!match || match->second.getType() != value.getType()) return std::nullopt;
  return std::make_pair(match->second, *splatValue(match->first));
}

Value matchInverseSqrt(Value value) {
  if (auto op = value.getDefiningOp<ir::RsqrtOp>()) return op.getInput();
  Value root;
  if (auto op = value.getDefiningOp<ir::ReciprocalOp>()) root = op.getInput();
  if (auto op = value.getDefiningOp<ir::DivOp>(); op && isSplat(op.getLhs(), 1.0)) {
    root = op.getRhs();
  }
  if (auto op = value.getDefiningOp<ir::PowOp>(); op && isSplat(op.getRhs(), -0.5)) {
    return op.getLhs();
  }
  auto sqrt = root ? root.getDefiningOp<ir::SqrtOp>() : ir::SqrtOp();
  return sqrt ? Value(sqrt.getInput()) : Value();
}

Value matchSquare(Value value) {
  if (auto op = value.getDefiningOp<ir::PowOp>(); op && isSplat(op.getRhs(), 2.0)) {
    return op.getLhs();
  }
  if (auto op = value.getDefiningOp<ir::MulOp>(); op && op.getLhs() == op.getRhs()) {
    return op.getLhs();
  }
  return Value();
}

Value matchLastMean(Value value) {
  // Where the mean drops the dimension, a reshape brings it back.
  Value mean = value;
  if (auto reshape = mean.getDefiningOp<ir::ReshapeOp>()) mean = reshape.getInput();
  // The mean may be spelled as a sum over its number of elements.
  Value sum;
  double factor = 1.0;
  if (auto scaled = matchScaled(mean)) std::tie(sum, factor) = *scaled;
  auto match = [&](auto op) {
    if (!op || op.getDims().size() != 1) return Value();
    llvm::SmallVector<int64_t> kept = llvm::to_vector(shapeOf(op.getInput()));
    if (kept.empty() || op.getDims()[0] != static_cast<int64_t>(kept.size()) - 1) return Value();
    double count = static_cast<double>(kept.back());
    if (sum && std::abs(factor * count - 1.0) > 1e-6) return Value();
    kept.back() = 1;
    return shapeOf(value) == llvm::ArrayRef<int64_t>(kept) ? op.getInput() : Value();
  };
  return sum ? match(sum.getDefiningOp<ir::ReduceSumOp>())
             : match(mean.getDefiningOp<ir::ReduceMeanOp>());
}

Value matchNumberOfBoolean(Value value) {
  auto cast = value.getDefiningOp<ir::CastOp>();
  const bool isOfBoolean = cast && elementOf(cast.getInput()).isInteger(1);
  return isOfBoolean ? cast.getInput() : Value();
}

Value transposeLastTwo(mlir::PatternRewriter& rewriter, mlir::Location loc, Value value) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(value)));
  std::swap(permutation[permutation.size() - 2], permutation.back());
  return ir::TransposeOp::create(rewriter, loc, value, permutation);
}

Value matchTransposed(Value value) {
  auto swapsLastTwo = [](ir::TransposeOp op) {
    llvm::ArrayRef<int64_t> permutation = op.getPermutation();
    int64_t rank = permutation.size();
    if (rank < 2) return false;
    for (int64_t i = 0; i < rank - 2; ++i) {
      if (permutation[i] != i) return false;
    }
    return permutation[rank - 2] == rank - 1 && permutation[rank - 1] == rank - 2;
  };
  if (auto op = value.getDefiningOp<ir::TransposeOp>()) {
    return swapsLastTwo(op) ? Value(op.getInput()) : Value();
  }
  // reshape(transpose(reshape(x))) with the leading dimensions merged in between.
  auto split = value.getDefiningOp<ir::ReshapeOp>();
  auto transpose = split ? split.getInput().getDefiningOp<ir::TransposeOp>() : ir::TransposeOp();
  auto merge = transpose ? transpose.getInput().getDefiningOp<ir::ReshapeOp>() : ir::ReshapeOp();
  if (!merge || !swapsLastTwo(transpose)) return Value();
  Value input = merge.getInput();
  llvm::ArrayRef<int64_t> from = shapeOf(input);
  llvm::ArrayRef<int64_t> merged = shapeOf(merge.getResult());
  llvm::ArrayRef<int64_t> transposed = shapeOf(transpose.getResult());
  llvm::ArrayRef<int64_t> to = shapeOf(value);
  if (from.size() < 2 || to.size() < 2) return Value();
  bool keepsMatrix =
      from.take_back(2) == merged.take_back(2) && transposed.take_back(2) == to.take_back(2);
  return keepsMatrix ? input : Value();
}

ir::MatmulOp matchProduct(Value value) {
  auto op = value.getDefiningOp<ir::MatmulOp>();
  const bool isSingle =
      op && op.getRowDims() == 1 && op.getSumDims() == 1 && op.getColumnDims() == 1;
  return isSingle ? op : ir::MatmulOp();
}

bool exchangesGroups(ir::TransposeOp transpose, size_t batch, size_t x, size_t y) {
  llvm::SmallVector<int64_t> expected(batch + x + y);
  for (size_t d = 0; d < batch; ++d) expected[d] = d;
  for (size_t d = 0; d < x; ++d) expected[batch + d] = batch + y + d;
  for (size_t d = 0; d < y; ++d) expected[batch + x + d] = batch + d;
  return transpose.getPermutation() == llvm::ArrayRef(expected);
}

std::optional<int64_t> movedDim(mlir::Operation* op, int64_t dim) {
  if (!llvm::isa<ir::ReshapeOp, ir::SliceOp, ir::TransposeOp>(op)) return std::nullopt;
  ir::ShardingRule rule = llvm::cast<ir::ShardableOpInterface>(op).getShardingRule();
  const ir::FactorList& factors = rule.operands.front()[dim];
  auto found = llvm::find(rule.results.front(), factors);
  if (factors.size() != 1 || found == rule.results.front().end()) return std::nullopt;
  return found - rule.results.front().begin();
}

std::optional<int64_t> knownRow(ir::GatherOp op) {
  mlir::DenseElementsAttr index;
  if (op.getFirst() || !mlir::matchPattern(op.getIndices(), mlir::m_Constant(&index)) ||
      index.getNumElements() != 1) {
    return std::nullopt;
  }
  int64_t row = index.getSplatValue<llvm::APInt>().getSExtValue();
  const int64_t rows = tensorType(op.getInput()).getDimSize(op.getDim());
  if (row < 0) row += rows;
  return row >= 0 && row < rows ? std::optional(row) : std::nullopt;
}

std::optional<int64_t> startOfStretch(ir::SliceOp op, int64_t dim) {
  for (auto [i, size] : llvm::enumerate(shapeOf(op.getInput()))) {
    if (op.getStrides()[i] != 1) return std::nullopt;
    if (static_cast<int64_t>(i) != dim && op.getType().getDimSize(i) != size) return std::nullopt;
  }
  return op.getStarts()[dim];
}

bool mayHide(Value added) {
  constexpr size_t kMaxValues = 256;
  llvm::SmallVector<Value> open = {added};
  llvm::DenseSet<Value> seen;
  auto isLarge = [](const llvm::APFloat& number) {
    return !(std::abs(number.convertToDouble()) < -kLowestScore);
  };
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!seen.insert(next).second) continue;
    if (seen.size() > kMaxValues) return true;
    const bool isFloat = llvm::isa<mlir::FloatType>(elementOf(next));
    mlir::DenseElementsAttr table;
    if (mlir::matchPattern(next, mlir::m_Constant(&table))) {
      if (!isFloat) continue;
      const bool hides = table.isSplat() ? isLarge(table.getSplatValue<llvm::APFloat>())
                                         : llvm::any_of(table.getValues<llvm::APFloat>(), isLarge);
      if (hides) return true;
    } else if (mlir::Operation* producer = next.getDefiningOp()) {
      llvm::append_range(open, producer->getOperands());
    } else if (isFloat) {
      return true;
    }
  }
  return false;
}

bool dependsOnParameter(Value value) {
  llvm::SmallVector<Value> open = {value};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value next = open.pop_back_val();
    if (!llvm::isa<mlir::FloatType>(elementOf(next))) continue;
    if (!seen.insert(next).second) continue;
    if (mlir::Operation* producer = next.getDefiningOp()) {
      llvm::append_range(open, producer->getOperands());
      continue;
    }
    if (ir::isParameter(llvm::cast<mlir::BlockArgument>(next))) return true;
  }
  return false;
}

Value expandRank(mlir::PatternRewriter& rewriter, mlir::Location loc, Value value, int64_t rank) {
  mlir::RankedTensorType type = tensorType(value);
  if (type.getRank() >= rank) return value;
  llvm::SmallVector<int64_t> shape(rank - type.getRank(), 1);
  llvm::append_range(shape, type.getShape());
  return ir::ReshapeOp::create(rewriter, loc, type.clone(shape), value);
}

mlir::LogicalResult applyRaise(mlir::Operation* function, mlir::RewritePatternSet patterns) {
  mlir::GreedyRewriteConfig config;
  // Top-down: a layer is seen from its end only once what it is made of is raised.
  config.setUseTopDownTraversal(true);
  if (failed(mlir::applyPatternsGreedily(function, std::move(patterns), config))) {
    return function->emitError(
        "is still changed by patterns after many rounds; this is a bug of Oriel");
  }
  return mlir::success();
}

}  // namespace oriel
