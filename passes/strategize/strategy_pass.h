// Passes that go by a strategy: given by the compiler, or read from the file that an option names
// (strategy_option.td).
#ifndef ORIEL_PASSES_STRATEGIZE_STRATEGY_PASS_H_
#define ORIEL_PASSES_STRATEGIZE_STRATEGY_PASS_H_

#include <optional>
#include <string>
#include <utility>

#include "mlir/IR/BuiltinOps.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// Reads the file, unless there is a strategy. Fails with a diagnostic at the module.
mlir::LogicalResult readStrategyOption(mlir::ModuleOp module, const std::string& path,
                                       std::optional<Strategy>& strategy);

// `Base`: the generated base of a pass on modules with StrategyOption.
//
//   struct Annotate : StrategyPass<impl::AnnotateBase<Annotate>> {
//     using StrategyPass::StrategyPass;
//     mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) override;
//   };
template <typename Base>
class StrategyPass : public Base {
 public:
  using Base::Base;
  explicit StrategyPass(Strategy strategy) : given_(std::move(strategy)) {}

  void runOnOperation() final {
    mlir::ModuleOp module = this->getOperation();
    if (failed(readStrategyOption(module, this->strategy, given_)) ||
        failed(run(module, *given_))) {
      this->signalPassFailure();
    }
  }

 protected:
  virtual mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) = 0;

 private:
  std::optional<Strategy> given_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_STRATEGY_PASS_H_
