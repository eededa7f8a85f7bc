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
  int computing = 0;
  for (mlir::RegisteredOperationName op : AllOps(context)) {
    if (!op.hasInterface<CostOpInterface>()) continue;
    ++computing;
    EXPECT_TRUE(llvm::is_contained(op.getAttributeNames(), "origin")) << op.getStringRef().str();
  }
  EXPECT_GT(computing, 0);
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

TEST(InterfacesTest, RuleThatDoesNotDescribeTheOpSaysWhy) {
  mlir::MLIRContext context;
  mlir::Builder builder(&context);
  const mlir::Type matrix = mlir::RankedTensorType::get({4, 6}, builder.getF32Type());
  const ShardingRule good{
      {{4, FactorKind::kParallel}, {6, FactorKind::kSum}}, {{{0}, {1}}}, {{{0}, {}}}, {{0}}};
  auto why = [&](auto change) {
    ShardingRule rule = good;
    change(rule);
    return misfitOf(rule, {matrix}, {matrix}).value_or("fits");
  };
  EXPECT_EQ(why([](ShardingRule&) {}), "fits");
  EXPECT_EQ(why([](ShardingRule& r) { r.operands.clear(); }), "describes 0 operands, the op has 1");
  EXPECT_EQ(why([](ShardingRule& r) {
              r.results.push_back({{}, {}});
            }),
            "describes 2 results, the op has 1");
  EXPECT_EQ(why([](ShardingRule& r) { r.operands[0].pop_back(); }),
            "says that operand 0 has 1 dimensions, not 2");
  EXPECT_EQ(why([](ShardingRule& r) { r.results[0][1] = {2}; }),
            "gives result 0 the factor 2, of 2");
  EXPECT_EQ(why([](ShardingRule& r) {
              r.results[0] = {{}, {0}};
            }),
            "makes dimension 1 of result 0 of pieces of 4 elements, which don't divide 6");
  EXPECT_EQ(why([](ShardingRule& r) {
              r.factors.push_back({1, FactorKind::kParallel});
              r.operands[0][0] = {2, 2};
            }),
            "gives operand 0 the factor 2 twice: an op splits by it in one of its dimensions only; "
            "make the other one's a factor of its own, or whole");
  EXPECT_EQ(why([](ShardingRule& r) { r.results[0][0] = {}; }),
            "has the parallel factor 0 in operands and in no result: what is summed over is a sum "
            "(or a maximum, or steps)");
  // [4, 6] as [2, 12]: what of a dimension is no factor is whole.
  EXPECT_EQ(why([](ShardingRule& r) { r.factors[0].size = 2; }), "fits");
  EXPECT_EQ(why([](ShardingRule& r) { r.linear[0][0] = 1; }), "is linear in operand 1, of 1");
}

}  // namespace
}  // namespace oriel::ir
