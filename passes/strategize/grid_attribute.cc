// The grid as attributes of the module; declared in grid.h.
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/Builders.h"
#include "passes/config/quantity.h"
#include "passes/strategize/grid.h"

namespace oriel {

namespace {

using mlir::DictionaryAttr;
using mlir::failure;
using mlir::FailureOr;

constexpr llvm::StringLiteral kGrid("oriel.grid");
constexpr llvm::StringLiteral kMesh("oriel.mesh");
constexpr llvm::StringLiteral kModuleMeshes("oriel.module_meshes");

DictionaryAttr toAttribute(mlir::Builder& builder, const std::vector<MeshAxis>& mesh) {
  llvm::SmallVector<mlir::NamedAttribute> axes;
  for (const MeshAxis& axis : mesh) {
    llvm::SmallVector<llvm::StringRef> names(axis.axes.begin(), axis.axes.end());
    axes.push_back(builder.getNamedAttr(axis.name, builder.getStrArrayAttr(names)));
  }
  return builder.getDictionaryAttr(axes);
}

// The place of "a12" in the grid is 12, whatever the order of a dictionary.
std::optional<unsigned> placeOf(llvm::StringRef axis) {
  unsigned place = 0;
  if (!axis.consume_front("a") || axis.getAsInteger(10, place)) return std::nullopt;
  return place;
}

FailureOr<std::vector<AtomicAxis>> readAxes(mlir::ModuleOp module, DictionaryAttr attribute) {
  std::vector<AtomicAxis> axes(attribute.size());
  for (mlir::NamedAttribute axis : attribute) {
    std::optional<unsigned> place = placeOf(axis.getName());
    if (!place || *place >= axes.size() || !axes[*place].name.empty()) {
      return module.emitError("atomic axis ")
             << axis.getName() << ": " << axes.size() << " axes are named a0, a1, .. in order";
    }
    auto size = llvm::dyn_cast<mlir::IntegerAttr>(axis.getValue());
    if (!size || size.getInt() < 1) {
      return module.emitError("atomic axis ") << axis.getName() << " has no positive size";
    }
    axes[*place] = {axis.getName().str(), size.getInt()};
  }
  int64_t ranks = 1;
  for (const AtomicAxis& axis : axes) {
    if (axis.size > kMaxRanks / ranks) {
      return module.emitError("the grid has more than ") << kMaxRanks << " ranks";
    }
    ranks *= axis.size;
  }
  return axes;
}

// `owner` says in messages whose mesh it is.
FailureOr<std::vector<MeshAxis>> readMesh(mlir::ModuleOp module, const Grid& grid,
                                          DictionaryAttr attribute, llvm::StringRef owner) {
  std::vector<MeshAxis> mesh;
  llvm::StringSet<> taken;
  for (mlir::NamedAttribute axis : attribute) {
    auto error = [&] { return module.emitError("mesh axis ") << axis.getName() << owner << " "; };
    MeshAxis result{axis.getName().str(), {}};
    auto names = llvm::dyn_cast<mlir::ArrayAttr>(axis.getValue());
    if (!names) return error() << "is no list";
    unsigned next = 0;
    for (mlir::Attribute name : names) {
      auto string = llvm::dyn_cast<mlir::StringAttr>(name);
      std::optional<unsigned> place = string ? placeOf(string.getValue()) : std::nullopt;
      if (!place || *place >= grid.axes.size() || grid.axes[*place].name != string.getValue()) {
        return error() << "names " << name << ", which is no atomic axis";
      }
      if (!taken.insert(string.getValue()).second) {
        return module.emitError("atomic axis ") << name << " is used twice by the mesh" << owner;
      }
      if (*place < next) return error() << "names " << name << " out of order";
      next = *place + 1;
      result.axes.push_back(string.str());
    }
    mesh.push_back(std::move(result));
  }
  return mesh;
}

}  // namespace

void setGrid(mlir::ModuleOp module, const Grid& grid) {
  mlir::Builder builder(module.getContext());
  llvm::SmallVector<mlir::NamedAttribute> axes, modules;
  for (const AtomicAxis& axis : grid.axes) {
    axes.push_back(builder.getNamedAttr(axis.name, builder.getI64IntegerAttr(axis.size)));
  }
  for (const ModuleMesh& mesh : grid.modules) {
    modules.push_back(builder.getNamedAttr(mesh.module, toAttribute(builder, mesh.mesh)));
  }
  module->setAttr(kGrid, builder.getDictionaryAttr(axes));
  module->setAttr(kMesh, toAttribute(builder, grid.mesh));
  if (modules.empty()) {
    module->removeAttr(kModuleMeshes);
  } else {
    module->setAttr(kModuleMeshes, builder.getDictionaryAttr(modules));
  }
}

FailureOr<Grid> getGrid(mlir::ModuleOp module) {
  auto axes = module->getAttrOfType<DictionaryAttr>(kGrid);
  auto mesh = module->getAttrOfType<DictionaryAttr>(kMesh);
  if (!axes || !mesh) {
    return module.emitError("has no device grid: run strategize first");
  }
  Grid grid;
  FailureOr<std::vector<AtomicAxis>> atomic = readAxes(module, axes);
  if (failed(atomic)) return failure();
  grid.axes = *std::move(atomic);
  FailureOr<std::vector<MeshAxis>> common = readMesh(module, grid, mesh, "");
  if (failed(common)) return failure();
  grid.mesh = *std::move(common);

  mlir::Attribute attribute = module->getAttr(kModuleMeshes);
  if (!attribute) return grid;
  auto modules = llvm::dyn_cast<DictionaryAttr>(attribute);
  if (!modules) return module.emitError("the meshes of modules are no dictionary");
  for (mlir::NamedAttribute entry : modules) {
    const std::string owner = " of module \"" + entry.getName().str() + "\"";
    auto own = llvm::dyn_cast<DictionaryAttr>(entry.getValue());
    if (!own) return module.emitError("the mesh") << owner << " is no dictionary";
    FailureOr<std::vector<MeshAxis>> axesOfModule = readMesh(module, grid, own, owner);
    if (failed(axesOfModule)) return failure();
    grid.modules.push_back({entry.getName().str(), *std::move(axesOfModule)});
  }
  return grid;
}

}  // namespace oriel
