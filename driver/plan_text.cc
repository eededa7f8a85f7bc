#include "driver/plan_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/device.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"

namespace oriel::driver {

namespace {

using Entry = std::pair<std::string, int64_t>;

std::vector<Entry> byDescendingCount(const std::map<std::string, int64_t>& counts) {
  std::vector<Entry> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Entry& a, const Entry& b) { return a.second > b.second; });
  return sorted;
}

std::string ranksText(const runtime::ProgramStats& program) {
  return absl::StrCat(program.rank_count == 1 ? "" : "each of ",
                      driver::ranksText(program.first_rank, program.rank_count));
}

// "stages 0 (vision), 2 (llm.0-15)"
std::string stagesText(const runtime::ProgramStats& program) {
  std::vector<std::string> stages;
  for (size_t i = 0; i < program.stages.size(); ++i) {
    const bool named = i < program.stage_names.size() && !program.stage_names[i].empty();
    stages.push_back(absl::StrCat(program.stages[i], named ? " (" : "",
                                  named ? program.stage_names[i] : "", named ? ")" : ""));
  }
  if (stages.empty()) return "no stage";
  return absl::StrCat(stages.size() == 1 ? "stage " : "stages ", absl::StrJoin(stages, ", "));
}

std::string scheduleText(const plan::LearningRate& rate) {
  const std::string peak = absl::StrFormat("%g", rate.peak());
  std::string text;
  switch (rate.kind()) {
    case plan::LearningRate::LINEAR:
    case plan::LearningRate::COSINE:
      text = absl::StrFormat("%s from %s to %g at step %d",
                             rate.kind() == plan::LearningRate::LINEAR ? "linear" : "cosine", peak,
                             rate.peak() * rate.final_ratio(), rate.total_steps());
      break;
    default:
      text = absl::StrCat("constant ", peak);
  }
  if (rate.warmup_steps() > 0) {
    absl::StrAppend(&text, ", after a warm-up of ", rate.warmup_steps(), " steps");
  }
  if (rate.hold_steps() > 0) {
    absl::StrAppend(&text, rate.warmup_steps() > 0 ? " and " : ", after ", rate.hold_steps(),
                    " steps at the peak");
  }
  return text;
}

// Where the runtime makes it; else empty.
std::string initialText(const plan::InitialValue& initial) {
  if (initial.has_constant()) return absl::StrFormat(", starts as %g", initial.constant());
  if (initial.has_normal()) {
    return absl::StrFormat(", starts random: normal, mean %g, std %g", initial.normal().mean(),
                           initial.normal().deviation());
  }
  if (initial.has_uniform()) {
    return absl::StrFormat(", starts random: uniform from %g to %g", initial.uniform().low(),
                           initial.uniform().high());
  }
  return "";
}

}  // namespace

std::string ranksText(int64_t first, int64_t count) {
  if (count == 1) return absl::StrCat("rank ", first);
  return absl::StrCat("ranks ", first, " to ", first + count - 1);
}

std::string bytesText(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, bytes == 1 ? " byte" : " bytes");
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", value < 10 ? 2 : 1, value, units[unit]);
}

std::string countText(int64_t count) {
  if (count >= 1'000'000'000) return absl::StrFormat("%.2f G", static_cast<double>(count) / 1e9);
  if (count >= 1'000'000) return absl::StrFormat("%.2f M", static_cast<double>(count) / 1e6);
  std::string digits = absl::StrCat(count);
  if (digits.size() > 3) digits.insert(digits.size() - 3, ",");
  return digits;
}

std::string timeText(double ms) {
  if (ms < 0.1) return absl::StrFormat("%.2f us", ms * 1e3);
  return absl::StrFormat("%.*f ms", ms < 10 ? 3 : 1, ms);
}

std::string batchText(const plan::Training& training) {
  return absl::StrCat(
      "global batch ", training.global_batch(), " = micro batch ", training.micro_batch(), " x ",
      training.data_parallel(),
      training.data_parallel() == 1 ? " data-parallel rank x " : " data-parallel ranks x ",
      training.microbatches(), training.microbatches() == 1 ? " microbatch" : " microbatches");
}

std::string provenanceText(const plan::Plan& plan) {
  const plan::Provenance& from = plan.provenance();
  std::string text = absl::StrCat("model       ", plan.model_name(), "\n");
  absl::StrAppend(&text, "  from      ", from.model_path(), " (sha256 ",
                  from.model_sha256().substr(0, 16), "..)\n");
  absl::StrAppend(&text, "  compiler  oriel ", from.compiler_version(), " ",
                  absl::StrJoin(from.flags(), " "), "\n");
  return text;
}

// Which ranks the processes are, where these are not their numbers.
std::string placementText(const plan::Plan& plan) {
  const int64_t block = plan.placement_block();
  if (block == 0) return "";
  constexpr int64_t kShown = 4;
  const int64_t blocks = plan.world_size() / block, grids = plan.grids_size();
  std::vector<std::string> shown;
  for (int64_t i = 0; i < std::min(blocks, kShown); ++i) {
    const int64_t first = i % grids * (plan.world_size() / grids) + i / grids * block;
    shown.push_back(block == 1 ? absl::StrCat(first)
                               : absl::StrCat(first, " to ", first + block - 1));
  }
  return absl::StrCat("  processes ", block, " of each grid in turn: ranks ",
                      absl::StrJoin(shown, ", "), blocks > kShown ? ", .." : "", "\n");
}

std::string trainingText(const plan::Plan& plan) {
  std::string text = absl::StrCat("device      ", runtime::DeviceText(plan.device()),
                                  "\nworld       ", plan.world_size(), "\n");
  for (int i = 0; i < plan.grids_size(); ++i) {
    const plan::Grid& grid = plan.grids(i);
    std::vector<std::string> axes;
    for (const plan::MeshAxis& axis : grid.mesh()) {
      axes.push_back(absl::StrCat(axis.module(), axis.module().empty() ? "" : " ", axis.name(),
                                  " = ", absl::StrJoin(axis.axes(), " x ")));
    }
    for (const plan::AtomicAxis& axis : grid.axes()) {
      axes.push_back(absl::StrCat(axis.name(), " = ", axis.size()));
    }
    const std::string heading =
        plan.grids_size() == 1
            ? absl::StrFormat("  %-10s", "grid")
            : absl::StrFormat("  %-10s%s: ", absl::StrCat("grid ", i),
                              ranksText(grid.first_rank(), runtime::GridLayout(grid).size()));
    absl::StrAppend(&text, heading, axes.empty() ? "one rank" : absl::StrJoin(axes, ", "), "\n");
  }
  absl::StrAppend(&text, placementText(plan));
  const plan::Training& training = plan.training();
  absl::StrAppend(&text, "training    ", training.steps(), " steps, ", batchText(training), "\n");
  absl::StrAppend(&text, "  rate      ", scheduleText(training.learning_rate()), "\n");
  for (const plan::Input& input : plan.inputs()) {
    absl::StrAppend(
        &text, "  input     ", input.name(), " ", runtime::FromPlan(input.microbatch()).ToString(),
        " per microbatch", input.labels() ? ", the labels" : "",
        input.member().empty() ? "" : absl::StrCat(", from ", input.member()),
        input.has_images()
            ? absl::StrCat(", up to ", input.images().per_sample(), " images per sample")
            : "",
        input.image_count() ? ", how many images there are" : "",
        input.sample_bits() ? ", random bits of each sample" : "", "\n");
  }
  return text;
}

std::string parametersText(const plan::Plan& plan, const runtime::PlanStats& stats) {
  std::string text =
      absl::StrCat("parameters  ", countText(stats.parameters), " in ", plan.parameters_size(),
                   " tensors: ", countText(stats.trainable_parameters), " trainable, ",
                   countText(stats.parameters - stats.trainable_parameters), " frozen\n");
  const auto made = std::count_if(plan.parameters().begin(), plan.parameters().end(),
                                  [](const auto& p) { return runtime::IsMade(p.initial()); });
  if (made > 0) {
    absl::StrAppend(&text, "  initial   ", made, " made when training starts, ",
                    plan.parameters_size() - made, " from the weights file\n");
  }
  std::vector<const plan::Parameter*> largest;
  for (const plan::Parameter& parameter : plan.parameters()) largest.push_back(&parameter);
  std::stable_sort(largest.begin(), largest.end(), [](auto* a, auto* b) {
    return runtime::FromPlan(a->global()).bytes() > runtime::FromPlan(b->global()).bytes();
  });
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < std::min(kShown, largest.size()); ++i) {
    const plan::Parameter& parameter = *largest[i];
    absl::StrAppend(
        &text, absl::StrFormat("  %-10s", bytesText(runtime::FromPlan(parameter.global()).bytes())),
        parameter.name(), " ", runtime::FromPlan(parameter.global()).ToString(),
        parameter.padded_shape().empty()
            ? ""
            : absl::StrCat(" padded to ", runtime::ShapeToString(runtime::PaddedShape(parameter))),
        parameter.padded_groups().empty()
            ? ""
            : absl::StrCat(" in groups ", runtime::ShapeToString(runtime::PaddedGroups(parameter))),
        parameter.trainable() ? "" : ", frozen", initialText(parameter.initial()), "\n");
  }
  if (largest.size() > kShown) {
    absl::StrAppend(&text, "  and ", largest.size() - kShown, " smaller ones\n");
  }
  return text;
}

std::string memoryText(const runtime::ProgramStats& program) {
  std::string text = absl::StrCat("memory      an arena of ", bytesText(program.arena_bytes),
                                  " on ", ranksText(program), "\n");
  if (program.memory.state_bytes > 0) {
    absl::StrAppend(&text,
                    absl::StrFormat("  %-16s %10s of parameters, gradients and optimizer state\n",
                                    "state", bytesText(program.memory.state_bytes)));
  }
  for (const auto& [kind, bytes] : byDescendingCount(program.bytes_by_kind)) {
    const auto copies = program.copies_by_kind.find(kind);
    absl::StrAppend(&text,
                    absl::StrFormat("  %-16s %10s in %d buffers%s\n", kind, bytesText(bytes),
                                    program.buffers_by_kind.at(kind),
                                    copies == program.copies_by_kind.end()
                                        ? ""
                                        : absl::StrCat(" of up to ", copies->second, " copies")));
  }
  return text;
}

std::string memoryPeakText(const runtime::ProgramStats& program) {
  const runtime::MemoryStats& memory = program.memory;
  std::string text =
      absl::StrCat("peak        ", bytesText(memory.peak_bytes), " in use on ", ranksText(program));
  if (!memory.segment.empty()) {
    absl::StrAppend(&text, ": at instruction ", memory.instruction, " of ", memory.segment,
                    ", microbatch ", memory.microbatch);
  }
  text += "\n";
  for (const auto& [part, bytes] : memory.parts) {
    if (bytes == 0) continue;
    absl::StrAppend(
        &text, absl::StrFormat("  %-16s %10s\n", runtime::MemoryPartName(part), bytesText(bytes)));
  }
  const int64_t unused = memory.arena_bytes - memory.peak_bytes;
  absl::StrAppend(
      &text,
      absl::StrFormat("  %-16s %10s, %.1f %% of the arena\n", "unused", bytesText(unused),
                      memory.arena_bytes == 0 ? 0.0
                                              : 100.0 * static_cast<double>(unused) /
                                                    static_cast<double>(memory.arena_bytes)));
  for (const runtime::StashStats& stash : memory.stash) {
    absl::StrAppend(&text, "  ", stash.segment, " keeps ", bytesText(stash.bytes),
                    " of a microbatch, of ", stash.microbatches, " at a time\n");
  }
  return text;
}

std::string segmentsText(const runtime::ProgramStats& program, bool kernels) {
  std::string text = absl::StrCat("segments    ", program.instructions_per_step,
                                  " instructions and ", bytesText(program.sent_bytes_per_step),
                                  " sent in collectives per step on ", ranksText(program), "\n");
  size_t width = 9;
  for (const runtime::SegmentStats& segment : program.segments) {
    width = std::max(width, segment.name.size());
  }
  for (const runtime::SegmentStats& segment : program.segments) {
    absl::StrAppend(
        &text, absl::StrFormat("  %-*s %d instructions, %d times a step", static_cast<int>(width),
                               segment.name, segment.instructions, segment.runs_per_step));
    text += "\n";
    for (const runtime::CollectiveStats& each : segment.collectives_by_kind) {
      absl::StrAppend(&text, "    ", each.count, " ", each.kind, " over ",
                      each.axes.empty() ? "no axis" : absl::StrJoin(each.axes, ", "), " (",
                      each.ranks, each.ranks == 1 ? " rank) of " : " ranks) of ",
                      bytesText(each.bytes), ", sends ", bytesText(each.sent_bytes));
      if (each.tensors > each.count) absl::StrAppend(&text, ", ", each.tensors, " tensors");
      if (each.stream > 0) absl::StrAppend(&text, ", started on stream ", each.stream);
      text += "\n";
    }
    if (!kernels) continue;
    for (const auto& [kernel, count] : byDescendingCount(segment.kernels)) {
      absl::StrAppend(&text, absl::StrFormat("    %5d %s\n", count, kernel));
    }
  }
  return text;
}

std::string volumeText(const runtime::ProgramStats& program) {
  if (program.volume.empty()) return "";
  std::string text = absl::StrCat("volume      ", bytesText(program.sent_bytes_per_step),
                                  " sent per step by ", ranksText(program), "\n");
  size_t width = 9;
  for (const runtime::AxisVolume& each : program.volume) {
    width = std::max(width, each.segment.size());
  }
  for (const runtime::AxisVolume& each : program.volume) {
    std::vector<std::string> counts;
    for (const auto& [kind, count] : byDescendingCount(each.counts)) {
      counts.push_back(absl::StrCat(count, " ", kind));
    }
    absl::StrAppend(
        &text, absl::StrFormat("  %-9s %-*s %10s in %s over %d ranks\n", each.axes,
                               static_cast<int>(width), each.segment, bytesText(each.sent_bytes),
                               absl::StrJoin(counts, ", "), each.ranks));
  }
  return text;
}

std::string programsText(const runtime::PlanStats& stats) {
  if (stats.programs.size() < 2) return "";
  std::string text =
      absl::StrCat("programs    ", stats.programs.size(),
                   "; arena, state and bytes sent in collectives per step of a rank\n");
  size_t width = 0;
  for (const runtime::ProgramStats& program : stats.programs) {
    width = std::max(width, driver::ranksText(program.first_rank, program.rank_count).size());
  }
  for (const runtime::ProgramStats& program : stats.programs) {
    absl::StrAppend(
        &text,
        absl::StrFormat("  %-9s %-*s %10s %10s %10s  %s\n", absl::StrCat("grid ", program.grid),
                        static_cast<int>(width),
                        driver::ranksText(program.first_rank, program.rank_count),
                        bytesText(program.arena_bytes), bytesText(program.memory.state_bytes),
                        bytesText(program.sent_bytes_per_step), stagesText(program)));
  }
  return text;
}

std::string programHeading(const runtime::ProgramStats& program) {
  return absl::StrFormat("%-12s%s: %s\n", absl::StrCat("grid ", program.grid),
                         driver::ranksText(program.first_rank, program.rank_count),
                         stagesText(program));
}

std::string transfersText(const runtime::PlanStats& stats) {
  if (stats.channels.empty()) return "";
  std::string text = absl::StrCat("transfers   ", bytesText(stats.transferred_bytes_per_step),
                                  " per step between grids\n");
  for (const runtime::TransferVolume& each : stats.transfers) {
    absl::StrAppend(&text, absl::StrFormat("  %-9s %-17s %10s over %d channel%s, %d time%s\n",
                                           absl::StrCat(each.source_grid, " to ", each.target_grid),
                                           each.segment, bytesText(each.bytes_per_step),
                                           each.channels, each.channels == 1 ? "" : "s",
                                           each.runs_per_step, each.runs_per_step == 1 ? "" : "s"));
  }
  return text;
}

std::string generatedText(const plan::Plan& plan) {
  if (plan.generated().empty()) return "";
  int64_t launches = 0, ops = 0, bytes = 0;
  for (const auto& program : plan.programs()) {
    for (const auto& segment : program.segments()) {
      for (const auto& instruction : segment.instructions()) {
        if (!instruction.launch().has_generated()) continue;
        ++launches;
        ops += plan.generated(instruction.launch().generated()).ops_size();
      }
    }
  }
  for (const auto& kernel : plan.generated()) {
    for (const auto& image : kernel.images()) bytes += static_cast<int64_t>(image.code().size());
  }
  return absl::StrCat("generated   ", launches, " launches in place of ", ops, ", of ",
                      plan.generated_size(), " kernels: ", bytesText(bytes), " of code\n");
}

}  // namespace oriel::driver
