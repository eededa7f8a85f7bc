#include "passes/propagate/op_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace oriel {
namespace {

using ir::Factor;
using ir::FactorKind;
using ir::ShardingRule;
using ir::TensorFactors;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Grid testGrid() {
  Grid grid;
  for (const char* name : {"a0", "a1", "a2"}) grid.axes.push_back({name, 2});
  return grid;
}

// [b, k], [k, n] -> [b, n]
ShardingRule productRule(int64_t b, int64_t k, int64_t n) {
  ShardingRule rule;
  rule.factors = {{b, FactorKind::kParallel}, {n, FactorKind::kParallel}, {k, FactorKind::kSum}};
  rule.operands = {{{0}, {2}}, {{2}, {1}}};
  rule.results = {{{0}, {1}}};
  rule.linear = {{0}, {1}};
  return rule;
}

// [b, h * d] -> [b, h, d]
ShardingRule reshapeRule(int64_t b, int64_t h, int64_t d) {
  ShardingRule rule;
  rule.factors = {{b}, {h}, {d}};
  rule.operands = {{{0}, {1, 2}}};
  rule.results = {{{0}, {1}, {2}}};
  return rule;
}

Sharding cut(std::initializer_list<AxisList> dims) { return {dims, {}, {}}; }

class OpSplitTest : public ::testing::Test {
 protected:
  std::vector<AxisList> combine(const ShardingRule& rule, llvm::ArrayRef<Proposal> proposals) {
    return combineProposals(rule, sizes_, proposals);
  }

  mlir::MLIRContext context_;
  AxisSizes sizes_{testGrid()};
};

// Samples by one operand, features by the other.
TEST_F(OpSplitTest, ProposalsAddUp) {
  ShardingRule rule = productRule(8, 4, 4);
  EXPECT_THAT(
      combine(rule, {{&rule.operands[0], cut({{0}, {}})}, {&rule.operands[1], cut({{}, {1}})}}),
      ElementsAre(ElementsAre(0), ElementsAre(1), IsEmpty()));
}

TEST_F(OpSplitTest, TheFirstProposalWinsAnAxis) {
  ShardingRule rule = productRule(8, 4, 4);
  Proposal samples{&rule.operands[0], cut({{0}, {}})}, rows{&rule.operands[1], cut({{0}, {}})};
  EXPECT_THAT(combine(rule, {samples, rows}), ElementsAre(ElementsAre(0), IsEmpty(), IsEmpty()));
  EXPECT_THAT(combine(rule, {rows, samples}), ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0)));
}

// Axes that go on where another list ends are added; a list that differs is not.
TEST_F(OpSplitTest, ALaterProposalLengthensAList) {
  ShardingRule rule = productRule(8, 8, 4);
  Proposal one{&rule.operands[0], cut({{}, {0}})}, two{&rule.operands[1], cut({{0, 1}, {}})};
  Proposal other{&rule.operands[1], cut({{2, 1}, {}})};
  EXPECT_THAT(combine(rule, {one, two})[2], ElementsAre(0, 1));
  EXPECT_THAT(combine(rule, {one, other})[2], ElementsAre(0));
}

// An axis that another factor has ends the list: what comes after it would lie elsewhere.
TEST_F(OpSplitTest, ATakenAxisEndsAList) {
  ShardingRule rule = productRule(8, 8, 4);
  Proposal samples{&rule.operands[0], cut({{1}, {}})},
      rows{&rule.operands[1], cut({{0, 1, 2}, {}})};
  EXPECT_THAT(combine(rule, {samples, rows}),
              ElementsAre(ElementsAre(1), IsEmpty(), ElementsAre(0)));
}

// Eight columns in two heads: the first axis cuts heads, the next ones what is in them.
TEST_F(OpSplitTest, InnerFactorsAreCutBehindSingleElements) {
  ShardingRule rule = reshapeRule(4, 2, 4);
  EXPECT_THAT(combine(rule, {{&rule.operands[0], cut({{}, {0, 1, 2}})}}),
              ElementsAre(IsEmpty(), ElementsAre(0), ElementsAre(1, 2)));
}

// With four heads, a cut inside of them alone would leave pieces that are not contiguous.
TEST_F(OpSplitTest, InnerFactorsAreNotCutAlone) {
  ShardingRule rule = reshapeRule(4, 4, 4);
  EXPECT_THAT(combine(rule, {{&rule.results[0], cut({{}, {0}, {1}})}}),
              ElementsAre(IsEmpty(), ElementsAre(0), IsEmpty()));
  EXPECT_THAT(combine(rule, {{&rule.results[0], cut({{}, {0, 1}, {2}})}}),
              ElementsAre(IsEmpty(), ElementsAre(0, 1), ElementsAre(2)));
}

// Three heads do not split over two ranks, and nothing behind them does.
TEST_F(OpSplitTest, WhatDoesNotDivideIsNotCut) {
  ShardingRule rule = reshapeRule(4, 3, 4);
  EXPECT_THAT(combine(rule, {{&rule.operands[0], cut({{1}, {0}})}}),
              ElementsAre(ElementsAre(1), IsEmpty(), IsEmpty()));
}

// A cut that goes for a lack of contiguity in one tensor may break that of another.
TEST_F(OpSplitTest, ContiguityHoldsInAllTensors) {
  ShardingRule rule;
  rule.factors = {{2}, {2}, {2}};
  rule.operands = {{{0, 1}, {2}}};
  rule.results = {{{0}, {1, 2}}};
  // Factor 2 would need factor 1 cut, which would need factor 0 cut.
  EXPECT_THAT(combine(rule, {{&rule.operands[0], cut({{}, {0}})}}),
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_THAT(combine(rule, {{&rule.operands[0], cut({{0, 1}, {2}})}}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST_F(OpSplitTest, WouldCut) {
  ShardingRule rule = productRule(8, 3, 4);
  EXPECT_TRUE(wouldCut(rule, sizes_, {&rule.operands[0], cut({{0}, {}})}, FactorKind::kParallel));
  EXPECT_FALSE(wouldCut(rule, sizes_, {&rule.operands[0], cut({{0}, {}})}, FactorKind::kSum));
  EXPECT_FALSE(wouldCut(rule, sizes_, {&rule.operands[0], cut({{}, {0}})}, FactorKind::kSum));
}

// What is summed over makes the result pending; a pass goes through from operand to result.
TEST_F(OpSplitTest, Tensors) {
  ShardingRule rule = productRule(8, 4, 4);
  OpSplit split{{{0}, {}, {2}}, {{1, 0}}};
  EXPECT_TRUE(split.operand(rule, 0) == (Sharding{{{0}, {2}}, {1}, {}}));
  EXPECT_TRUE(split.operand(rule, 1) == (Sharding{{{2}, {}}, {}, {}}));
  EXPECT_TRUE(split.result(rule, 0) == (Sharding{{{0}, {}}, {1, 2}, {}}));
  EXPECT_THAT(split.pieces(sizes_), ElementsAre(2, 1, 2));
  EXPECT_TRUE(split.cutsAny());
  rule.factors[2].kind = FactorKind::kMax;
  EXPECT_TRUE(split.result(rule, 0) == (Sharding{{{0}, {}}, {1}, {2}}));
}

TEST_F(OpSplitTest, Attribute) {
  ShardingRule rule = productRule(8, 4, 4);
  OpSplit split{{{0, 1}, {}, {}}, {{2, 1}}};
  mlir::Attribute attribute = split.toAttr(&context_, sizes_);
  mlir::FailureOr<OpSplit> read = OpSplit::fromAttr(attribute, rule, sizes_);
  ASSERT_TRUE(succeeded(read));
  EXPECT_TRUE(*read == split);
}

TEST_F(OpSplitTest, AttributeThatDoesNotFit) {
  ShardingRule rule = productRule(8, 4, 4);
  mlir::Builder builder(&context_);
  mlir::ArrayAttr none = builder.getArrayAttr({});
  auto refuses = [&](llvm::ArrayRef<mlir::Attribute> lists) {
    return failed(OpSplit::fromAttr(builder.getArrayAttr(lists), rule, sizes_));
  };
  EXPECT_FALSE(refuses({none, none, none}));
  EXPECT_TRUE(failed(OpSplit::fromAttr({}, rule, sizes_)));
  EXPECT_TRUE(refuses({none, none}));
  EXPECT_TRUE(refuses({none, none, builder.getStringAttr("a0")}));
  EXPECT_TRUE(refuses({none, none, builder.getStrArrayAttr({"a3"})}));
  // Eight pieces of four elements.
  EXPECT_TRUE(refuses({none, builder.getStrArrayAttr({"a0", "a1", "a2"}), none}));
  auto pass = [&](llvm::StringRef axis, int64_t group) {
    return builder.getArrayAttr({builder.getStringAttr(axis), builder.getI64IntegerAttr(group)});
  };
  EXPECT_FALSE(refuses({none, none, none, pass("a0", 1)}));
  EXPECT_TRUE(refuses({none, none, none, pass("a0", 2)}));
  EXPECT_TRUE(refuses({none, none, none, pass("b", 0)}));
  EXPECT_TRUE(refuses({none, none, none, builder.getStrArrayAttr({"a0"})}));
}

}  // namespace
}  // namespace oriel
