// Any text as a strategy: read, or refused with a place and a reason.
#include <cstdint>
#include <string>

#include "passes/strategize/strategy_reader.h"
#include "tests/fuzz/check.h"

namespace {

using oriel::fuzz::check;

void checkMesh(const oriel::Strategy& strategy, const oriel::Mesh& mesh) {
  check(mesh.ranks() == strategy.ranks(), "every mesh has all ranks");
  const oriel::Mesh resolved = strategy.resolved(mesh);
  check(resolved.ranks() == mesh.ranks(), "hsdp splits dp without a rest");
  check(mesh.dataParallel() % strategy.dataParallel() == 0,
        "modules have data-parallel ranks in common");
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
  checkMesh(*strategy, strategy->mesh);
  for (const auto& module : strategy->modules) checkMesh(*strategy, module.mesh);
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  oriel::moduleOf(*strategy, name);
  oriel::shardingOf(*strategy, name);
  checkPatterns(*strategy, {name, "lm_head.weight"}).IgnoreError();
  return 0;
}
