#include "passes/strategize/grid.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace oriel {

namespace {

std::string axisName(size_t index) { return "a" + std::to_string(index); }

// The part of `axes` that follows in the cuts of one mesh axis: those from `outer` ranks on to
// `outer * size`.
std::vector<std::string> axesBetween(const std::vector<AtomicAxis>& axes, int64_t outer,
                                     int64_t size) {
  std::vector<std::string> names;
  int64_t prefix = 1;
  for (const AtomicAxis& axis : axes) {
    if (prefix >= outer && prefix < outer * size) names.push_back(axis.name);
    prefix *= axis.size;
  }
  return names;
}

std::vector<MeshAxis> meshAxesOf(const Mesh& mesh, const std::vector<AtomicAxis>& axes) {
  std::vector<MeshAxis> result;
  int64_t outer = 1;
  for (const NamedMeshAxis& axis : kMeshAxes) {
    const int64_t size = mesh.*axis.size;
    if (size > 1) result.push_back({axis.name, axesBetween(axes, outer, size)});
    outer *= size;
  }
  return result;
}

}  // namespace

int64_t Grid::worldSize() const {
  int64_t size = 1;
  for (const AtomicAxis& axis : axes) size *= axis.size;
  return size;
}

int64_t Grid::sizeOf(const std::vector<std::string>& names) const {
  int64_t size = 1;
  for (const AtomicAxis& axis : axes) {
    if (llvm::is_contained(names, axis.name)) size *= axis.size;
  }
  return size;
}

const std::vector<MeshAxis>& Grid::meshOf(llvm::StringRef module) const {
  const auto it =
      llvm::find_if(modules, [&](const ModuleMesh& mesh) { return mesh.module == module; });
  return it == modules.end() ? mesh : it->mesh;
}

std::vector<std::string> Grid::atomicAxes(llvm::StringRef meshAxis, llvm::StringRef module) const {
  for (const MeshAxis& axis : meshOf(module)) {
    if (axis.name == meshAxis) return axis.axes;
  }
  return {};
}

int64_t Grid::meshAxisSize(llvm::StringRef meshAxis, llvm::StringRef module) const {
  return sizeOf(atomicAxes(meshAxis, module));
}

std::vector<std::string> Grid::dataAxes(llvm::StringRef module) const {
  const std::vector<std::string> dp = atomicAxes("dp", module), fsdp = atomicAxes("fsdp", module);
  std::vector<std::string> names;
  for (const AtomicAxis& axis : axes) {
    if (llvm::is_contained(dp, axis.name) || llvm::is_contained(fsdp, axis.name)) {
      names.push_back(axis.name);
    }
  }
  return names;
}

std::vector<std::string> Grid::commonDataAxes() const {
  std::vector<std::string> common = dataAxes();
  for (const ModuleMesh& module : modules) {
    const std::vector<std::string> names = dataAxes(module.module);
    llvm::erase_if(common,
                   [&](const std::string& axis) { return !llvm::is_contained(names, axis); });
  }
  return common;
}

llvm::StringRef Grid::dataStorageAxis(llvm::StringRef module) const {
  return atomicAxes("fsdp", module).empty() ? "dp" : "fsdp";
}

std::vector<std::string> Grid::zeroAxes(llvm::StringRef module) const {
  std::vector<std::string> names = atomicAxes(dataStorageAxis(module), module);
  llvm::append_range(names, atomicAxes("cp", module));
  return names;
}

Grid gridOf(const Strategy& strategy) {
  std::vector<int64_t> cuts;
  auto addCuts = [&](const Mesh& mesh) {
    for (int64_t cut : mesh.cuts()) cuts.push_back(cut);
  };
  addCuts(strategy.resolved(strategy.mesh));
  for (const Strategy::Module& module : strategy.modules) {
    if (module.mesh) addCuts(strategy.resolved(*module.mesh));
  }
  nestCuts(&cuts);

  Grid grid;
  for (int64_t size : axisSizes(cuts, strategy.mesh.ranks())) {
    grid.axes.push_back({axisName(grid.axes.size()), size});
  }
  grid.mesh = meshAxesOf(strategy.resolved(strategy.mesh), grid.axes);
  for (const Strategy::Module& module : strategy.modules) {
    if (!module.mesh) continue;
    grid.modules.push_back({module.name, meshAxesOf(strategy.resolved(*module.mesh), grid.axes)});
  }
  return grid;
}

std::optional<CutClash> refine(Grid* grid, llvm::StringRef meshAxis,
                               const std::vector<int64_t>& outerSizes, llvm::StringRef module) {
  const std::vector<std::string> parts = grid->atomicAxes(meshAxis, module);
  const int64_t size = grid->sizeOf(parts);
  std::vector<int64_t> cuts = outerSizes;
  int64_t outer = 1;
  for (const std::string& part : parts) cuts.push_back(outer *= grid->sizeOf({part}));
  if (std::optional<CutClash> clash = nestCuts(&cuts)) return clash;
  if (!cuts.empty() && cuts.back() > size) return CutClash(size, cuts.back());

  // The new axes in order, and which of them each old one has become.
  std::vector<AtomicAxis> axes;
  llvm::StringMap<std::vector<std::string>> pieces;
  outer = 1;
  for (const AtomicAxis& axis : grid->axes) {
    std::vector<int64_t> sizes = {axis.size};
    if (llvm::is_contained(parts, axis.name)) {
      std::vector<int64_t> inside;  // cuts of this axis alone
      for (int64_t cut : cuts) {
        if (cut > outer && cut < outer * axis.size) inside.push_back(cut / outer);
      }
      sizes = axisSizes(inside, axis.size);
      outer *= axis.size;
    }
    for (int64_t piece : sizes) {
      axes.push_back({axisName(axes.size()), piece});
      pieces[axis.name].push_back(axes.back().name);
    }
  }
  auto rename = [&](std::vector<MeshAxis>& mesh) {
    for (MeshAxis& axis : mesh) {
      std::vector<std::string> names;
      for (const std::string& old : axis.axes) llvm::append_range(names, pieces[old]);
      axis.axes = std::move(names);
    }
  };
  rename(grid->mesh);
  for (ModuleMesh& moduleMesh : grid->modules) rename(moduleMesh.mesh);
  grid->axes = std::move(axes);
  return std::nullopt;
}

}  // namespace oriel
