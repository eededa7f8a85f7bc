#include <map>
#include <optional>

#include "ir/interfaces/tensor_type.h"
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

// The update's arguments and results by their roles.
class Roles {
 public:
  explicit Roles(FuncOp segment) : segment_(segment) {
    for (BlockArgument argument : segment.getArguments()) {
      if (auto role = of(argument)) arguments_[*role] = argument;
    }
    Operation* end = segment.getBody().front().getTerminator();
    for (mlir::OpOperand& operand : end->getOpOperands()) {
      mlir::FailureOr<ValueRole> role = ir::resultRole(segment, operand.getOperandNumber());
      if (succeeded(role)) results_[*role] = operand.get();
    }
  }

  std::optional<ValueRole> of(BlockArgument argument) const {
    mlir::FailureOr<ValueRole> role = ir::argumentRole(segment_, argument.getArgNumber());
    return succeeded(role) ? std::optional(*role) : std::nullopt;
  }
  // Null without one.
  BlockArgument argument(const ValueRole& role) const {
    auto found = arguments_.find(role);
    return found == arguments_.end() ? BlockArgument() : found->second;
  }
  Value result(const ValueRole& role) const {
    auto found = results_.find(role);
    return found == results_.end() ? Value() : found->second;
  }

 private:
  FuncOp segment_;
  std::map<ValueRole, BlockArgument> arguments_;
  std::map<ValueRole, Value> results_;
};

std::optional<Step> stepOf(Operation& op, const Roles& roles) {
  auto listed = llvm::dyn_cast<ir::ListedOpInterface>(op);
  if (!listed || !listed.takesRemainder()) return std::nullopt;
  Step step{listed, ir::roundingOf(listed), llvm::dyn_cast<BlockArgument>(op.getOperand(0)), {}};
  if (!step.rounding || !step.master || !step.master.hasOneUse()) return std::nullopt;
  const std::optional<ValueRole> role = roles.of(step.master);
  if (!role || role->kind != ValueKind::kOptimizerState || role->slot != kMaster) {
    return std::nullopt;
  }
  const ValueRole ofParameter{ValueKind::kParameter, role->ref, ""};
  step.parameter = roles.argument(ofParameter);
  Value stepped = op.getResult(0), rounded = step.rounding.getResult();
  // Where ranks store parts of the master only, the parameter is joined of what they round.
  const bool alike = step.parameter && step.parameter.getType() == rounded.getType() &&
                     ir::shardingOf(step.parameter) == ir::shardingOf(step.master);
  // The new master goes nowhere but to be rounded and kept.
  const bool kept =
      roles.result(ofParameter) == rounded && roles.result(*role) == stepped && stepped.hasNUses(2);
  return alike && kept ? std::optional(step) : std::nullopt;
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
  auto type = ir::tensorType(step.master).clone(builder.getIntegerType(16));
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
    const Roles roles(segment);
    llvm::SmallVector<Step> steps;
    for (Operation& op : segment.getBody().front()) {
      if (std::optional<Step> step = stepOf(op, roles)) steps.push_back(*step);
    }
    for (const Step& step : steps) keepRemainder(step);
    mlir::Block& body = segment.getBody().front();
    segment.setFunctionType(mlir::FunctionType::get(segment.getContext(), body.getArgumentTypes(),
                                                    body.getTerminator()->getOperandTypes()));
  }
}

}  // namespace oriel
