// What holds for every op of the dialect, asked of the registry and not of a list.
#include "gtest/gtest.h"
#include "ir/oriel/oriel.h"
#include "mlir/IR/MLIRContext.h"

namespace oriel::ir {
namespace {

std::vector<mlir::RegisteredOperationName> AllOps(mlir::MLIRContext& context) {
  context.loadDialect<OrielDialect>();
  std::vector<mlir::RegisteredOperationName> ops;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations()) {
    if (name.getDialectNamespace() == OrielDialect::getDialectNamespace()) ops.push_back(name);
  }
  return ops;
}

TEST(InterfacesTest, EveryOpThatComputesHasCostAndKernel) {
  mlir::MLIRContext context;
  int computing = 0;
  for (mlir::RegisteredOperationName op : AllOps(context)) {
    if (!op.hasInterface<mlir::MemoryEffectOpInterface>()) continue;
    ++computing;
    EXPECT_TRUE(op.hasInterface<CostOpInterface>()) << op.getStringRef().str();
    EXPECT_TRUE(op.hasInterface<KernelOpInterface>()) << op.getStringRef().str();
  }
  EXPECT_GT(computing, 0);
}

TEST(InterfacesTest, EveryOpThatComputesCarriesItsOrigin) {
  mlir::MLIRContext context;
  for (mlir::RegisteredOperationName op : AllOps(context)) {
    if (!op.hasInterface<CostOpInterface>()) continue;
    EXPECT_TRUE(llvm::is_contained(op.getAttributeNames(), "origin")) << op.getStringRef().str();
  }
}

TEST(InterfacesTest, EveryOpWithAGradPartnerIsDifferentiable) {
  mlir::MLIRContext context;
  int partners = 0;
  for (mlir::RegisteredOperationName op : AllOps(context)) {
    llvm::StringRef forward = op.getStringRef();
    if (!forward.consume_back("_grad")) continue;
    // What `lower` makes of ops was differentiated before.
    if (!op.hasInterface<ShardableOpInterface>()) continue;
    // Some have one derivative op per operand: linear_weight_grad, conv_input_grad.
    for (llvm::StringRef suffix : {"_input", "_weight"}) forward.consume_back(suffix);
    ++partners;
    auto partner = mlir::RegisteredOperationName::lookup(forward, &context);
    ASSERT_TRUE(partner) << op.getStringRef().str();
    EXPECT_TRUE(partner->hasInterface<DifferentiableOpInterface>()) << forward.str();
  }
  EXPECT_GT(partners, 0);
}

TEST(InterfacesTest, CountsDoNotOverflow) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(boundedProduct({kMax, 2}), kMax);
  EXPECT_EQ(boundedProduct({kMax, kMax, 0}), 0);
  EXPECT_EQ(elementCount({2, 3}), 6);
  mlir::MLIRContext context;
  mlir::Builder builder(&context);
  auto huge = mlir::RankedTensorType::get({kMax}, builder.getF32Type());
  EXPECT_EQ(typeBytes(huge), kMax);
  EXPECT_EQ(typesBytes({huge, huge}), kMax);
}

TEST(InterfacesTest, BytesAreWholeBytesPerElement) {
  mlir::MLIRContext context;
  mlir::Builder builder(&context);
  EXPECT_EQ(typeBytes(mlir::RankedTensorType::get({3}, builder.getI1Type())), 3);
  EXPECT_EQ(typeBytes(mlir::RankedTensorType::get({3}, builder.getBF16Type())), 6);
  EXPECT_EQ(typeBytes(builder.getF32Type()), 0);
}

}  // namespace
}  // namespace oriel::ir
