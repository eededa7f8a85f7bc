// Passes that make launches of generated code.
#ifndef ORIEL_PASSES_GENERATE_PASSES_TD
#define ORIEL_PASSES_GENERATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormGenerated : Pass<"oriel-form-generated", "::mlir::ModuleOp"> {
  let summary = "Joins chains of pointwise ops to launches of generated code";
  let description = [{
    Pointwise ops of one shape that say how they compute an element (ScalarOpInterface) become one
    `exec.generated` with those of their operands' producers that are such ops, too. A reduction
    over the last dimensions (RowReductionOpInterface) joins them, and with it ops on one value for
    each row. It stands
    where the last of them stood, so nothing in between may use what the others make. Values that
    are used elsewhere are further results. Ops that partition has cut join if they are cut alike,
    and the launch has a rule made of theirs.

    Bits stay what they were, but for ops that are approximated (`exp`, activations): their own
    kernels may have other last bits. Such an op becomes an `exec.generated` alone, too, so that it
    has the same bits wherever it stands: when it is computed again, for instance.

    Where something runs between two ops, they join only if values then take no more memory.

    ```mlir
    %0 = oriel.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = oriel.cast %0 : (tensor<8xf32>) -> tensor<8xbf16>
    // →
    %1 = exec.generated(%a, %b) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xbf16> {
    ^bb0(%x: tensor<8xf32>, %y: tensor<8xf32>):
      %2 = oriel.add %x, %y : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %3 = oriel.cast %2 : (tensor<8xf32>) -> tensor<8xbf16>
      exec.yield %3 : tensor<8xbf16>
    }
    ```
  }];
  let dependentDialects = ["::oriel::exec::ExecDialect"];
}

def LowerGenerated : Pass<"oriel-lower-generated", "::mlir::ModuleOp"> {
  let summary = "Lowers the linalg form of generated kernels for a target";
  let description = [{
    Each function of the module is one `linalg.generic` on whole tensors in memory. For `host` it
    gets the range of the outermost dimension that a call computes; for `cuda` it becomes a kernel
    in a `gpu.module`, in blocks of 256 threads, each for as many neighbours along the innermost
    loop as `oriel.thread_elements` of the function says, or for one. Both end in the llvm dialect, with bare
    pointers for tensors.

    Or it is some that reduce rows, into memory that has been filled, and others that take what they
    have reduced. For `host` it gets a range of rows; for `cuda` a block takes a row, or several short
    ones. Both combine in the same order.

    ```mlir
    func.func @k(%a: memref<8xf32>, %b: memref<8xf32>) {
      linalg.generic {..} ins(%a : memref<8xf32>) outs(%b : memref<8xf32>) {..}
      return
    }
    // → host
    llvm.func @k(%a: !llvm.ptr, %b: !llvm.ptr, %begin: i64, %end: i64) {..}
    ```
  }];
  let options = [Option<"target", "target", "std::string", /*default=*/"\"host\"",
                        "host or cuda">];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::affine::AffineDialect", "::mlir::vector::VectorDialect"
  ];
}

#endif
