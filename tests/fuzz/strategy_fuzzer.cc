// Any text as a strategy: read, or refused with a place and a reason.
#include <cstdint>
#include <set>
#include <string>

#include "passes/config/quantity.h"
#include "passes/strategy/strategy_reader.h"
#include "tests/fuzz/check.h"

namespace {

using oriel::fuzz::check;

void checkMesh(const oriel::Strategy& strategy, const oriel::Mesh& mesh) {
  check(strategy.resolved(mesh).ranks() == mesh.ranks(), "hsdp splits dp without a rest");
}

void checkMeshes(const oriel::Strategy& strategy) {
  std::set<int64_t> sizes;  // of grids
  int64_t ranks = 0;
  for (int64_t grid = 0; grid < strategy.grids(); ++grid) {
    const oriel::Mesh& mesh = strategy.meshOfGrid(grid);
    checkMesh(strategy, mesh);
    check(mesh.dataParallel() >= strategy.dataParallel(), "no grid has less data parallelism");
    sizes.insert(mesh.ranks());
    ranks += mesh.ranks();
  }
  check(ranks == strategy.ranks(), "the ranks are those of all grids");
  for (const auto& module : strategy.modules) {
    if (!module.mesh) continue;
    checkMesh(strategy, *module.mesh);
    check(sizes.count(module.mesh->ranks()) > 0, "a grid has as many ranks as a module's mesh");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<oriel::Strategy> strategy = oriel::parseStrategy(text, "s.yaml");
  if (!strategy.ok()) {
    std::string message(strategy.status().message());
    check(message.rfind("s.yaml", 0) == 0, "the error names the file", message);
    return 0;
  }
  oriel::fuzz::accepted();
  check(strategy->ranks() >= 1 && strategy->ranks() <= oriel::kMaxRanks, "ranks are bounded");
  check(strategy->zero >= 0 && strategy->zero <= 3, "zero is 0 to 3");
  check(strategy->stageCount() % strategy->grids() == 0, "grids have as many stages each");
  checkMeshes(*strategy);
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  oriel::moduleOf(*strategy, name);
  oriel::shardingOf(*strategy, name);
  checkPatterns(*strategy, {name, "lm_head.weight"}).IgnoreError();
  return 0;
}
