#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "llvm/ADT/SmallSet.h"

namespace oriel::ir {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

namespace {

LogicalResult checkAxes(mlir::Operation* op, mlir::ArrayAttr axes) {
  if (axes.empty()) return op->emitOpError("expects at least one axis, got none");
  llvm::SmallSet<llvm::StringRef, 4> seen;
  for (auto axis : axes.getAsRange<mlir::StringAttr>()) {
    if (!seen.insert(axis.getValue()).second) {
      return op->emitOpError("names the axis ") << axis << " twice";
    }
  }
  return success();
}

LogicalResult checkReduction(mlir::Operation* op, mlir::StringAttr reduction) {
  if (reduction.getValue() == "sum" || reduction.getValue() == "max") return success();
  return op->emitOpError("expects the reduction sum or max, got ") << reduction;
}

// A dimension of a distributed op's operand that is cut into pieces, or of its result in which
// pieces are joined.
struct PieceDim {
  llvm::StringRef name;
  int64_t dim;
};

// The result is the operand with `cut` divided and `joined` multiplied by the number of pieces,
// which the axes' sizes give; here it is only known to be one number.
LogicalResult checkPieces(mlir::Operation* op, std::optional<PieceDim> cut,
                          std::optional<PieceDim> joined) {
  Value input = op->getOperand(0);
  Value result = op->getResult(0);
  InferenceContext context(op->getLoc(), op->getName().getStringRef());
  llvm::ArrayRef<int64_t> from = shapeOf(input);
  llvm::ArrayRef<int64_t> to = shapeOf(result);
  for (const std::optional<PieceDim>& piece : {cut, joined}) {
    if (piece && failed(context.expectDim(piece->name, piece->dim, from.size()))) return failure();
  }
  if (cut && joined && cut->dim == joined->dim) {
    return op->emitOpError("cuts and joins the same dimension ") << cut->dim;
  }
  if (failed(context.expectElementType("a result", result, tensorType(input).getElementType())) ||
      failed(context.expectRank("a result", result, from.size()))) {
    return failure();
  }
  std::optional<int64_t> pieces;
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip_equal(from, to))) {
    auto [source, target] = sizes;
    bool isCut = cut && cut->dim == static_cast<int64_t>(dim);
    bool isJoined = joined && joined->dim == static_cast<int64_t>(dim);
    int64_t whole = isCut ? source : target;
    int64_t piece = isCut ? target : source;
    if (isCut || isJoined ? (piece == 0 ? whole != 0 : whole == 0 || whole % piece != 0)
                          : whole != piece) {
      return op->emitOpError("makes ") << shapeText(to) << " of " << shapeText(from)
                                       << ", which does not fit in dimension " << dim;
    }
    if ((!isCut && !isJoined) || piece == 0) continue;
    if (pieces && *pieces != whole / piece) {
      return op->emitOpError("cuts into ")
             << (isCut ? whole / piece : *pieces) << " pieces but joins "
             << (isCut ? *pieces : whole / piece);
    }
    pieces = whole / piece;
  }
  return success();
}

}  // namespace

LogicalResult AllReduceOp::verify() {
  if (failed(checkReduction(*this, getReductionAttr())) || failed(checkAxes(*this, getAxes()))) {
    return failure();
  }
  if (getInputs().getTypes() != getResults().getTypes()) {
    return emitOpError("expects results of the operands' types, got ")
           << getResults().getTypes() << " for " << getInputs().getTypes();
  }
  return success();
}

mlir::StringAttr AllReduceOp::getReductionName() { return getReductionAttr(); }
bool AllReduceOp::mayReduceInPlace() { return true; }

LogicalResult AllGatherOp::verify() {
  if (failed(checkAxes(*this, getAxes()))) return failure();
  return checkPieces(*this, std::nullopt, PieceDim{"dim", getDim()});
}

std::optional<int64_t> AllGatherOp::getJoinedDimension() { return getDim(); }

LogicalResult ReduceScatterOp::verify() {
  if (failed(checkReduction(*this, getReductionAttr())) || failed(checkAxes(*this, getAxes()))) {
    return failure();
  }
  return checkPieces(*this, PieceDim{"dim", getDim()}, std::nullopt);
}

mlir::StringAttr ReduceScatterOp::getReductionName() { return getReductionAttr(); }
std::optional<int64_t> ReduceScatterOp::getSplitDimension() { return getDim(); }

LogicalResult AllToAllOp::verify() {
  if (failed(checkAxes(*this, getAxes()))) return failure();
  return checkPieces(*this, PieceDim{"split_dim", getSplitDim()},
                     PieceDim{"concat_dim", getConcatDim()});
}

std::optional<int64_t> AllToAllOp::getSplitDimension() { return getSplitDim(); }
std::optional<int64_t> AllToAllOp::getJoinedDimension() { return getConcatDim(); }

LogicalResult SliceLocalOp::verify() {
  if (failed(checkAxes(*this, getAxes()))) return failure();
  return checkPieces(*this, PieceDim{"dim", getDim()}, std::nullopt);
}

namespace {

template <typename Op>
LogicalResult checkChannel(Op op) {
  if (op.getChannel().empty()) return op.emitOpError("names no channel");
  if (op.getPeer().empty()) return op.emitOpError("names no program as its peer");
  return success();
}

}  // namespace

LogicalResult SendOp::verify() { return checkChannel(*this); }
LogicalResult ReceiveOp::verify() { return checkChannel(*this); }

}  // namespace oriel::ir
