// The device grid of a module: atomic axes, and the mesh axes made of them.
#ifndef ORIEL_PASSES_STRATEGIZE_GRID_H_
#define ORIEL_PASSES_STRATEGIZE_GRID_H_

#include <cstdint>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace oriel {

struct AtomicAxis {
  std::string name;
  int64_t size = 1;
};

struct MeshAxis {
  std::string name;               // dp, fsdp, tp, cp
  std::vector<std::string> axes;  // atomic axes, outermost first
};

// All ranks of a stage. Rank i has the coordinates of i in row-major order over
// the atomic axes.
struct Grid {
  std::vector<AtomicAxis> axes;
  std::vector<MeshAxis> mesh;

  int64_t worldSize() const;
  // The atomic axes of a mesh axis; none if the mesh has no such axis.
  std::vector<std::string> atomicAxes(llvm::StringRef meshAxis) const;
  int64_t meshAxisSize(llvm::StringRef meshAxis) const;
};

// A grid of `world` ranks that hold the same parameters and different samples.
Grid dataParallelGrid(int64_t world);

// The grid is kept on the module as the attributes `oriel.grid` and `oriel.mesh`.
void setGrid(mlir::ModuleOp module, const Grid& grid);
// Fails with a diagnostic if the module has no grid or a malformed one.
mlir::FailureOr<Grid> getGrid(mlir::ModuleOp module);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_GRID_H_
