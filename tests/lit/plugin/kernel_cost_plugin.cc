// A pass plugin as one would write it outside of this repository: it sees Oriel's headers, and
// finds the definitions in the oriel-opt that loads it.
//
//   oriel-opt model.mlir --load-pass-plugin=kernel_cost_plugin.so --test-kernel-cost
#include "ir/interfaces/interfaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

namespace {

// Remarks on each op that has a kernel: its name and its floating-point operations.
struct KernelCost : mlir::PassWrapper<KernelCost, mlir::OperationPass<mlir::func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KernelCost)

  llvm::StringRef getArgument() const override { return "test-kernel-cost"; }
  llvm::StringRef getDescription() const override { return "Remarks on kernels and their cost"; }

  void runOnOperation() override {
    getOperation().walk([](mlir::Operation* op) {
      auto kernel = llvm::dyn_cast<oriel::ir::KernelOpInterface>(op);
      auto cost = llvm::dyn_cast<oriel::ir::CostOpInterface>(op);
      if (!kernel || !cost) return;
      op->emitRemark("kernel ") << kernel.getKernelName() << ", " << cost.getFlops() << " flops";
    });
  }
};

}  // namespace

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "kernel_cost", "1",
          [] { mlir::PassRegistration<KernelCost>(); }};
}
