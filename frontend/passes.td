// Passes of the frontend.
#ifndef ORIEL_FRONTEND_PASSES_TD
#define ORIEL_FRONTEND_PASSES_TD

include "mlir/Pass/PassBase.td"

def OrielSpecialize : Pass<"oriel-specialize", "mlir::ModuleOp"> {
  let summary = "Folds constants, removes what is not used, and checks the phase's contract";
  let description = [{
    Folds everything that follows from constants and static shapes, removes dead ops, merges
    equal ones, and drops parameters that no op reads. Inputs stay, read or not: the data holds
    them. After it every tensor has a static shape and only `oriel` and `func` ops are left; what
    breaks that is an error that names the ONNX node.

    Example:
    ```mlir
    oriel.parameter @p0 {onnx_name = "w", type = tensor<4xf32>}
    oriel.parameter @unused {onnx_name = "u", type = tensor<4xf32>}
    func.func @main(%x: tensor<4xf32> {..}, %w: tensor<4xf32> {..}, %u: tensor<4xf32> {..})
        -> (tensor<4xf32> {..}) {
      %0 = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
      %1 = oriel.exp %0 : (tensor<f32>) -> tensor<f32>
      %2 = oriel.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %3 = oriel.mul %2, %1 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      return %3 : tensor<4xf32>
    }
    // becomes
    oriel.parameter @p0 {onnx_name = "w", type = tensor<4xf32>}
    func.func @main(%x: tensor<4xf32> {..}, %w: tensor<4xf32> {..}) -> (tensor<4xf32> {..}) {
      %0 = oriel.constant {value = dense<2.71828175> : tensor<f32>} : () -> tensor<f32>
      %1 = oriel.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %2 = oriel.mul %1, %0 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      return %2 : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::oriel::ir::OrielDialect", "::mlir::func::FuncDialect"];
}

#endif
