#include "passes/strategize/sharding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mlir/IR/Builders.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;

Grid testGrid() {
  Grid grid;
  grid.axes = {{"a0", 2}, {"a1", 3}, {"a2", 4}};
  return grid;
}

class ShardingTest : public ::testing::Test {
 protected:
  ShardingTest() { context_.loadDialect<ir::OrielDialect>(); }

  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, mlir::Builder(&context_).getF32Type());
  }

  std::string problemOf(const Sharding& sharding, llvm::ArrayRef<int64_t> shape) {
    std::string why;
    EXPECT_TRUE(failed(sizes_.fromAttr(sizes_.toAttr(&context_, sharding), type(shape), why)));
    return why;
  }

  mlir::MLIRContext context_;
  AxisSizes sizes_{testGrid()};
};

TEST_F(ShardingTest, AttributeRoundTrip) {
  for (const Sharding& sharding : {Sharding{{{0}, {2, 1}}, {}, {}}, Sharding{{{}, {}}, {0, 2}, {1}},
                                   Sharding::replicated(2)}) {
    std::string why;
    mlir::FailureOr<Sharding> read =
        sizes_.fromAttr(sizes_.toAttr(&context_, sharding), type({4, 24}), why);
    ASSERT_TRUE(succeeded(read)) << why;
    EXPECT_TRUE(*read == sharding) << sizes_.text(*read);
  }
}

// A file may list pending axes in any order; here they are sorted.
TEST_F(ShardingTest, PendingAxesAreSorted) {
  std::string why;
  mlir::FailureOr<Sharding> read =
      sizes_.fromAttr(sizes_.toAttr(&context_, {{{}}, {2, 0}, {}}), type({4}), why);
  ASSERT_TRUE(succeeded(read)) << why;
  EXPECT_THAT(read->sum, ElementsAre(0, 2));
}

TEST_F(ShardingTest, AttributesThatDoNotFit) {
  EXPECT_EQ(problemOf({{{0}}, {}, {}}, {4, 4}), "has 1 dimensions, the tensor 2");
  EXPECT_EQ(problemOf({{{1}}, {}, {}}, {4}), "does not divide the tensor");
  Grid larger = testGrid();
  larger.axes.push_back({"a3", 2});
  std::string why;
  ir::ShardingAttr attribute = AxisSizes(larger).toAttr(&context_, {{{3}}, {}, {}});
  EXPECT_TRUE(failed(sizes_.fromAttr(attribute, type({4}), why)));
  EXPECT_EQ(why, "names the axis a3, which the grid lacks");
}

TEST_F(ShardingTest, Sizes) {
  Sharding sharding{{{0}, {2, 1}}, {}, {}};
  EXPECT_EQ(sizes_.product(sharding.cutting()), 24);
  EXPECT_THAT(sizes_.local({4, 24}, sharding), ElementsAre(2, 2));
  EXPECT_TRUE(sizes_.divides({4, 24}, sharding));
  EXPECT_FALSE(sizes_.divides({4, 20}, sharding));
}

TEST_F(ShardingTest, WhatAnAxisDoes) {
  Sharding sharding{{{2}, {}}, {0}, {}};
  EXPECT_TRUE(sharding.cuts(2));
  EXPECT_FALSE(sharding.cuts(0));
  EXPECT_TRUE(sharding.uses(0));
  EXPECT_FALSE(sharding.uses(1));
  EXPECT_TRUE(sharding.isPending());
  EXPECT_FALSE(sharding.reduced().isPending());
  EXPECT_FALSE(sharding.reduced().isReplicated());
  EXPECT_TRUE(Sharding::replicated(3).isReplicated());
}

TEST_F(ShardingTest, Text) {
  EXPECT_EQ(sizes_.text({{{0, 2}, {}}, {1}, {}}), "[{a0, a2}, {}] sum {a1}");
  EXPECT_EQ(sizes_.text({{}, {}, {0}}), "[] max {a0}");
}

}  // namespace
}  // namespace oriel
