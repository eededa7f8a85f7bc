#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "llvm/ADT/SetVector.h"
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
  if (failed(context.expectElementType("a result", result, elementOf(input))) ||
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
  if (getInputs().empty()) return emitOpError("expects an operand");
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

LogicalResult WaitOp::verify() {
  if (getInputs().getTypes() != getResults().getTypes()) {
    return emitOpError("expects results of the operands' types, got ")
           << getResults().getTypes() << " for " << getInputs().getTypes();
  }
  if (getInputs().empty()) return emitOpError("waits for nothing");
  llvm::SmallSetVector<mlir::Operation*, 4> started;
  for (Value input : getInputs()) {
    mlir::Operation* op = input.getDefiningOp();
    if (!op || !op->hasAttr(kStreamAttr) || op->getBlock() != (*this)->getBlock()) {
      return emitOpError("waits for what is no result of a collective that was started");
    }
    started.insert(op);
  }
  // All results of one, or of a bucket, whose members stand one behind the other.
  llvm::SmallVector<mlir::Operation*> bucket{started.front()};
  auto first = llvm::cast<CollectiveOpInterface>(started.front());
  auto isMember = [&](mlir::Operation* op) {
    auto collective = llvm::dyn_cast_if_present<CollectiveOpInterface>(op);
    return collective && travelTogether(first, collective);
  };
  while (isMember(bucket.front()->getPrevNode())) {
    bucket.insert(bucket.begin(), bucket.front()->getPrevNode());
  }
  while (isMember(bucket.back()->getNextNode())) bucket.push_back(bucket.back()->getNextNode());
  size_t results = 0;
  for (mlir::Operation* op : bucket) results += op->getNumResults();
  if (bucket.size() != started.size() ||
      !llvm::all_of(bucket, [&](mlir::Operation* op) { return started.contains(op); }) ||
      results != getInputs().size()) {
    return emitOpError("waits for other values than the results of one collective, or one bucket");
  }
  return success();
}

bool travelTogether(CollectiveOpInterface a, CollectiveOpInterface b) {
  mlir::Attribute bucket = a->getAttr(kBucketAttr);
  return bucket && bucket == b->getAttr(kBucketAttr) && a->getName() == b->getName() &&
         a->getAttr(kStreamAttr) == b->getAttr(kStreamAttr) && a.getAxes() == b.getAxes() &&
         a.getReductionName() == b.getReductionName();
}

LogicalResult verifyStream(mlir::Operation* op, mlir::NamedAttribute attribute) {
  if (attribute.getName() == kBucketAttr && !op->hasAttr(kStreamAttr)) {
    return op->emitOpError("is in a bucket, but on no stream");
  }
  if (attribute.getName() != kStreamAttr) return success();
  auto stream = llvm::dyn_cast<mlir::IntegerAttr>(attribute.getValue());
  if (!llvm::isa<CollectiveOpInterface>(op)) {
    return op->emitOpError("is no collective, but on a stream");
  }
  constexpr int64_t kMaxStreams = 1 << 16;
  if (!stream || !stream.getType().isInteger(64) || stream.getInt() < 1 ||
      stream.getInt() > kMaxStreams) {
    return op->emitOpError("is on the stream ")
           << attribute.getValue() << ", expected one from 1 to " << kMaxStreams;
  }
  for (Value result : op->getResults()) {
    if (!result.hasOneUse() || !llvm::isa<WaitOp>(*result.user_begin())) {
      return op->emitOpError("is started, and expects one wait as the only use of each result");
    }
  }
  return success();
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
