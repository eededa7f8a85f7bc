#include <optional>
#include <set>
#include <string>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/segment.h"
#include "passes/divide/passes.h"
#include "passes/strategize/blocks/tensor_blocks.h"
#include "passes/strategize/segment_values.h"
#include "passes/strategize/strategy_pass.h"

namespace oriel {

#define GEN_PASS_DEF_ADDBIASESLAST
#include "passes/divide/passes.h.inc"

namespace {

using mlir::Value;

// What a number scales, or the value itself.
Value withoutScale(Value value) {
  auto scale = value.getDefiningOp<ir::MulOp>();
  if (!scale) return value;
  if (ir::rankOf(scale.getRhs()) == 0) return scale.getLhs();
  return ir::rankOf(scale.getLhs()) == 0 ? scale.getRhs() : value;
}

class BiasMover {
 public:
  BiasMover(mlir::func::FuncOp main, const Strategy& strategy)
      : main_(main), values_(readValues(main)) {
    for (const TensorBlock& block : findTensorBlocks(main, blockOptionsOf(strategy), nullptr)) {
      for (const TensorBlock::Cut& cut : block.cuts) cuts_.insert({nameOf(cut.parameter), cut.dim});
    }
  }

  void run() {
    for (auto linear : llvm::make_early_inc_range(main_.getOps<ir::LinearOp>())) {
      ir::AddOp sum = sumWithProduct(linear);
      if (!sum || !isSplitByRows(linear)) continue;
      mlir::OpBuilder builder(linear);
      auto product = ir::LinearOp::create(builder, linear.getLoc(), linear.getInput(),
                                          linear.getWeight(), Value(), linear.getTransposeWeight());
      Value bias = linear.getBias();
      linear.getResult().replaceAllUsesWith(product.getResult());
      builder.setInsertionPointAfter(sum);
      auto last = ir::AddOp::create(builder, linear.getLoc(), sum.getResult(), bias);
      sum.getResult().replaceAllUsesExcept(last.getResult(), last);
      linear.erase();
    }
  }

 private:
  static std::string nameOf(ir::ParameterOp parameter) { return parameter.getSymName().str(); }

  // The sum of a linear layer that has a bias, and that nothing else reads, and of a product.
  ir::AddOp sumWithProduct(ir::LinearOp linear) const {
    if (!linear.getBias() || !linear->hasOneUse()) return {};
    auto sum = llvm::dyn_cast<ir::AddOp>(*linear->user_begin());
    if (!sum || sum.getType() != linear.getType()) return {};
    Value other = sum.getLhs() == linear.getResult() ? sum.getRhs() : sum.getLhs();
    return other.getType() == linear.getType() && isProduct(other) ? sum : ir::AddOp();
  }

  // Whether it is a product with a parameter: one that is scaled, as an adapter's, or that of
  // another layer, whose bias goes behind the sum as well (attention and MLP side by side in
  // GPT-J).
  bool isProduct(Value value) const {
    auto linear = withoutScale(value).getDefiningOp<ir::LinearOp>();
    if (!linear || !values_.parameters.contains(linear.getWeight())) return false;
    if (!linear.getBias()) return true;
    return linear.getResult() == value && value.hasOneUse() && isSplitByRows(linear);
  }

  bool isSplitByRows(ir::LinearOp linear) const {
    auto parameter = values_.parameters.find(linear.getWeight());
    const int64_t rows = linear.getTransposeWeight() ? 1 : 0;
    return parameter != values_.parameters.end() &&
           cuts_.count({nameOf(parameter->second), rows}) > 0;
  }

  mlir::func::FuncOp main_;
  SegmentValues values_;
  std::set<std::pair<std::string, int64_t>> cuts_;  // of parameters, by symbol, along dimensions
};

struct AddBiasesLast : StrategyPass<impl::AddBiasesLastBase<AddBiasesLast>> {
  using StrategyPass::StrategyPass;

  mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) override {
    if (mlir::func::FuncOp main = ir::mainOfOneBlock(module)) BiasMover(main, strategy).run();
    return mlir::success();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createAddBiasesLast(Strategy strategy) {
  return std::make_unique<AddBiasesLast>(std::move(strategy));
}

}  // namespace oriel
