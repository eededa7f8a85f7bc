#include "passes/strategize/grid.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/Builders.h"

namespace oriel {

namespace {

constexpr llvm::StringLiteral kGrid("oriel.grid");
constexpr llvm::StringLiteral kMesh("oriel.mesh");
constexpr int64_t kMaxRanks = int64_t{1} << 20;  // what `oriel compile --world` takes

const MeshAxis* findMeshAxis(const Grid& grid, llvm::StringRef name) {
  const auto it = llvm::find_if(grid.mesh, [&](const MeshAxis& axis) { return axis.name == name; });
  return it == grid.mesh.end() ? nullptr : &*it;
}

}  // namespace

int64_t Grid::worldSize() const {
  int64_t size = 1;
  for (const AtomicAxis& axis : axes) size *= axis.size;
  return size;
}

std::vector<std::string> Grid::atomicAxes(llvm::StringRef meshAxis) const {
  const MeshAxis* axis = findMeshAxis(*this, meshAxis);
  return axis ? axis->axes : std::vector<std::string>();
}

int64_t Grid::meshAxisSize(llvm::StringRef meshAxis) const {
  int64_t size = 1;
  for (const std::string& name : atomicAxes(meshAxis)) {
    for (const AtomicAxis& axis : axes) {
      if (axis.name == name) size *= axis.size;
    }
  }
  return size;
}

Grid dataParallelGrid(int64_t world) {
  Grid grid;
  if (world > 1) {
    grid.axes = {{"a0", world}};
    grid.mesh = {{"dp", {"a0"}}};
  }
  return grid;
}

void setGrid(mlir::ModuleOp module, const Grid& grid) {
  mlir::Builder builder(module.getContext());
  llvm::SmallVector<mlir::NamedAttribute> axes, mesh;
  for (const AtomicAxis& axis : grid.axes) {
    axes.push_back(builder.getNamedAttr(axis.name, builder.getI64IntegerAttr(axis.size)));
  }
  for (const MeshAxis& axis : grid.mesh) {
    llvm::SmallVector<llvm::StringRef> names(axis.axes.begin(), axis.axes.end());
    mesh.push_back(builder.getNamedAttr(axis.name, builder.getStrArrayAttr(names)));
  }
  module->setAttr(kGrid, builder.getDictionaryAttr(axes));
  module->setAttr(kMesh, builder.getDictionaryAttr(mesh));
}

mlir::FailureOr<Grid> getGrid(mlir::ModuleOp module) {
  auto axes = module->getAttrOfType<mlir::DictionaryAttr>(kGrid);
  auto mesh = module->getAttrOfType<mlir::DictionaryAttr>(kMesh);
  if (!axes || !mesh) {
    return module.emitError("has no device grid: run strategize first");
  }
  Grid grid;
  // A dictionary is sorted by name, and so are a0, a1, .. up to ten axes.
  for (mlir::NamedAttribute axis : axes) {
    auto size = llvm::dyn_cast<mlir::IntegerAttr>(axis.getValue());
    if (!size || size.getInt() < 1) {
      return module.emitError("atomic axis ") << axis.getName() << " has no positive size";
    }
    if (size.getInt() > kMaxRanks / grid.worldSize()) {
      return module.emitError("the grid has more than ") << kMaxRanks << " ranks";
    }
    grid.axes.push_back({axis.getName().str(), size.getInt()});
  }
  llvm::StringSet<> taken;
  for (mlir::NamedAttribute axis : mesh) {
    MeshAxis result{axis.getName().str(), {}};
    auto names = llvm::dyn_cast<mlir::ArrayAttr>(axis.getValue());
    if (!names) return module.emitError("mesh axis ") << axis.getName() << " is no list";
    for (mlir::Attribute name : names) {
      auto string = llvm::dyn_cast<mlir::StringAttr>(name);
      if (!string || !axes.contains(string.getValue())) {
        return module.emitError("mesh axis ")
               << axis.getName() << " names " << name << ", which is no atomic axis";
      }
      if (!taken.insert(string.getValue()).second) {
        return module.emitError("atomic axis ") << name << " is used twice by the mesh";
      }
      result.axes.push_back(string.str());
    }
    grid.mesh.push_back(std::move(result));
  }
  return grid;
}

}  // namespace oriel
