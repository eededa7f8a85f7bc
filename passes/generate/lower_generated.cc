#include "llvm/ADT/STLExtras.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/generate/lower_elements.h"
#include "passes/generate/lower_rows.h"
#include "passes/generate/passes.h"

namespace oriel {

#define GEN_PASS_DEF_LOWERGENERATED
#include "passes/generate/passes.h.inc"

namespace {

using mlir::OpBuilder;
using mlir::OpFoldResult;
using mlir::Value;
namespace arith = mlir::arith;
namespace linalg = mlir::linalg;
namespace memref = mlir::memref;

// The one linalg.generic of a function in the linalg form; null if it is in another.
linalg::GenericOp bodyOf(mlir::func::FuncOp function) {
  if (!llvm::hasSingleElement(function.getBody())) return {};
  auto& ops = function.getBody().front().getOperations();
  auto body = llvm::dyn_cast<linalg::GenericOp>(ops.front());
  if (ops.size() != 2 || !body || body.getNumLoops() == 0) return {};
  const bool simple = llvm::all_of(body.getIndexingMapsArray(), [](mlir::AffineMap map) {
    return map.isProjectedPermutation() && !map.isEmpty();
  });
  const bool placed = llvm::all_of(body->getOperandTypes(), [](mlir::Type type) {
    auto memory = llvm::dyn_cast<mlir::MemRefType>(type);
    return memory && memory.hasStaticShape() && memory.getLayout().isIdentity();
  });
  return simple && placed && body.getNumParallelLoops() == body.getNumLoops() ? body
                                                                              : linalg::GenericOp();
}

// The function gets a range of the outermost loop: each operand becomes the piece that it reaches.
void toRange(mlir::func::FuncOp function, linalg::GenericOp body) {
  OpBuilder builder(body);
  const mlir::Location loc = function.getLoc();
  mlir::Type index = builder.getIndexType();
  const unsigned count = function.getNumArguments();
  (void)function.insertArgument(count, index, {}, loc);
  (void)function.insertArgument(count + 1, index, {}, loc);
  Value begin = function.getArgument(count), end = function.getArgument(count + 1);
  Value length = arith::SubIOp::create(builder, loc, end, begin);
  for (auto [operand, map] : llvm::zip_equal(body->getOpOperands(), body.getIndexingMapsArray())) {
    if (map.getNumResults() == 0) continue;
    llvm::SmallVector<OpFoldResult> offset, size, stride;
    for (mlir::AffineExpr dim : map.getResults()) {
      const unsigned loop = llvm::cast<mlir::AffineDimExpr>(dim).getPosition();
      offset.push_back(loop == 0 ? OpFoldResult(begin) : builder.getIndexAttr(0));
      size.push_back(loop == 0 ? OpFoldResult(length)
                               : builder.getIndexAttr(body.getStaticLoopRanges()[loop]));
      stride.push_back(builder.getIndexAttr(1));
    }
    operand.set(
        memref::SubViewOp::create(builder, loc, operand.get(), offset, size, stride).getResult());
  }
}

// What convert-gpu-to-nvvm would call libdevice for, though the processor has it.
void useIntrinsics(mlir::Operation* kernel) {
  llvm::SmallVector<mlir::Operation*> ops;
  kernel->walk([&](mlir::Operation* op) {
    if (llvm::isa<mlir::math::AbsFOp, mlir::math::SqrtOp>(op)) ops.push_back(op);
  });
  for (mlir::Operation* op : ops) {
    OpBuilder builder(op);
    const char* name = llvm::isa<mlir::math::AbsFOp>(op) ? "llvm.fabs" : "llvm.sqrt";
    auto call =
        mlir::LLVM::CallIntrinsicOp::create(builder, op->getLoc(), op->getResult(0).getType(),
                                            builder.getStringAttr(name), op->getOperands());
    op->replaceAllUsesWith(call->getResults());
    op->erase();
  }
}

struct LowerGenerated : impl::LowerGeneratedBase<LowerGenerated> {
  using LowerGeneratedBase::LowerGeneratedBase;

  // convert-gpu-to-nvvm asks dialects how they are converted.
  void getDependentDialects(mlir::DialectRegistry& registry) const override {
    LowerGeneratedBase::getDependentDialects(registry);
    mlir::arith::registerConvertArithToLLVMInterface(registry);
    mlir::cf::registerConvertControlFlowToLLVMInterface(registry);
    mlir::index::registerConvertIndexToLLVMInterface(registry);
    mlir::registerConvertFuncToLLVMInterface(registry);
    mlir::registerConvertMemRefToLLVMInterface(registry);
    mlir::registerConvertNVVMToLLVMInterface(registry);
    mlir::vector::registerConvertVectorToLLVMInterface(registry);
  }

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    const bool cuda = target == "cuda";
    if (!cuda && target != "host") {
      module.emitError("no code is generated for the target ") << target << "; give host or cuda";
      return signalPassFailure();
    }
    mlir::gpu::GPUModuleOp kernels;
    if (cuda) {
      auto builder = OpBuilder::atBlockEnd(module.getBody());
      module->setAttr(mlir::gpu::GPUDialect::getContainerModuleAttrName(), builder.getUnitAttr());
      kernels = mlir::gpu::GPUModuleOp::create(builder, module.getLoc(), "generated");
    }
    for (auto function : llvm::make_early_inc_range(module.getOps<mlir::func::FuncOp>())) {
      if (isRowForm(function)) {
        cuda ? rowsToKernel(function, kernels) : rowsToRange(function);
        continue;
      }
      linalg::GenericOp body = bodyOf(function);
      if (!body) {
        function.emitOpError(
            "is no linalg.generic on whole tensors in memory, and no reductions of "
            "rows");
        return signalPassFailure();
      }
      auto width = function->getAttrOfType<mlir::IntegerAttr>(kThreadElements);
      const int64_t columns = body.getStaticLoopRanges().back();
      if (width && (width.getInt() < 1 || columns % width.getInt() != 0)) {
        function.emitOpError("has threads of ")
            << width.getInt() << " elements, which do not divide the innermost loop of " << columns;
        return signalPassFailure();
      }
      if (cuda) {
        elementsToKernel(function, body, kernels);
      } else {
        toRange(function, body);
      }
    }
    mlir::OpPassManager passes(mlir::ModuleOp::getOperationName());
    if (cuda) {
      useIntrinsics(kernels);
      addCuda(passes.nest<mlir::gpu::GPUModuleOp>());
    } else {
      addHost(passes);
    }
    if (failed(runPipeline(passes, module))) signalPassFailure();
  }

  template <typename Function>
  static void addLoops(mlir::OpPassManager& passes) {
    mlir::OpPassManager& function = passes.nest<Function>();
    function.addPass(mlir::createConvertLinalgToLoopsPass());
    // Loops of one run go.
    function.addPass(mlir::createCanonicalizerPass());
    passes.addPass(memref::createExpandStridedMetadataPass());
    passes.addPass(mlir::createLowerAffinePass());
    passes.addPass(mlir::createSCFToControlFlowPass());
  }

  static void addHost(mlir::OpPassManager& passes) {
    addLoops<mlir::func::FuncOp>(passes);
    passes.addPass(mlir::createFinalizeMemRefToLLVMConversionPass());
    passes.addPass(mlir::createConvertMathToLLVMPass());
    passes.addPass(mlir::createArithToLLVMConversionPass());
    mlir::ConvertFuncToLLVMPassOptions options;
    options.useBarePtrCallConv = true;
    passes.addPass(mlir::createConvertFuncToLLVMPass(options));
    passes.addPass(mlir::createConvertControlFlowToLLVMPass());
    passes.addPass(mlir::createReconcileUnrealizedCastsPass());
  }

  static void addCuda(mlir::OpPassManager& passes) {
    addLoops<mlir::gpu::GPUFuncOp>(passes);
    mlir::ConvertGpuOpsToNVVMOpsOptions options;
    options.useBarePtrCallConv = true;
    passes.addPass(mlir::createConvertGpuOpsToNVVMOps(options));
    passes.addPass(mlir::createReconcileUnrealizedCastsPass());
  }
};

}  // namespace
}  // namespace oriel
