#include "ir/oriel/segment_roles.h"

#include <utility>

#include "ir/oriel/location.h"
#include "llvm/ADT/STLExtras.h"

namespace oriel::ir {

namespace {

using Numbers = std::map<ValueRole, unsigned>;

std::optional<unsigned> find(const Numbers& numbers, const ValueRole& role) {
  auto it = numbers.find(role);
  return it == numbers.end() ? std::nullopt : std::optional<unsigned>(it->second);
}

}  // namespace

std::string roleText(const ValueRole& role) {
  std::string text = stringifyValueKind(role.kind).str() + " '" + role.ref + "'";
  return role.slot.empty() ? text : text + " " + role.slot;
}

mlir::FailureOr<SegmentRoles> SegmentRoles::read(mlir::func::FuncOp segment) {
  if (!llvm::hasSingleElement(segment.getBody())) {
    return segment.emitError("a segment must have one block");
  }
  SegmentRoles roles;
  roles.function_ = segment;
  for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
    mlir::FailureOr<ValueRole> role = argumentRole(segment, i);
    if (failed(role)) return mlir::failure();
    if (!roles.argumentNumbers_.try_emplace(*role, i).second) {
      return segment.emitError("has two arguments for ") << roleText(*role);
    }
    roles.arguments_.push_back(*std::move(role));
  }
  for (unsigned i = 0; i < segment.getNumResults(); ++i) {
    mlir::FailureOr<ValueRole> role = resultRole(segment, i);
    if (failed(role)) return mlir::failure();
    if (!roles.resultNumbers_.try_emplace(*role, i).second) {
      return segment.emitError("has two results for ") << roleText(*role);
    }
    roles.results_.push_back(*std::move(role));
  }
  return roles;
}

mlir::LogicalResult checkOrigins(mlir::func::FuncOp segment) {
  constexpr int64_t kMaxOrigin = int64_t{1} << 24;
  for (mlir::Operation& op : segment.getBody().getOps()) {
    const int64_t origin = originOf(&op);
    if (origin < -1 || origin > kMaxOrigin) {
      return op.emitOpError("has the origin ") << origin << ", expected -1 or the number of an op";
    }
  }
  return mlir::success();
}

mlir::LogicalResult SegmentRoles::checkReplaces(llvm::ArrayRef<ValueKind> kinds) const {
  for (const ValueRole& role : results_) {
    if (!llvm::is_contained(kinds, role.kind) || findArgument(role)) continue;
    mlir::func::FuncOp segment = function_;
    return segment.emitError("returns a new ")
           << roleText(role) << ", but has no argument that holds it";
  }
  return mlir::success();
}

mlir::LogicalResult SegmentRoles::checkReads(ValueKind kind, const SegmentRoles& earlier) const {
  for (const ValueRole& role : arguments_) {
    if (role.kind != kind || earlier.findResult(role)) continue;
    mlir::func::FuncOp segment = function_, writer = earlier.function_;
    return segment.emitError("reads ")
           << roleText(role) << ", which @" << writer.getSymName() << " does not write";
  }
  return mlir::success();
}

mlir::LogicalResult SegmentRoles::checkStepsNothing() const {
  for (const ValueRole& role : results_) {
    if (role.kind != ValueKind::kParameter && role.kind != ValueKind::kOptimizerState) continue;
    mlir::func::FuncOp segment = function_;
    return segment.emitError("returns a new ") << roleText(role) << "; only @update may";
  }
  return mlir::success();
}

std::optional<unsigned> SegmentRoles::findArgument(const ValueRole& role) const {
  return find(argumentNumbers_, role);
}

std::optional<unsigned> SegmentRoles::findResult(const ValueRole& role) const {
  return find(resultNumbers_, role);
}

}  // namespace oriel::ir
