#include "driver/simulation_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace oriel::driver {

namespace {

using Json = nlohmann::ordered_json;

// As in the plan's memory report, in the order of MemoryUse.
constexpr const char* kUses[kMemoryUses] = {
    "parameters", "gradients", "optimizer_state", "stash", "temporaries", "communication", "other"};

std::string percent(double part) { return absl::StrFormat("%.1f %%", 100 * part); }

std::string gibibytes(double bytes) {
  return absl::StrFormat("%.2f GiB", bytes / (int64_t{1} << 30));
}

std::string programName(const Simulation& simulation, size_t program) {
  const std::string& name = simulation.programs[program].profile.name;
  return name.empty() ? "all" : name;
}

// Of all programs, the one that computes longest.
size_t busiestOf(const Simulation& simulation) {
  const std::vector<ProgramTimeline>& programs = simulation.step.programs;
  return std::max_element(programs.begin(), programs.end(),
                          [](const auto& a, const auto& b) { return a.computing < b.computing; }) -
         programs.begin();
}

// Seconds of a step in the segment, by its name.
double secondsOf(const ProgramTimeline& program, const std::string& segment) {
  double sum = 0;
  for (const TimedSegment& run : program.runs) {
    if (run.run.segment == segment) sum += run.end - run.start;
  }
  return sum;
}

}  // namespace

std::string memoryUseKey(size_t use) { return kUses[use]; }

std::string simulationText(const Simulation& simulation, const Cluster& cluster) {
  std::string text =
      absl::StrFormat("step        %.6g ms on %d of %d devices (%s)\n",
                      simulation.step.seconds * 1e3, simulation.ranks, cluster.devices(),
                      cluster.device.name.empty() ? cluster.name : cluster.device.name);
  if (!simulation.stragglers.empty()) {
    absl::StrAppend(&text, "stragglers  ",
                    absl::StrJoin(simulation.stragglers, ", ", absl::PairFormatter("=")),
                    " (rank=times as long)\n");
  }
  absl::StrAppendFormat(&text, "throughput  %.4g samples/s",
                        simulation.samples / simulation.step.seconds);
  if (simulation.tokens > 0) {
    absl::StrAppendFormat(&text, ", %.4g tokens/s", simulation.tokens / simulation.step.seconds);
  }
  absl::StrAppend(&text, "\nmfu         ", percent(simulation.mfu()), " (with what runs again ",
                  percent(simulation.hfu()), ")\nbubble      ", percent(simulation.step.bubble()),
                  "\nwaits       ", percent(simulation.exposedCommunication()),
                  " of the step for collectives\n");
  const double peak = simulation.peakBytes();
  absl::StrAppend(&text, "memory      ", gibibytes(peak), " of ",
                  gibibytes(static_cast<double>(cluster.device.memory)),
                  peak > static_cast<double>(cluster.device.memory)
                      ? ": MORE THAN A DEVICE HAS; see `oriel compile --help`, --memory\n"
                      : "\n");
  if (const double cached = simulation.cachedBytes(); cached > 0) {
    absl::StrAppend(&text, "reserved    ", gibibytes(cached), " by a caching allocator\n");
  }
  absl::StrAppendFormat(&text, "%-10s  %10s %10s %10s %10s  %10s  %s\n", "program", "computes",
                        "waits", "idle", "update", "memory", "stages");
  for (size_t i = 0; i < simulation.programs.size(); ++i) {
    const ProgramTimeline& program = simulation.step.programs[i];
    absl::StrAppendFormat(
        &text, "%-10s  %7.4g ms %7.4g ms %7.4g ms %7.4g ms  %10s  %s\n", programName(simulation, i),
        program.computing * 1e3, program.communicating * 1e3, program.waiting * 1e3,
        secondsOf(program, "update") * 1e3, gibibytes(simulation.programs[i].peakBytes()),
        i < simulation.stages.size() ? simulation.stages[i] : "");
  }
  if (simulation.compiledBlocks < simulation.blocks) {
    absl::StrAppend(&text, "compiled ", simulation.compiledBlocks, " of ", simulation.blocks,
                    " blocks; the others are equal to one of these (--whole compiles all)\n");
  }
  return text;
}

std::string kernelsText(const Simulation& simulation) {
  const size_t busiest = busiestOf(simulation);
  std::vector<std::pair<double, std::string>> kernels;
  double all = 0;
  for (const auto& [kernel, seconds] : simulation.programs[busiest].kernelsOfStep()) {
    kernels.emplace_back(seconds, kernel);
    all += seconds;
  }
  std::sort(kernels.rbegin(), kernels.rend());
  std::string text = absl::StrFormat("kernels of a rank of %s, %.6g ms of a step\n",
                                     programName(simulation, busiest), all * 1e3);
  for (const auto& [seconds, kernel] : kernels) {
    absl::StrAppendFormat(&text, "  %10.4g ms %8s  %s\n", seconds * 1e3, percent(seconds / all),
                          kernel);
  }
  return text;
}

std::string simulationJson(const Simulation& simulation) {
  Json stages = Json::array();
  for (size_t i = 0; i < simulation.programs.size(); ++i) {
    const ProgramTimeline& program = simulation.step.programs[i];
    const ProgramCost& cost = simulation.programs[i];
    Json memory = {{"total", cost.peakBytes()}};
    for (size_t use = 0; use < kMemoryUses; ++use) memory[kUses[use]] = cost.bytes[use];
    stages.push_back({{"program", programName(simulation, i)},
                      {"stages", i < simulation.stages.size() ? simulation.stages[i] : ""},
                      {"ranks", cost.ranks},
                      {"busy", program.computing},
                      {"exposed_communication", program.communicating},
                      {"idle", program.waiting},
                      {"update", secondsOf(program, "update")},
                      {"kernels", cost.kernelsOfStep()},
                      {"memory", std::move(memory)}});
  }
  Json stragglers = Json::array();
  for (const auto& [rank, factor] : simulation.stragglers) {
    stragglers.push_back({{"rank", rank}, {"factor", factor}});
  }
  const Json json = {{"step_seconds", simulation.step.seconds},
                     {"samples_per_second", simulation.samples / simulation.step.seconds},
                     {"tokens_per_second", simulation.tokens / simulation.step.seconds},
                     {"mfu", simulation.mfu()},
                     {"hfu", simulation.hfu()},
                     {"bubble", simulation.step.bubble()},
                     {"exposed_communication", simulation.exposedCommunication()},
                     {"peak_memory", simulation.peakBytes()},
                     {"reserved_memory", simulation.cachedBytes()},
                     {"ranks", simulation.ranks},
                     {"stragglers", std::move(stragglers)},
                     {"blocks", simulation.blocks},
                     {"compiled_blocks", simulation.compiledBlocks},
                     {"stages", std::move(stages)}};
  return json.dump(2) + "\n";
}

std::string simulationTrace(const Simulation& simulation) {
  constexpr double kMicroseconds = 1e6;
  Json events = Json::array();
  for (size_t i = 0; i < simulation.programs.size(); ++i) {
    std::string name = programName(simulation, i);
    if (i < simulation.stages.size() && !simulation.stages[i].empty()) {
      absl::StrAppend(&name, ": ", simulation.stages[i]);
    }
    events.push_back(
        {{"ph", "M"}, {"name", "process_name"}, {"pid", i}, {"args", {{"name", name}}}});
    for (const TimedSegment& run : simulation.step.programs[i].runs) {
      events.push_back({{"ph", "X"},
                        {"name", absl::StrCat(run.run.segment, " ", run.run.microbatch)},
                        {"pid", i},
                        {"tid", 0},
                        {"ts", run.start * kMicroseconds},
                        {"dur", (run.end - run.start) * kMicroseconds},
                        {"args", {{"microbatch", run.run.microbatch}}}});
    }
  }
  return Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump() + "\n";
}

}  // namespace oriel::driver
