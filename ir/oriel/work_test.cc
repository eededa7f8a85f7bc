// The work of ops against their floating-point operations, and attention under masks.
#include "ir/interfaces/work.h"

#include "gtest/gtest.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace oriel::ir {
namespace {

class WorkTest : public testing::Test {
 protected:
  WorkTest() { context_.loadDialect<OrielDialect, mlir::func::FuncDialect>(); }

  // The op of a function with these arguments.
  WorkOpInterface Parse(const std::string& arguments, const std::string& op) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(" + arguments + ") {\n" + op + "\nreturn\n}", &context_);
    EXPECT_TRUE(module_) << op;
    if (!module_) return {};
    auto function = *module_->getOps<mlir::func::FuncOp>().begin();
    return llvm::dyn_cast<WorkOpInterface>(function.getBody().front().front());
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

TEST_F(WorkTest, ProductsAreTheFlops) {
  const std::pair<const char*, const char*> ops[] = {
      {"%a: tensor<5x2x3xf32>, %b: tensor<5x3x4xf32>",
       "%0 = oriel.matmul %a, %b : (tensor<5x2x3xf32>, tensor<5x3x4xf32>) -> tensor<5x2x4xf32>"},
      {"%a: tensor<5x2x3xf32>, %b: tensor<4x3xf32>",
       "%0 = oriel.linear %a, %b {transpose_weight = true} : (tensor<5x2x3xf32>, tensor<4x3xf32>) "
       "-> tensor<5x2x4xf32>"},
      {"%a: tensor<5x2x4xf32>, %b: tensor<5x2x3xf32>",
       "%0 = oriel.linear_weight_grad %a, %b : (tensor<5x2x4xf32>, tensor<5x2x3xf32>) -> "
       "tensor<4x3xf32>"},
      {"%a: tensor<2x3x28x28xf32>, %b: tensor<64x3x4x4xf32>",
       "%0 = oriel.conv %a, %b {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, "
       "dilations = array<i64: 1, 1>} : (tensor<2x3x28x28xf32>, tensor<64x3x4x4xf32>) -> "
       "tensor<2x64x7x7xf32>"},
      {"%a: tensor<2x64x7x7xf32>, %b: tensor<2x3x28x28xf32>",
       "%0 = oriel.conv_weight_grad %a, %b {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, "
       "0>, dilations = array<i64: 1, 1>} : (tensor<2x64x7x7xf32>, tensor<2x3x28x28xf32>) -> "
       "tensor<64x3x4x4xf32>"},
  };
  for (const auto& [arguments, text] : ops) {
    WorkOpInterface op = Parse(arguments, text);
    ASSERT_TRUE(op) << text;
    ASSERT_EQ(op.getWork().products.size(), 1) << text;
    EXPECT_EQ(workFlops(op), llvm::cast<CostOpInterface>(*op).getFlops()) << text;
    EXPECT_EQ(modelFlops(op), workFlops(op)) << text;
  }
}

TEST_F(WorkTest, AProductHasItsShape) {
  WorkOpInterface op = Parse("%a: tensor<5x2x4xf32>, %b: tensor<5x2x3xf32>",
                             "%0 = oriel.linear_weight_grad %a, %b : (tensor<5x2x4xf32>, "
                             "tensor<5x2x3xf32>) -> tensor<4x3xf32>");
  ASSERT_TRUE(op);
  const MatrixProduct product = op.getWork().products.front();
  EXPECT_EQ(product.rows, 4);
  EXPECT_EQ(product.columns, 3);
  EXPECT_EQ(product.depth, 10);
}

TEST_F(WorkTest, AttentionCountsWhatAMaskLeaves) {
  auto flops = [&](const char* attributes) {
    WorkOpInterface op =
        Parse("%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>, %v: tensor<2x2x8x16xf32>",
              std::string("%0:2 = oriel.attention %q, %k, %v {scale = 0.25") + attributes +
                  "} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) -> "
                  "(tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)");
    return op ? workFlops(op) : -1;
  };
  const double pair = 2 * 2 * 4 * (16 + 16);  // flops for each of a query's keys
  EXPECT_EQ(flops(""), pair * 8 * 8);
  EXPECT_EQ(flops(", causal = true"), pair * 36);  // 1 + 2 + .. + 8
  EXPECT_EQ(flops(", causal = true, window = 2"), pair * 16);
}

TEST_F(WorkTest, AGradientComputesScoresAgainThatTheModelDoesNot) {
  WorkOpInterface op = Parse(
      "%d: tensor<1x2x4x8xf32>, %q: tensor<1x2x4x8xf32>, %k: tensor<1x2x4x8xf32>, %v: "
      "tensor<1x2x4x8xf32>, %o: tensor<1x2x4x8xf32>, %l: tensor<1x2x4xf32>",
      "%0:3 = oriel.attention_grad %d, %q, %k, %v, %o, %l {scale = 0.25} : (tensor<1x2x4x8xf32>, "
      "tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, "
      "tensor<1x2x4xf32>) -> (tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>, tensor<1x2x4x8xf32>)");
  ASSERT_TRUE(op);
  const double product = 2. * 2 * 4 * 4 * 8;
  EXPECT_EQ(workFlops(op), 5 * product);
  EXPECT_EQ(modelFlops(op), 4 * product);
}

}  // namespace
}  // namespace oriel::ir
