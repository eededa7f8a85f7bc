#include <optional>

#include "ir/oriel/fused.h"
#include "ir/oriel/segment.h"
#include "passes/lower/launches.h"
#include "passes/lower/passes.h"
#include "passes/strategize/sharding.h"
#include "passes/train/update.h"

namespace oriel {

#define GEN_PASS_DEF_KEEPREMAINDERS
#include "passes/lower/passes.h.inc"

namespace {

using ir::ValueKind;
using ir::ValueRole;
using mlir::ArrayAttr;
using mlir::Attribute;
using mlir::BlockArgument;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

// An optimizer step whose master needs no f32 in memory: the parameter has the upper half of it.
struct Step {
  ir::ListedOpInterface op;
  ir::CastOp rounding;
  BlockArgument master, parameter;
};

bool hasRole(BlockArgument argument, const ValueRole& role) {
  auto segment = llvm::cast<FuncOp>(argument.getOwner()->getParentOp());
  mlir::FailureOr<ValueRole> own = ir::argumentRole(segment, argument.getArgNumber());
  return succeeded(own) && *own == role;
}

// Whether the segment returns the value as the new one of this role.
bool isReturnedAs(FuncOp segment, Value value, const ValueRole& role) {
  Operation* end = segment.getBody().front().getTerminator();
  return llvm::any_of(end->getOpOperands(), [&](mlir::OpOperand& operand) {
    if (operand.get() != value) return false;
    mlir::FailureOr<ValueRole> own = ir::resultRole(segment, operand.getOperandNumber());
    return succeeded(own) && *own == role;
  });
}

std::optional<Step> stepOf(Operation& op, FuncOp segment) {
  auto listed = llvm::dyn_cast<ir::ListedOpInterface>(op);
  if (!listed || !listed.takesRemainder()) return std::nullopt;
  Step step{listed, ir::roundingOf(listed), llvm::dyn_cast<BlockArgument>(op.getOperand(0)), {}};
  if (!step.rounding || !step.master || !step.master.hasOneUse()) return std::nullopt;
  mlir::FailureOr<ValueRole> role = ir::argumentRole(segment, step.master.getArgNumber());
  if (failed(role) || role->kind != ValueKind::kOptimizerState || role->slot != kMaster) {
    return std::nullopt;
  }
  const ValueRole ofParameter{ValueKind::kParameter, role->ref, ""};
  for (BlockArgument argument : segment.getArguments()) {
    if (hasRole(argument, ofParameter)) step.parameter = argument;
  }
  Value stepped = op.getResult(0), rounded = step.rounding.getResult();
  // Where ranks store parts of the master only, the parameter is joined of what they round.
  const bool alike = step.parameter && step.parameter.getType() == rounded.getType() &&
                     ir::shardingOf(step.parameter) == ir::shardingOf(step.master);
  if (!alike || !isReturnedAs(segment, rounded, ofParameter) ||
      !isReturnedAs(segment, stepped, *role) || !stepped.hasNUses(2)) {
    return std::nullopt;
  }
  return step;
}

// What describes operand 0 and result 0 describes the remainders, too.
void describe(Operation* op, unsigned own, mlir::Builder& builder) {
  if (auto rule = op->getAttrOfType<mlir::DictionaryAttr>(kRuleAttr)) {
    llvm::SmallVector<mlir::NamedAttribute> entries;
    for (mlir::NamedAttribute entry : rule) {
      auto list = llvm::dyn_cast<ArrayAttr>(entry.getValue());
      const bool operands = entry.getName() == "operands";
      if (list && (operands || entry.getName() == "results")) {
        llvm::SmallVector<Attribute> dims(list.getValue());
        dims.insert(operands ? dims.begin() + own : dims.end(), dims.front());
        entry.setValue(builder.getArrayAttr(dims));
      }
      entries.push_back(entry);
    }
    op->setAttr(kRuleAttr, builder.getDictionaryAttr(entries));
  }
  if (auto shardings = op->getAttrOfType<ArrayAttr>(ir::kShardingsAttr)) {
    llvm::SmallVector<Attribute> all(shardings.getValue());
    all.push_back(all.front());
    op->setAttr(ir::kShardingsAttr, builder.getArrayAttr(all));
  }
}

void keepRemainder(const Step& step) {
  Operation* op = ir::ListedOpInterface(step.op);
  ir::CastOp rounding = step.rounding;
  mlir::OpBuilder builder(op);
  auto type =
      llvm::cast<mlir::RankedTensorType>(step.master.getType()).clone(builder.getIntegerType(16));
  BlockArgument remainder = step.master;
  remainder.setType(type);
  const unsigned own = ir::ListedOpInterface(step.op).getOwnOperandCount();
  mlir::OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.operands[0] = step.parameter;
  state.operands.insert(state.operands.begin() + own, remainder);
  state.addAttributes(op->getAttrs());
  state.addTypes(rounding.getType());
  for (Value result : op->getResults().drop_front()) state.addTypes(result.getType());
  state.addTypes(type);
  Operation* made = builder.create(state);
  describe(made, own, builder);
  rounding.getResult().replaceAllUsesWith(made->getResult(0));
  rounding->erase();
  op->getResult(0).replaceAllUsesWith(made->getResults().back());
  for (unsigned i = 1; i < op->getNumResults(); ++i) {
    op->getResult(i).replaceAllUsesWith(made->getResult(i));
  }
  op->erase();
}

struct KeepRemainders : impl::KeepRemaindersBase<KeepRemainders> {
  void runOnOperation() override {
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) keepRemainders(program);
  }
};

}  // namespace

void keepRemainders(mlir::ModuleOp program) {
  for (FuncOp segment : ir::segmentsOfKind(program, "update")) {
    llvm::SmallVector<Step> steps;
    for (Operation& op : segment.getBody().front()) {
      if (std::optional<Step> step = stepOf(op, segment)) steps.push_back(*step);
    }
    for (const Step& step : steps) keepRemainder(step);
    mlir::Block& body = segment.getBody().front();
    segment.setFunctionType(mlir::FunctionType::get(segment.getContext(), body.getArgumentTypes(),
                                                    body.getTerminator()->getOperandTypes()));
  }
}

}  // namespace oriel
