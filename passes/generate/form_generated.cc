#include "passes/generate/form_generated.h"

#include "ir/oriel/segment.h"
#include "ir/scalar/scalar.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/generate/chains.h"
#include "passes/generate/passes.h"
#include "passes/strategize/sharding.h"

namespace oriel {

#define GEN_PASS_DEF_FORMGENERATED
#include "passes/generate/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::Value;

// What the op computes depends on these of its attributes alone, so that equal bodies are equal.
void keepInherent(Operation* op) {
  llvm::SmallVector<mlir::StringAttr> others;
  for (mlir::NamedAttribute attribute : op->getDiscardableAttrs()) {
    others.push_back(attribute.getName());
  }
  for (mlir::StringAttr name : others) op->removeDiscardableAttr(name);
  if (op->hasAttr("origin")) {
    op->setAttr("origin", mlir::Builder(op->getContext()).getI64IntegerAttr(-1));
  }
}

// Chains come in the order in which they run; `replaced` has what earlier ones have made.
void replace(const Chain& chain, llvm::DenseMap<Value, Value>& replaced) {
  Operation* last = chain.ops.back();
  mlir::OpBuilder builder(last);
  llvm::SmallVector<Value> operands;
  for (Value operand : chain.operands) {
    auto now = replaced.find(operand);
    operands.push_back(now == replaced.end() ? operand : now->second);
  }
  auto generated = exec::GeneratedOp::create(builder, last->getLoc(),
                                             mlir::ValueRange(chain.results).getTypes(), operands);
  mlir::Block& body = generated.getBody().emplaceBlock();
  mlir::IRMapping mapping;
  for (Value operand : operands) {
    mapping.map(operand, body.addArgument(operand.getType(), last->getLoc()));
  }
  builder.setInsertionPointToStart(&body);
  for (Operation* op : chain.ops) keepInherent(builder.clone(*op, mapping));
  llvm::SmallVector<Value> yielded;
  llvm::SmallVector<mlir::Attribute> shardings;
  for (Value result : chain.results) {
    yielded.push_back(mapping.lookup(result));
    if (ir::ShardingAttr sharding = ir::shardingOf(result)) shardings.push_back(sharding);
  }
  exec::YieldOp::create(builder, last->getLoc(), yielded);
  if (!shardings.empty() && shardings.size() == yielded.size()) {
    generated->setAttr(ir::kShardingsAttr, builder.getArrayAttr(shardings));
  }
  if (chain.rule.rule) {
    generated->setAttr(kRuleAttr, chain.rule.rule);
    generated->setAttr(kSplitAttr, chain.rule.split);
  }
  for (auto [result, made] : llvm::zip_equal(chain.results, generated.getOutputs())) {
    replaced[result] = made;
    Value(result).replaceAllUsesWith(made);
  }
  for (Operation* op : chain.ops) op->dropAllReferences();
  for (Operation* op : chain.ops) op->erase();
}

struct FormGenerated : impl::FormGeneratedBase<FormGenerated> {
  void getDependentDialects(mlir::DialectRegistry& registry) const override {
    FormGeneratedBase::getDependentDialects(registry);
    ir::registerScalarModels(registry);
  }

  void runOnOperation() override {
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) formGenerated(program);
  }
};

}  // namespace

void formGenerated(mlir::ModuleOp program) {
  for (auto segment : program.getOps<mlir::func::FuncOp>()) {
    if (!llvm::hasSingleElement(segment.getBody())) continue;
    llvm::DenseMap<Value, Value> replaced;
    for (const Chain& chain : findChains(segment.getBody().front())) replace(chain, replaced);
  }
}

}  // namespace oriel
