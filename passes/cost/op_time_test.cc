#include "passes/cost/op_time.h"

#include "gtest/gtest.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

namespace oriel {
namespace {

class OpTimeTest : public testing::Test {
 protected:
  OpTimeTest() { context_.loadDialect<ir::OrielDialect, mlir::func::FuncDialect>(); }

  // Seconds of all ops of a function with these arguments.
  double SecondsOf(const std::string& arguments, const std::string& ops) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(" + arguments + ") {\n" + ops + "\nreturn\n}", &context_);
    EXPECT_TRUE(module) << ops;
    if (!module) return 0;
    double sum = 0;
    module->walk([&](mlir::Operation* op) { sum += OpTimes(op).seconds(op); });
    return sum;
  }

  mlir::MLIRContext context_;
};

TEST_F(OpTimeTest, ASumInAProductIsCheaperThanOneBehindIt) {
  const std::string arguments =
      "%x: tensor<4096x4096xbf16>, %y: tensor<4096x4096xbf16>, %sum: tensor<4096x4096xf32>";
  const std::string product =
      "%0 = oriel.linear_weight_grad %x, %y : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> "
      "tensor<4096x4096xf32>";
  const double alone = SecondsOf(arguments, product);
  const double behind =
      SecondsOf(arguments, product +
                               "\n%1 = oriel.add %sum, %0 : (tensor<4096x4096xf32>, "
                               "tensor<4096x4096xf32>) -> tensor<4096x4096xf32>");
  const double in =
      SecondsOf(arguments,
                "%0 = oriel.linear_weight_grad_add %x, %y, %sum : (tensor<4096x4096xbf16>, "
                "tensor<4096x4096xbf16>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>");
  EXPECT_GT(in, alone);
  EXPECT_LT(in, alone + (behind - alone) / 4);
}

// Its cotangent and the logsumexp are f32 whatever is multiplied.
TEST_F(OpTimeTest, AProductIsOfTheTypeThatIsMultiplied) {
  const auto seconds = [&](const std::string& type) {
    const std::string input = "tensor<4096x1024x" + type + ">";
    const std::string weight = "tensor<1024x32000x" + type + ">";
    return SecondsOf(
        "%g: tensor<f32>, %x: " + input + ", %w: " + weight +
            ", %labels: tensor<4096xi64>, %lse: tensor<4096xf32>",
        "%0:2 = oriel.linear_cross_entropy_grad %g, %x, %w, %labels, %lse : (tensor<f32>, " +
            input + ", " + weight + ", tensor<4096xi64>, tensor<4096xf32>) -> (" + input + ", " +
            weight + ")");
  };
  EXPECT_LT(seconds("bf16"), 0.6 * seconds("f32"));
}

}  // namespace
}  // namespace oriel
