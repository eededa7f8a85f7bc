// Matchers shared by the raise patterns.
#ifndef ORIEL_PASSES_RAISE_MATCH_H_
#define ORIEL_PASSES_RAISE_MATCH_H_

#include <optional>
#include <utility>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"
#include "mlir/IR/PatternMatch.h"

namespace oriel {

using ir::elementOf;
using ir::rankOf;
using ir::shapeOf;
using ir::tensorType;

// The value of a float constant whose elements are all the same.
std::optional<double> splatValue(mlir::Value value);
// Whether the value is such a constant, equal to `expected` within f32 rounding.
bool isSplat(mlir::Value value, double expected);

// For a commutative op: (match, other) for the operand that `matches` accepts, the left one
// first.
template <typename Op, typename Matcher>
std::optional<std::pair<mlir::Value, mlir::Value>> matchEither(mlir::Value value, Matcher matches) {
  auto op = value.getDefiningOp<Op>();
  if (!op) return std::nullopt;
  if (matches(op.getLhs())) return std::make_pair(op.getLhs(), op.getRhs());
  if (matches(op.getRhs())) return std::make_pair(op.getRhs(), op.getLhs());
  return std::nullopt;
}

// The boolean of which the value is the number, 0 or 1; null for another value.
mlir::Value matchNumberOfBoolean(mlir::Value value);
// (x, c) where the value is x * c or x / (1/c) for a splat constant.
std::optional<std::pair<mlir::Value, double>> matchScaled(mlir::Value value);
// (x, c) where the value is x + c for a splat constant.
std::optional<std::pair<mlir::Value, double>> matchShifted(mlir::Value value);
// x where the value is 1/√x.
mlir::Value matchInverseSqrt(mlir::Value value);
// x where the value is x².
mlir::Value matchSquare(mlir::Value value);
// x where the value is the mean of x over its last dimension, which is kept with size 1.
mlir::Value matchLastMean(mlir::Value value);
// x where the value swaps the last two dimensions of x; also where x and the value are split
// differently in their leading dimensions.
mlir::Value matchTransposed(mlir::Value value);

// With the last two dimensions exchanged.
mlir::Value transposeLastTwo(mlir::PatternRewriter& rewriter, mlir::Location loc,
                             mlir::Value value);

// The product that a value is, of one dimension of rows, of columns and of summands.
ir::MatmulOp matchProduct(mlir::Value value);

// Whether the transpose exchanges two groups of dimensions behind `batch` others:
// [b.., y.., x..] → [b.., x.., y..], of `x` and `y` dimensions.
bool exchangesGroups(ir::TransposeOp transpose, size_t batch, size_t x, size_t y);

// Where a dimension of its operand, whole, is in what an op makes that moves elements only (a
// reshape, slice or transpose); nothing for other ops, and where it joins the dimension with
// others.
std::optional<int64_t> movedDim(mlir::Operation* op, int64_t dim);

// The one row that the gather takes, if it is known and there.
std::optional<int64_t> knownRow(ir::GatherOp op);

// Where the slice begins, if it takes one stretch of this dimension and all of the others.
std::optional<int64_t> startOfStretch(ir::SliceOp op, int64_t dim);

// (x, d) where the value reduces x over its dimension d alone, which it keeps with size 1: by
// itself, or by a reshape.
template <typename ReduceOp>
std::optional<std::pair<mlir::Value, int64_t>> matchKeptReduction(mlir::Value value) {
  auto reshape = value.getDefiningOp<ir::ReshapeOp>();
  auto op = (reshape ? mlir::Value(reshape.getInput()) : value).getDefiningOp<ReduceOp>();
  if (!op || op.getDims().size() != 1) return std::nullopt;
  llvm::SmallVector<int64_t> kept(shapeOf(op.getInput()));
  kept[op.getDims()[0]] = 1;
  if (shapeOf(value) != llvm::ArrayRef<int64_t>(kept)) return std::nullopt;
  return std::make_pair(mlir::Value(op.getInput()), op.getDims()[0]);
}

// Beside scores, such a number or a lower one is not to be told from -infinity.
inline constexpr double kLowestScore = -1e9;

// Whether what is added to scores could hide them: it has so large a number in it, or a float of
// the model's inputs.
bool mayHide(mlir::Value added);

// Whether floats lead from a parameter to the value, so that training may want its cotangent.
bool dependsOnParameter(mlir::Value value);

// The value with leading dimensions of size 1 up to `rank`; itself if it has that rank.
mlir::Value expandRank(mlir::PatternRewriter& rewriter, mlir::Location loc, mlir::Value value,
                       int64_t rank);

// Applies the patterns greedily to a function.
mlir::LogicalResult applyRaise(mlir::Operation* function, mlir::RewritePatternSet patterns);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_MATCH_H_
