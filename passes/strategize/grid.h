// The device grid of a module: atomic axes, and the mesh axes made of them.
#ifndef ORIEL_PASSES_STRATEGIZE_GRID_H_
#define ORIEL_PASSES_STRATEGIZE_GRID_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"
#include "passes/strategy/cuts.h"
#include "passes/strategy/strategy.h"

namespace oriel {

struct AtomicAxis {
  std::string name;  // a0, a1, ..
  int64_t size = 1;  // at least 2 in a grid made here
};

struct MeshAxis {
  std::string name;               // dp, fsdp, tp, cp
  std::vector<std::string> axes;  // atomic axes in grid order, never none
};

// The mesh of a module that has its own: other axes on the same ranks.
struct ModuleMesh {
  std::string module;
  std::vector<MeshAxis> mesh;
};

// All ranks of a stage. Rank i has the coordinates of i in row-major order over
// the atomic axes.
struct Grid {
  std::vector<AtomicAxis> axes;  // outermost first
  std::vector<MeshAxis> mesh;    // of all that is in no module below
  std::vector<ModuleMesh> modules;

  int64_t worldSize() const;
  // Product of the sizes of atomic axes of this grid.
  int64_t sizeOf(const std::vector<std::string>& axes) const;

  // Below, a module without a mesh of its own has `mesh`.
  const std::vector<MeshAxis>& meshOf(llvm::StringRef module) const;
  // The atomic axes of a mesh axis, outermost first; none if the mesh has no such axis.
  std::vector<std::string> atomicAxes(llvm::StringRef meshAxis, llvm::StringRef module = "") const;
  int64_t meshAxisSize(llvm::StringRef meshAxis, llvm::StringRef module = "") const;
  // The atomic axes over which samples differ: of dp and fsdp, in grid order.
  std::vector<std::string> dataAxes(llvm::StringRef module = "") const;
  // Those that are data axes of every module: what a batch of the data loader is split over.
  std::vector<std::string> commonDataAxes() const;
  // The mesh axis of samples over which `zero` shards storage: fsdp, or else dp.
  llvm::StringRef dataStorageAxis(llvm::StringRef module = "") const;
  // All atomic axes over which `zero` shards storage: of that axis, and of cp.
  std::vector<std::string> zeroAxes(llvm::StringRef module = "") const;
};

// The coarsest grid on which every mesh of the strategy is made of whole atomic axes; with hsdp,
// the groups that shard are the axis fsdp. The strategy is sound (findProblem()).
//
//   {dp: 2, tp: 2}, vision {dp: 4}  →  a0 = 2, a1 = 2; dp = [a0], tp = [a1]; vision dp = [a0, a1]
Grid gridOf(const Strategy& strategy);

// Cuts a mesh axis further: each of `outerSizes` is the size of an outer part of it, that is to be
// made of whole atomic axes. tp = 8 with {2} is tp = [2, 4], for two KV heads with four ranks each.
// All atomic axes are named anew, so no sharding may name them yet. Where the sizes and the cuts
// that are there do not divide each other, the grid stays as it is and the first clash is returned.
std::optional<CutClash> refine(Grid* grid, llvm::StringRef meshAxis,
                               const std::vector<int64_t>& outerSizes, llvm::StringRef module = "");

// The grid is kept on the module as the attributes `oriel.grid`, `oriel.mesh` and, where modules
// have meshes of their own, `oriel.module_meshes`.
void setGrid(mlir::ModuleOp module, const Grid& grid);
// Fails with a diagnostic if the module has no grid or a malformed one.
mlir::FailureOr<Grid> getGrid(mlir::ModuleOp module);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_GRID_H_
