#include "passes/propagate/hints.h"

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/location.h"
#include "ir/oriel/oriel.h"
#include "passes/propagate/op_split.h"
#include "passes/propagate/segment_sharding.h"

namespace oriel {

namespace {

using ir::ValueKind;
using ir::ValueRole;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

// Whether the result lacks a factor of the operand: it has other elements, even if as many.
bool isSummed(const ir::ShardingRule& rule, unsigned operand) {
  return llvm::any_of(llvm::seq<int>(rule.factors.size()), [&](int factor) {
    return rule.factors[factor].size > 1 && rule.operandHas(operand, factor) &&
           !rule.resultHas(0, factor);
  });
}

// Of the op, or, where training has none such (what only evaluation does), of what it is made of.
int moduleOf(Operation* op, const ModuleMap& modules) {
  while (op) {
    const int module = modules.ofOrigin(ir::originOf(op));
    if (module != ModuleMap::kNone || op->getNumOperands() == 0) return module;
    op = op->getOperand(0).getDefiningOp();
  }
  return ModuleMap::kNone;
}

LogicalResult hintOutputs(FuncOp segment, const ModuleMap& modules, const AxisSizes& sizes,
                          ShardingOfValue& rows) {
  for (mlir::OpOperand& operand : segment.getBody().front().getTerminator()->getOpOperands()) {
    FailureOr<ValueRole> role = ir::resultRole(segment, operand.getOperandNumber());
    if (failed(role)) return failure();
    auto value = llvm::dyn_cast<mlir::OpResult>(operand.get());
    if (!value || !isReadInPieces(*role, value) || ir::rankOf(value) < 2) continue;
    const ModuleAxes& axes = modules.axes(moduleOf(value.getOwner(), modules));
    Sharding hint = Sharding::replicated(ir::rankOf(value));
    if (std::optional<Sharding> positions = positionsOf(value, axes, sizes)) hint = *positions;
    hint.dims[0].insert(hint.dims[0].begin(), axes.data.begin(), axes.data.end());
    hint.dims[hint.dims.size() - 2].append(axes.tensor);
    if (!axes.tensor.empty() && sizes.divides(ir::shapeOf(value), hint)) {
      rows[value] = std::move(hint);
    }
  }
  return success();
}

// Of what the op adds to a gradient.
LogicalResult hintSummands(FuncOp segment, const mlir::SymbolTable& symbols, Operation& op,
                           const AxisSizes& sizes, ShardingOfValue& becomes) {
  for (Value operand : op.getOperands()) {
    auto argument = llvm::dyn_cast<mlir::BlockArgument>(operand);
    if (!argument) continue;
    FailureOr<ValueRole> role = ir::argumentRole(segment, argument.getArgNumber());
    if (failed(role)) return failure();
    if (role->kind != ValueKind::kGradient) continue;
    FailureOr<ir::ParameterOp> parameter = parameterOf(symbols, segment, *role);
    if (failed(parameter)) return failure();
    FailureOr<Sharding> use = shardingOf(*parameter, parameter->getUse(), sizes);
    if (failed(use)) return failure();
    for (Value other : op.getOperands()) {
      if (other != operand && other.getType() == operand.getType()) becomes[other] = *use;
    }
  }
  return success();
}

// To what the op makes all elements of its result of.
void followBack(Operation& op, const AxisSizes& sizes, ShardingOfValue& hints) {
  if (op.getNumResults() != 1) return;
  auto own = hints.find(op.getResult(0));
  if (own == hints.end()) return;
  const ir::ShardingRule rule = ruleOf(&op);
  const Sharding hint = own->second;
  const std::vector<AxisList> factors =
      combineProposals(rule, sizes, Proposal{&rule.results[0], hint});
  for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
    if (!operand.hasOneUse() || llvm::isa<mlir::BlockArgument>(operand) || isSummed(rule, i) ||
        ir::tensorType(operand).getNumElements() !=
            ir::tensorType(op.getResult(0)).getNumElements()) {
      continue;
    }
    hints[operand] = OpSplit{factors, {}}.operand(rule, i).reduced();
  }
}

}  // namespace

bool isReadInPieces(const ValueRole& role, Value value) {
  return role.kind == ValueKind::kOutput && ir::rankOf(value) > 0 &&
         llvm::isa<mlir::FloatType>(ir::elementOf(value));
}

FailureOr<Hints> findHints(FuncOp segment, const ModuleMap& modules, const AxisSizes& sizes) {
  Hints hints;
  const mlir::SymbolTable symbols = symbolsOf(segment);
  if (failed(hintOutputs(segment, modules, sizes, hints.rows))) return failure();
  for (Operation& op : llvm::reverse(segment.getBody().front())) {
    if (!ir::isUpdate(segment) &&
        failed(hintSummands(segment, symbols, op, sizes, hints.becomes))) {
      return failure();
    }
    followBack(op, sizes, hints.becomes);
    followBack(op, sizes, hints.rows);
  }
  return hints;
}

}  // namespace oriel
