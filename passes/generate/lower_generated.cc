#include "llvm/ADT/STLExtras.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/Passes.h"
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
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/generate/code.h"
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

// Restricts the loops: each operand becomes the piece of `memories` that they reach.
void restrict(linalg::GenericOp body, OpBuilder& builder, mlir::ValueRange memories,
              llvm::ArrayRef<OpFoldResult> firsts, llvm::ArrayRef<OpFoldResult> sizes) {
  for (auto [operand, map, memory] :
       llvm::zip_equal(body->getOpOperands(), body.getIndexingMapsArray(), memories)) {
    llvm::SmallVector<OpFoldResult> offset, size, stride;
    for (mlir::AffineExpr dim : map.getResults()) {
      const unsigned loop = llvm::cast<mlir::AffineDimExpr>(dim).getPosition();
      offset.push_back(firsts[loop]);
      size.push_back(sizes[loop]);
      stride.push_back(builder.getIndexAttr(1));
    }
    if (offset.empty()) {
      operand.set(memory);
      continue;
    }
    operand.set(memref::SubViewOp::create(builder, body.getLoc(), memory, offset, size, stride)
                    .getResult());
  }
}

// The function gets a range of the outermost loop.
void toRange(mlir::func::FuncOp function, linalg::GenericOp body) {
  OpBuilder builder(body);
  const mlir::Location loc = function.getLoc();
  llvm::SmallVector<Value> memories(body->getOperands());
  mlir::Type index = builder.getIndexType();
  const unsigned count = function.getNumArguments();
  (void)function.insertArgument(count, index, {}, loc);
  (void)function.insertArgument(count + 1, index, {}, loc);
  Value begin = function.getArgument(count), end = function.getArgument(count + 1);
  Value length = arith::SubIOp::create(builder, loc, end, begin);
  llvm::SmallVector<OpFoldResult> firsts(body.getNumLoops(), builder.getIndexAttr(0)), sizes;
  for (int64_t size : body.getStaticLoopRanges()) sizes.push_back(builder.getIndexAttr(size));
  firsts[0] = begin;
  sizes[0] = length;
  restrict(body, builder, memories, firsts, sizes);
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

// The function becomes a kernel of `module`, a thread for each element.
void toKernel(mlir::func::FuncOp function, linalg::GenericOp body, mlir::gpu::GPUModuleOp module) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  const mlir::Location loc = function.getLoc();
  auto kernel =
      mlir::gpu::GPUFuncOp::create(builder, loc, function.getSymName(), function.getFunctionType());
  kernel->setAttr(mlir::gpu::GPUDialect::getKernelFuncAttrName(), builder.getUnitAttr());
  kernel.setKnownBlockSizeAttr(builder.getDenseI32ArrayAttr({kThreadsOfBlock, 1, 1}));
  builder.setInsertionPointToStart(&kernel.getBody().front());
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value block = mlir::gpu::BlockIdOp::create(builder, loc, mlir::gpu::Dimension::x);
  Value thread = mlir::gpu::ThreadIdOp::create(builder, loc, mlir::gpu::Dimension::x);
  Value before = arith::MulIOp::create(builder, loc, block, number(kThreadsOfBlock));
  Value element = arith::AddIOp::create(builder, loc, before, thread);
  llvm::SmallVector<int64_t> sizes = body.getStaticLoopRanges();
  const int64_t count = mlir::computeProduct(sizes);
  Value inside =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, element, number(count));
  auto branch = mlir::scf::IfOp::create(builder, loc, inside, /*withElseRegion=*/false);
  mlir::gpu::ReturnOp::create(builder, loc);
  builder.setInsertionPointToStart(branch.thenBlock());
  llvm::SmallVector<OpFoldResult> firsts(sizes.size()), ones(sizes.size(), builder.getIndexAttr(1));
  Value rest = element;
  for (size_t loop = sizes.size(); loop-- > 0;) {
    if (loop == 0) {
      firsts[loop] = rest;
      break;
    }
    Value size = number(sizes[loop]);
    firsts[loop] = arith::RemUIOp::create(builder, loc, rest, size).getResult();
    rest = arith::DivUIOp::create(builder, loc, rest, size);
  }
  llvm::SmallVector<Value> memories;
  for (Value operand : body->getOperands()) {
    memories.push_back(kernel.getArgument(llvm::cast<mlir::BlockArgument>(operand).getArgNumber()));
  }
  auto moved = llvm::cast<linalg::GenericOp>(builder.clone(*body));
  builder.setInsertionPoint(moved);
  restrict(moved, builder, memories, firsts, ones);
  function.erase();
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
      if (cuda) {
        toKernel(function, body, kernels);
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
