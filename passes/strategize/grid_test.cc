#include "passes/strategize/grid.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "mlir/IR/OwningOpRef.h"

namespace oriel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Strategy ofMesh(Mesh mesh) {
  Strategy strategy;
  strategy.mesh = mesh;
  return strategy;
}

std::vector<int64_t> sizesOf(const Grid& grid) {
  std::vector<int64_t> sizes;
  for (const AtomicAxis& axis : grid.axes) sizes.push_back(axis.size);
  return sizes;
}

TEST(Grid, OfOneRankHasNoAxes) {
  Grid grid = gridOf(Strategy());
  EXPECT_THAT(grid.axes, IsEmpty());
  EXPECT_THAT(grid.mesh, IsEmpty());
  EXPECT_EQ(grid.worldSize(), 1);
  EXPECT_EQ(grid.meshAxisSize("dp"), 1);
  EXPECT_THAT(grid.dataAxes(), IsEmpty());
}

TEST(Grid, TensorParallelRanksAreNeighbours) {
  Grid grid = gridOf(ofMesh({2, 3, 4}));
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 3, 4));
  EXPECT_THAT(grid.atomicAxes("dp"), ElementsAre("a0"));
  EXPECT_THAT(grid.atomicAxes("fsdp"), ElementsAre("a1"));
  EXPECT_THAT(grid.atomicAxes("tp"), ElementsAre("a2"));
  EXPECT_THAT(grid.dataAxes(), ElementsAre("a0", "a1"));
  EXPECT_THAT(grid.zeroAxes(), ElementsAre("a1"));
  EXPECT_EQ(grid.worldSize(), 24);
}

TEST(Grid, ContextParallelRanksAreAroundTensorParallelOnes) {
  Mesh mesh = {2, 1, 4};
  mesh.cp = 3;
  Grid grid = gridOf(ofMesh(mesh));
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 3, 4));
  EXPECT_THAT(grid.atomicAxes("cp"), ElementsAre("a1"));
  EXPECT_THAT(grid.dataAxes(), ElementsAre("a0"));
  // Parameters are the same on ranks with other positions.
  EXPECT_THAT(grid.zeroAxes(), ElementsAre("a0", "a1"));
}

TEST(Grid, AxesOfSizeOneAreLeftOut) {
  Grid grid = gridOf(ofMesh({1, 1, 4}));
  EXPECT_THAT(sizesOf(grid), ElementsAre(4));
  ASSERT_EQ(grid.mesh.size(), 1u);
  EXPECT_EQ(grid.mesh[0].name, "tp");
  EXPECT_THAT(grid.mesh[0].axes, ElementsAre("a0"));
}

TEST(Grid, ZeroShardsOverDpWithoutFsdp) {
  EXPECT_THAT(gridOf(ofMesh({2, 1, 2})).zeroAxes(), ElementsAre("a0"));
}

TEST(Grid, HsdpMakesTheInnerPartOfDpFsdp) {
  Strategy strategy = ofMesh({8, 1, 2});
  strategy.zero = 1;
  strategy.hsdp = 4;
  Grid grid = gridOf(strategy);
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 4, 2));
  EXPECT_THAT(grid.atomicAxes("dp"), ElementsAre("a0"));
  EXPECT_THAT(grid.zeroAxes(), ElementsAre("a1"));
  EXPECT_THAT(grid.dataAxes(), ElementsAre("a0", "a1"));
}

TEST(Grid, MeshesOfModulesShareAtomicAxes) {
  Strategy strategy = ofMesh({2, 1, 2});
  strategy.modules = {{"vision", {"v*"}, Mesh{4, 1, 1}}, {"audio", {"a*"}, Mesh{1, 1, 4}}};
  Grid grid = gridOf(strategy);
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 2));
  EXPECT_THAT(grid.atomicAxes("dp"), ElementsAre("a0"));
  EXPECT_THAT(grid.atomicAxes("tp"), ElementsAre("a1"));
  EXPECT_THAT(grid.atomicAxes("dp", "vision"), ElementsAre("a0", "a1"));
  EXPECT_THAT(grid.atomicAxes("tp", "vision"), IsEmpty());
  EXPECT_THAT(grid.atomicAxes("tp", "audio"), ElementsAre("a0", "a1"));
  EXPECT_EQ(grid.meshAxisSize("dp", "vision"), 4);
  // One without a mesh of its own.
  EXPECT_THAT(grid.atomicAxes("dp", "language"), ElementsAre("a0"));
}

TEST(Grid, CommonDataAxesAreThoseOfAllModules) {
  Strategy strategy = ofMesh({4, 1, 2});
  EXPECT_THAT(gridOf(strategy).commonDataAxes(), ElementsAre("a0"));
  strategy.modules = {{"vision", {"v*"}, Mesh{8, 1, 1}}};
  EXPECT_THAT(gridOf(strategy).commonDataAxes(), ElementsAre("a0"));
  strategy.modules = {{"vision", {"v*"}, Mesh{2, 1, 4}}};
  Grid grid = gridOf(strategy);
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 2, 2));
  EXPECT_THAT(grid.commonDataAxes(), ElementsAre("a0"));
  EXPECT_EQ(grid.sizeOf(grid.commonDataAxes()), strategy.dataParallel());
}

TEST(Grid, RefineCutsAnAxis) {
  Grid grid = gridOf(ofMesh({2, 1, 8}));
  EXPECT_EQ(refine(&grid, "tp", {2}), std::nullopt);
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 2, 4));
  EXPECT_THAT(grid.atomicAxes("dp"), ElementsAre("a0"));
  EXPECT_THAT(grid.atomicAxes("tp"), ElementsAre("a1", "a2"));
  // A cut that is there changes nothing.
  EXPECT_EQ(refine(&grid, "tp", {2, 8, 1}), std::nullopt);
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 2, 4));
  EXPECT_EQ(refine(&grid, "tp", {4}), std::nullopt);
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(grid.atomicAxes("tp"), ElementsAre("a1", "a2", "a3"));
}

TEST(Grid, RefineCutsTheAxesOfOtherModulesToo) {
  Strategy strategy = ofMesh({1, 1, 8});
  strategy.modules = {{"vision", {"v*"}, Mesh{8, 1, 1}}, {"audio", {"a*"}, Mesh{2, 1, 4}}};
  Grid grid = gridOf(strategy);
  EXPECT_EQ(refine(&grid, "tp", {2}, "audio"), std::nullopt);
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 2, 2));
  EXPECT_THAT(grid.atomicAxes("tp", "audio"), ElementsAre("a1", "a2"));
  EXPECT_THAT(grid.atomicAxes("dp", "audio"), ElementsAre("a0"));
  EXPECT_THAT(grid.atomicAxes("tp"), ElementsAre("a0", "a1", "a2"));
  EXPECT_THAT(grid.atomicAxes("dp", "vision"), ElementsAre("a0", "a1", "a2"));
}

TEST(Grid, RefineReportsCutsThatDoNotNest) {
  Grid grid = gridOf(ofMesh({1, 1, 12}));
  EXPECT_EQ(refine(&grid, "tp", {3, 2}), CutClash(2, 3));
  EXPECT_EQ(refine(&grid, "tp", {8}), CutClash(8, 12));
  EXPECT_EQ(refine(&grid, "tp", {24}), CutClash(12, 24));
  EXPECT_EQ(refine(&grid, "dp", {2}), CutClash(1, 2));
  EXPECT_THAT(sizesOf(grid), ElementsAre(12));
  EXPECT_EQ(refine(&grid, "tp", {2}), std::nullopt);
  EXPECT_EQ(refine(&grid, "tp", {3}), CutClash(2, 3));
  EXPECT_THAT(sizesOf(grid), ElementsAre(2, 6));
}

TEST(Grid, SurvivesAsAttributes) {
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  Strategy strategy = ofMesh({1024, 1, 4});
  strategy.modules = {{"vision tower", {"v*"}, Mesh{4096, 1, 1}}};
  Grid grid = gridOf(strategy);
  // More axes than there are digits: a10 comes after a9.
  ASSERT_EQ(refine(&grid, "dp", {2, 4, 8, 16, 32, 64, 128, 256, 512}), std::nullopt);
  ASSERT_EQ(grid.axes.size(), 11u);
  setGrid(*module, grid);
  mlir::FailureOr<Grid> read = getGrid(*module);
  ASSERT_TRUE(succeeded(read));
  EXPECT_EQ(sizesOf(*read), sizesOf(grid));
  EXPECT_EQ(read->axes[10].name, "a10");
  EXPECT_THAT(read->atomicAxes("tp"), ElementsAre("a10"));
  EXPECT_EQ(read->atomicAxes("dp", "vision tower"), grid.atomicAxes("dp", "vision tower"));
  EXPECT_EQ(read->meshAxisSize("dp", "vision tower"), 4096);

  Strategy plain;
  plain.mesh.dp = 2;
  setGrid(*module, gridOf(plain));
  read = getGrid(*module);
  ASSERT_TRUE(succeeded(read));
  EXPECT_THAT(read->modules, IsEmpty());
}

}  // namespace
}  // namespace oriel
