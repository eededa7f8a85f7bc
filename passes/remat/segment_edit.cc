#include "passes/remat/segment_edit.h"

#include "llvm/ADT/BitVector.h"

namespace oriel {

using ir::ValueRole;
using mlir::DictionaryAttr;
using mlir::FailureOr;

namespace {

template <typename T>
void eraseAt(const llvm::BitVector& places, llvm::SmallVectorImpl<T>& list) {
  size_t next = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!places[i]) std::swap(list[next++], list[i]);
  }
  list.truncate(next);
}

}  // namespace

FailureOr<SegmentEdit> SegmentEdit::create(mlir::func::FuncOp segment) {
  SegmentEdit edit(segment);
  for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
    FailureOr<ValueRole> role = ir::argumentRole(segment, i);
    if (failed(role)) return mlir::failure();
    edit.places_[*role] = i;
    edit.argumentRoles_.push_back(std::move(*role));
    edit.argumentAttributes_.push_back(segment.getArgAttrDict(i));
  }
  for (unsigned i = 0; i < segment.getNumResults(); ++i) {
    FailureOr<ValueRole> role = ir::resultRole(segment, i);
    if (failed(role)) return mlir::failure();
    edit.resultRoles_.push_back(std::move(*role));
    edit.resultAttributes_.push_back(segment.getResultAttrDict(i));
  }
  return edit;
}

mlir::BlockArgument SegmentEdit::find(const ValueRole& role) {
  auto place = places_.find(role);
  if (place == places_.end()) return {};
  return segment_.getBody().getArgument(place->second);
}

mlir::Value SegmentEdit::argument(const ValueRole& role, mlir::Type type, mlir::Location loc,
                                  ir::ShardingAttr sharding) {
  if (mlir::BlockArgument known = find(role)) return known;
  places_[role] = argumentRoles_.size();
  argumentRoles_.push_back(role);
  argumentAttributes_.push_back(attributes(role, sharding));
  return segment_.getBody().addArgument(type, loc);
}

void SegmentEdit::addResult(mlir::Value value, const ValueRole& role, ir::ShardingAttr sharding) {
  mlir::Operation* terminator = segment_.getBody().front().getTerminator();
  terminator->insertOperands(terminator->getNumOperands(), value);
  resultRoles_.push_back(role);
  resultAttributes_.push_back(attributes(role, sharding));
}

void SegmentEdit::erase(llvm::function_ref<bool(const ValueRole&)> isDropped) {
  mlir::Block& block = segment_.getBody().front();
  auto isStash = [](const ValueRole& role) { return role.kind == ir::ValueKind::kStash; };
  llvm::BitVector arguments(argumentRoles_.size()), results(resultRoles_.size());
  for (auto [i, role] : llvm::enumerate(argumentRoles_)) {
    arguments[i] = isStash(role) && block.getArgument(i).use_empty();
  }
  for (auto [i, role] : llvm::enumerate(resultRoles_))
    results[i] = isStash(role) && isDropped(role);
  block.eraseArguments(arguments);
  block.getTerminator()->eraseOperands(results);
  eraseAt(arguments, argumentRoles_);
  eraseAt(arguments, argumentAttributes_);
  eraseAt(results, resultRoles_);
  eraseAt(results, resultAttributes_);
  places_.clear();
  for (auto [i, role] : llvm::enumerate(argumentRoles_)) places_[role] = i;
}

void SegmentEdit::finish() {
  mlir::Block& block = segment_.getBody().front();
  // Attributes of what is gone must not be looked at with the new type.
  segment_.removeArgAttrsAttr();
  segment_.removeResAttrsAttr();
  segment_.setFunctionType(mlir::FunctionType::get(segment_.getContext(), block.getArgumentTypes(),
                                                   block.getTerminator()->getOperandTypes()));
  segment_.setAllArgAttrs(argumentAttributes_);
  segment_.setAllResultAttrs(resultAttributes_);
}

DictionaryAttr SegmentEdit::attributes(const ValueRole& role, ir::ShardingAttr sharding) const {
  mlir::MLIRContext* context = segment_->getContext();
  mlir::NamedAttrList list(ir::roleAttributes(context, role));
  if (sharding) list.set(ir::kShardingAttr, sharding);
  return list.getDictionary(context);
}

}  // namespace oriel
