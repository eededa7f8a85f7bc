#include "passes/strategize/storage_groups.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "llvm/ADT/STLExtras.h"

namespace oriel {

namespace {

// Ranks that shard what is stored of each module's parameters, by module.
std::map<std::string, int64_t> storageRanks(const StorageGrid& on) {
  std::map<std::string, int64_t> ranks;
  for (auto parameter : mlir::ModuleOp(on.program).getOps<ir::ParameterOp>()) {
    const std::string module = parameter.getModule().str();
    ranks.try_emplace(module, on.grid->sizeOf(on.grid->zeroAxes(module)));
  }
  return ranks;
}

// Elements that a rank stores in pieces or would, of a module's parameters, if `ranks` shard those
// that they divide, and `fewer` of them the others.
double storedElements(const StorageGrid& on, int zero, llvm::StringRef module, int64_t ranks,
                      int64_t fewer) {
  double sum = 0;
  for (auto parameter : mlir::ModuleOp(on.program).getOps<ir::ParameterOp>()) {
    // What is frozen has neither gradient nor state.
    if (parameter.getModule() != module || (zero < 3 && !parameter.getTrainable())) continue;
    mlir::RankedTensorType type = parameter.getTensorType();
    llvm::SmallVector<int64_t> shape(type.getShape());
    if (const TensorCuts::Cut* cut = on.cuts->of(parameter)) shape[cut->dim] /= cut->range.size;
    auto divide = [&](int64_t by) {
      return llvm::any_of(shape, [&](int64_t size) { return size % by == 0; });
    };
    const int64_t pieces = divide(ranks) ? ranks : divide(fewer) ? fewer : 1;
    sum += static_cast<double>(type.getNumElements()) / static_cast<double>(pieces);
  }
  return sum;
}

// The axis to cut for groups of neighbours, so many ranks that shard in each, and the size of its
// outer part: that of the samples, or inside of it that of the positions. None if groups would end
// within both.
std::optional<std::pair<std::string, int64_t>> cutOfGroups(const Grid& grid,
                                                           const std::string& module,
                                                           int64_t group) {
  const std::string data = grid.dataStorageAxis(module).str();
  const int64_t groups = grid.sizeOf(grid.zeroAxes(module)) / group;
  const int64_t samples = grid.meshAxisSize(data, module);
  if (samples % groups == 0) return std::pair(data, groups);
  if (groups % samples != 0) return std::nullopt;
  return std::pair("cp", groups / samples);
}

}  // namespace

void groupStorageRanks(llvm::ArrayRef<StorageGrid> grids, int zero) {
  std::set<std::pair<std::string, int64_t>> meshes;
  for (const StorageGrid& on : grids) {
    for (const auto& mesh : storageRanks(on)) meshes.insert(mesh);
  }
  for (const auto& [module, ranks] : meshes) {
    std::vector<StorageGrid> own;
    for (const StorageGrid& on : grids) {
      const std::map<std::string, int64_t> all = storageRanks(on);
      auto found = all.find(module);
      if (found != all.end() && found->second == ranks) own.push_back(on);
    }
    auto stored = [&, name = module, all = ranks](int64_t fewer) {
      double sum = 0;
      for (const StorageGrid& on : own) sum += storedElements(on, zero, name, all, fewer);
      return sum;
    };
    // More groups make more, smaller collectives.
    constexpr double kWorthIt = 0.95;
    int64_t best = 1;
    double least = kWorthIt * stored(1);
    for (int64_t group = ranks / 2; group > 1; --group) {
      const bool isPossible =
          ranks % group == 0 && llvm::all_of(own, [&, name = module](const StorageGrid& on) {
            return cutOfGroups(*on.grid, name, group).has_value();
          });
      if (!isPossible) continue;
      const double now = stored(group);
      if (now >= least) continue;
      least = now;
      best = group;
    }
    if (best == 1) continue;
    for (const StorageGrid& on : own) {
      const auto [axis, outer] = *cutOfGroups(*on.grid, module, best);
      // Modules whose groups don't nest keep what they have.
      refine(on.grid, axis, {outer}, module);
    }
  }
}

}  // namespace oriel
