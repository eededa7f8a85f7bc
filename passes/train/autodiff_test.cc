#include "passes/train/autodiff.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/train/vjp_function.h"

namespace oriel {
namespace {

// An op as a plugin may bring it: its derivative says nothing of its operands.
struct SilentVjp
    : ir::DifferentiableOpInterface::ExternalModel<SilentVjp, mlir::UnrealizedConversionCastOp> {
  mlir::LogicalResult buildVjp(mlir::Operation*, mlir::OpBuilder&, llvm::ArrayRef<mlir::Value>,
                               llvm::ArrayRef<bool>, llvm::SmallVectorImpl<mlir::Value>&) const {
    return mlir::success();
  }
};

TEST(AutodiffTest, VjpThatLeavesOperandsOutIsAnError) {
  mlir::MLIRContext context;
  context.loadDialect<mlir::func::FuncDialect, ir::OrielDialect>();
  mlir::UnrealizedConversionCastOp::attachInterface<SilentVjp>(context);
  std::string error;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic& d) { error = d.str(); });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(R"(
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = builtin.unrealized_conversion_cast %x : tensor<2xf32> to tensor<2xf32>
      return %0 : tensor<2xf32>
    })",
                                                        &context);
  ASSERT_TRUE(module);
  EXPECT_TRUE(failed(buildVjpFunction(module->lookupSymbol<mlir::func::FuncOp>("f"), {0})));
  EXPECT_EQ(error,
            "'builtin.unrealized_conversion_cast' op built 0 cotangents for 1 operands: one is "
            "expected for each, null where it is zero or not needed");
}

}  // namespace
}  // namespace oriel
