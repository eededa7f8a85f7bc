#include <optional>

#include "passes/strategize/passes.h"
#include "passes/strategize/segment_values.h"
#include "passes/strategize/strategy_option.h"

namespace oriel {

#define GEN_PASS_DEF_ADDBIASESLAST
#include "passes/strategize/passes.h.inc"

namespace {

using mlir::Value;

mlir::RankedTensorType typeOf(Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

// What a number scales, or the value itself.
Value withoutScale(Value value) {
  auto scale = value.getDefiningOp<ir::MulOp>();
  if (!scale) return value;
  if (typeOf(scale.getRhs()).getRank() == 0) return scale.getLhs();
  return typeOf(scale.getLhs()).getRank() == 0 ? scale.getRhs() : value;
}

// Whether it is a product with a parameter: one that is scaled, as an adapter's, or that of another
// layer, whose bias goes behind the sum as well (attention and MLP side by side in GPT-J).
bool isProduct(Value value, const SegmentValues& values) {
  auto linear = withoutScale(value).getDefiningOp<ir::LinearOp>();
  if (!linear || !values.parameters.contains(linear.getWeight())) return false;
  return !linear.getBias() || (linear.getResult() == value && value.hasOneUse());
}

// The sum of a linear layer that has a bias, and that nothing else reads, and of a product.
ir::AddOp sumWithProduct(ir::LinearOp linear, const SegmentValues& values) {
  if (!linear.getBias() || !linear->hasOneUse()) return {};
  auto sum = llvm::dyn_cast<ir::AddOp>(*linear->user_begin());
  if (!sum || sum.getType() != linear.getType()) return {};
  Value other = sum.getLhs() == linear.getResult() ? sum.getRhs() : sum.getLhs();
  return other.getType() == linear.getType() && isProduct(other, values) ? sum : ir::AddOp();
}

struct AddBiasesLast : impl::AddBiasesLastBase<AddBiasesLast> {
  using AddBiasesLastBase::AddBiasesLastBase;
  explicit AddBiasesLast(Strategy strategy) : given(std::move(strategy)) {}

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    if (failed(readStrategyOption(module, strategy, given))) return signalPassFailure();
    auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
    // `train` says what is wrong with one that it can't read.
    if (!main || !main.getBody().hasOneBlock()) return;
    const SegmentValues values = readValues(main);
    for (auto linear : llvm::make_early_inc_range(main.getOps<ir::LinearOp>())) {
      ir::AddOp sum = sumWithProduct(linear, values);
      if (!sum || !isSplit(linear, values)) continue;
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

  // Whether tensor parallelism may split it.
  bool isSplit(ir::LinearOp linear, const SegmentValues& values) const {
    auto parameter = values.parameters.find(linear.getWeight());
    if (parameter == values.parameters.end()) return false;
    const std::string name = ir::ParameterOp(parameter->second).getOnnxName().str();
    return given->commonTensorParallel(moduleOf(*given, name)) > 1;
  }

  std::optional<Strategy> given;
};

}  // namespace

std::unique_ptr<mlir::Pass> createAddBiasesLast(Strategy strategy) {
  return std::make_unique<AddBiasesLast>(std::move(strategy));
}

}  // namespace oriel
