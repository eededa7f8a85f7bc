#include "driver/memory_budget.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/plan_text.h"
#include "runtime/plan/memory_stats.h"
#include "runtime/plan/plan_types.h"

namespace oriel::driver {

namespace {

using runtime::MemoryPart;
using runtime::MemoryStats;

constexpr size_t kHoldersShown = 6;

// "3.2 GiB of parameters, 1.6 GiB of stash"
std::string partsText(const MemoryStats& memory) {
  std::vector<std::string> parts;
  for (const auto& [part, bytes] : memory.parts) {
    if (bytes == 0) continue;
    parts.push_back(absl::StrCat(bytesText(bytes), " of ", runtime::MemoryPartName(part)));
  }
  return absl::StrJoin(parts, ", ");
}

std::string holdersText(const MemoryStats& memory) {
  std::string text;
  for (size_t i = 0; i < std::min(kHoldersShown, memory.holders.size()); ++i) {
    const runtime::MemoryHolder& holder = memory.holders[i];
    absl::StrAppend(&text, "\n    ", bytesText(holder.bytes), " of ",
                    runtime::MemoryPartName(holder.part), ": ", holder.name,
                    holder.copies > 1 ? absl::StrCat(", ", holder.copies, " copies") : "");
  }
  return text;
}

// The lowest level of ZeRO that saves so much, or the one that saves most; empty if none would.
std::string zeroText(const MemoryStats& memory, const Strategy& strategy, int64_t shards,
                     int64_t excess) {
  constexpr MemoryPart kSharded[] = {MemoryPart::kOptimizerState, MemoryPart::kGradients,
                                     MemoryPart::kParameters};
  int64_t saved = 0;
  int level = strategy.zero;
  for (int next = strategy.zero; next < 3 && saved < excess; ++next) {
    const int64_t bytes = memory.parts.at(kSharded[next]);
    if (bytes - bytes / shards > 0) level = next + 1;
    saved += bytes - bytes / shards;
  }
  if (level == strategy.zero) return "";
  return absl::StrCat("`zero: ", level, "` saves about ", bytesText(saved), " over ", shards,
                      " ranks with the same parameters");
}

std::string rematText(const Strategy& strategy, int64_t stash) {
  // What a block runs again is all there at once, and may be more than the stash of few blocks.
  if (strategy.rematPolicy() == RematPolicy::kFull) {
    return "`remat: auto` may take less than `full`: what a block computes again is in memory at "
           "once, so that few blocks take more";
  }
  return absl::StrCat("`remat: auto` keeps of ", bytesText(stash),
                      " of stash what fits, and computes the rest again");
}

// What applies to the ranks of this program.
std::vector<std::string> whatHelps(const plan::Plan& plan, const Strategy& strategy, int64_t grid,
                                   const MemoryStats& memory, int64_t excess) {
  std::vector<std::string> help;
  // Then a smaller stash is no way out.
  const bool stateFits = memory.state_bytes <= *strategy.memory;
  const Mesh mesh = strategy.resolved(strategy.meshOfGrid(grid));
  const int64_t shards = (mesh.fsdp > 1 ? mesh.fsdp : mesh.dp) * mesh.cp;
  if (shards > 1) {
    std::string zero = zeroText(memory, strategy, shards, excess);
    if (!zero.empty()) help.push_back(std::move(zero));
  }
  const int64_t activations =
      stateFits ? memory.parts.at(MemoryPart::kStash) + memory.parts.at(MemoryPart::kTemporaries)
                : 0;
  const int64_t micro = plan.training().micro_batch();
  if (micro > 1 && activations > 0) {
    help.push_back(absl::StrCat(
        "a micro batch below ", micro,
        (strategy.pipeline && strategy.pipeline->microbatches) ? " (more `microbatches`)"
                                                               : " (`batch.micro` of the recipe)",
        " makes ", bytesText(activations), " of stash and temporaries smaller"));
  }
  const int64_t stash = stateFits ? memory.parts.at(MemoryPart::kStash) : 0;
  if (strategy.rematPolicy() != RematPolicy::kAuto && stash > 0) {
    help.push_back(rematText(strategy, stash));
  }
  if (stateFits && strategy.grids() > 1 && strategy.pipeline->schedule == ScheduleKind::kGPipe) {
    help.push_back("`schedule: 1f1b` keeps fewer microbatches");
  }
  if (strategy.sequenceParallel == false && mesh.tp > 1 && activations > 0) {
    help.push_back("`sequence_parallel: true` splits what lies between layers over tp");
  }
  help.push_back(absl::StrCat("more ranks: `tp` (now ", mesh.tp, "), `stages` (now ",
                              strategy.stageCount(), ")",
                              shards == 1 ? ", or `dp` with `zero: 3`" : ""));
  return help;
}

}  // namespace

absl::Status checkMemory(const plan::Plan& plan, const Strategy& strategy) {
  if (!strategy.memory) return absl::OkStatus();
  const plan::Program* largest = nullptr;
  for (const plan::Program& program : plan.programs()) {
    if (!largest || program.arena_bytes() > largest->arena_bytes()) largest = &program;
  }
  if (!largest || largest->arena_bytes() <= *strategy.memory) return absl::OkStatus();
  const int64_t excess = largest->arena_bytes() - *strategy.memory;
  const MemoryStats memory = runtime::ComputeMemoryStats(*largest);
  const int64_t grid = runtime::GridIndexOf(plan, largest->first_rank());
  std::string message = absl::StrCat(
      ranksText(largest->first_rank(), largest->rank_count()),
      largest->rank_count() == 1 ? " needs " : " need ", bytesText(largest->arena_bytes()),
      largest->rank_count() == 1 ? "" : " each", ", ", bytesText(excess), " more than the ",
      bytesText(*strategy.memory), " of `memory`\n  most is in use",
      memory.segment.empty() ? ""
                             : absl::StrCat(" at instruction ", memory.instruction, " of ",
                                            memory.segment, ", microbatch ", memory.microbatch),
      ": ", partsText(memory), "\n  the largest values:", holdersText(memory),
      memory.state_bytes <= *strategy.memory
          ? ""
          : absl::StrCat("\n  parameters, gradients and optimizer state alone take ",
                         bytesText(memory.state_bytes),
                         ": neither `remat` nor a smaller micro batch changes that"),
      "\n  what would help:");
  for (const std::string& help : whatHelps(plan, strategy, grid, memory, excess)) {
    absl::StrAppend(&message, "\n    ", help);
  }
  return absl::ResourceExhaustedError(message);
}

}  // namespace oriel::driver
