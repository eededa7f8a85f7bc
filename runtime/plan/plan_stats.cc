#include "runtime/plan/plan_stats.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

using Range = std::pair<int64_t, int64_t>;

int64_t Covered(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end());
  int64_t bytes = 0;
  int64_t end = 0;
  for (const Range& range : ranges) {
    bytes += std::max<int64_t>(0, range.second - std::max(range.first, end));
    end = std::max(end, range.second);
  }
  return bytes;
}

int64_t BytesOf(const plan::Buffer& buffer) { return FromPlan(buffer.local()).bytes(); }

void AddMemory(const plan::Program& program, ProgramStats& stats) {
  std::set<Range> persistent;  // first copies
  std::map<std::string, std::vector<Range>> ranges;
  for (const bool pass_persistent : {true, false}) {
    for (const auto& buffer : program.buffers()) {
      if (IsPersistent(buffer.kind()) != pass_persistent) continue;
      const int64_t bytes = BytesOf(buffer);
      const Range first(buffer.offset(), buffer.offset() + bytes);
      if (pass_persistent) {
        persistent.insert(first);
      } else if (persistent.count(first) > 0) {
        continue;  // a view
      }
      const std::string kind = KindName(buffer.kind());
      const int64_t copies = CopiesOf(buffer);
      for (int64_t copy = 0; copy < copies; ++copy) {
        ranges[kind].emplace_back(OffsetOf(buffer, copy), OffsetOf(buffer, copy) + bytes);
      }
      ++stats.buffers_by_kind[kind];
      if (copies > 1) stats.copies_by_kind[kind] = std::max(stats.copies_by_kind[kind], copies);
    }
  }
  for (auto& [kind, list] : ranges) stats.bytes_by_kind[kind] = Covered(std::move(list));
}

// The bytes that a rank of `ranks` has to send. No product of theirs overflows.
int64_t SentBytes(plan::Collective::Kind kind, int64_t bytes, int64_t ranks) {
  if (kind == plan::Collective::ALL_GATHER) return bytes * (ranks - 1);
  const int64_t kept = bytes / ranks + (bytes % ranks > 0 ? 1 : 0);
  return (kind == plan::Collective::ALL_REDUCE ? 2 : 1) * (bytes - kept);
}

void AddCollective(const plan::Program& program, const GridLayout& layout,
                   const plan::Collective& collective, int instruction, SegmentStats& stats) {
  const std::string kind = CollectiveName(collective.kind());
  const std::vector<std::string> axes(collective.axes().begin(), collective.axes().end());
  auto& list = stats.collectives_by_kind;
  auto found = std::find_if(list.begin(), list.end(), [&](const CollectiveStats& known) {
    return known.kind == kind && known.axes == axes && known.stream == collective.stream();
  });
  if (found == list.end()) {
    found = list.insert(list.end(), CollectiveStats{kind, axes, collective.stream()});
    found->ranks = layout.PieceOf(program.first_rank(), axes).count;
  }
  ++found->count;
  found->tensors += collective.operands_size();
  ++stats.collectives;
  int64_t sent_of_all = 0;
  for (const int index : collective.operands()) {
    const int64_t bytes = BytesOf(program.buffers(index));
    const int64_t sent = SentBytes(collective.kind(), bytes, found->ranks);
    found->bytes += bytes;
    found->sent_bytes += sent;
    stats.collective_bytes += bytes;
    stats.sent_bytes += sent;
    sent_of_all += sent;
  }
  if (collective.stream() > 0) {
    stats.started.push_back(
        {kind, axes, collective.stream(), instruction, 0, collective.operands_size(), sent_of_all});
  }
}

SegmentStats StatsOf(const plan::Program& program, const GridLayout& layout,
                     const plan::Segment& segment) {
  SegmentStats stats;
  stats.name = segment.name();
  stats.runs_per_step =
      std::count_if(program.schedule().begin(), program.schedule().end(),
                    [&](const auto& entry) { return entry.segment() == segment.name(); });
  stats.instructions = segment.instructions_size();
  for (int i = 0; i < segment.instructions_size(); ++i) {
    const auto& instruction = segment.instructions(i);
    if (instruction.has_launch()) ++stats.kernels[instruction.launch().kernel()];
    if (instruction.has_copy()) ++stats.kernels["copy"];
    if (instruction.has_slice()) ++stats.kernels["slice_local"];
    if (instruction.has_send()) ++stats.kernels["send"];
    if (instruction.has_receive()) ++stats.kernels["receive"];
    if (instruction.has_wait()) {
      ++stats.kernels["wait"];
      const auto started = std::lower_bound(
          stats.started.begin(), stats.started.end(), instruction.wait().collective(),
          [](const StartedStats& each, int index) { return each.instruction < index; });
      if (started != stats.started.end()) started->wait = i;
    }
    if (instruction.has_collective()) {
      AddCollective(program, layout, instruction.collective(), i, stats);
    }
  }
  return stats;
}

// The mesh axes of a module that together are made of just these atomic axes; empty if none are.
std::string MeshAxesOf(const plan::Grid& grid, const std::string& module,
                       const std::set<std::string>& axes) {
  std::string names;
  std::set<std::string> covered;
  for (const plan::MeshAxis& axis : grid.mesh()) {
    const bool within = std::all_of(axis.axes().begin(), axis.axes().end(),
                                    [&](const std::string& name) { return axes.count(name) > 0; });
    if (axis.module() != module || axis.axes().empty() || !within) continue;
    covered.insert(axis.axes().begin(), axis.axes().end());
    absl::StrAppend(&names, names.empty() ? "" : "+", axis.name());
  }
  if (names.empty() || covered != axes) return "";
  return absl::StrCat(module, module.empty() ? "" : " ", names);
}

std::string NameOfAxes(const plan::Grid& grid, const std::vector<std::string>& axes) {
  const std::set<std::string> wanted(axes.begin(), axes.end());
  std::string name = MeshAxesOf(grid, "", wanted);
  for (const plan::MeshAxis& axis : grid.mesh()) {
    if (name.empty()) name = MeshAxesOf(grid, axis.module(), wanted);
  }
  return name.empty() ? absl::StrJoin(axes, "+") : name;
}

void AddVolume(const plan::Grid& grid, ProgramStats& stats) {
  std::vector<std::vector<AxisVolume>> by_axes;
  for (const SegmentStats& segment : stats.segments) {
    if (segment.runs_per_step == 0) continue;
    for (const CollectiveStats& each : segment.collectives_by_kind) {
      if (each.axes.empty()) continue;
      const std::string axes = NameOfAxes(grid, each.axes);
      auto list = std::find_if(by_axes.begin(), by_axes.end(),
                               [&](const auto& known) { return known.front().axes == axes; });
      if (list == by_axes.end()) list = by_axes.insert(list, std::vector<AxisVolume>());
      if (list->empty() || list->back().segment != segment.name) {
        list->push_back({axes, segment.name, each.ranks, 0, {}});
      }
      list->back().sent_bytes += segment.runs_per_step * each.sent_bytes;
      list->back().counts[each.kind] += segment.runs_per_step * each.count;
    }
  }
  for (const auto& list : by_axes) {
    stats.volume.insert(stats.volume.end(), list.begin(), list.end());
  }
}

void AddStages(const plan::Program& program, ProgramStats& stats) {
  for (const auto& segment : program.segments()) {
    const auto stage = SegmentStage(segment.name());
    if (stage && SegmentKind(segment.name()) == "forward") stats.stages.push_back(*stage);
  }
  std::sort(stats.stages.begin(), stats.stages.end());
  if (program.stages_size() == static_cast<int>(stats.stages.size())) {
    stats.stage_names.assign(program.stages().begin(), program.stages().end());
  }
}

// Of numbers not below 0; where they don't fit, the largest number.
int64_t Plus(int64_t a, int64_t b) {
  return a > std::numeric_limits<int64_t>::max() - b ? std::numeric_limits<int64_t>::max() : a + b;
}
int64_t Times(int64_t a, int64_t b) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  return b > 0 && a > kMax / b ? kMax : a * b;
}

void AddChannels(const plan::Plan& plan, PlanStats& stats) {
  for (const auto& channel : plan.channels()) {
    ChannelStats& each = stats.channels.emplace_back();
    each.name = channel.name();
    each.source_grid = channel.source_grid();
    each.target_grid = channel.target_grid();
  }
  for (const auto& program : plan.programs()) {
    std::map<std::string, int64_t> runs;
    for (const auto& entry : program.schedule()) ++runs[entry.segment()];
    for (const auto& segment : program.segments()) {
      for (const auto& instruction : segment.instructions()) {
        if (instruction.has_send()) {
          ChannelStats& each = stats.channels[instruction.send().channel()];
          each.segment = PlainSegment(segment.name());
          each.runs_per_step += runs[segment.name()];
        } else if (instruction.has_receive()) {
          stats.channels[instruction.receive().channel()].bytes =
              Times(program.rank_count(), BytesOf(program.buffers(instruction.receive().buffer())));
        }
      }
    }
  }
  std::map<std::tuple<int, int, std::string>, TransferVolume> volumes;
  for (ChannelStats& each : stats.channels) {
    each.bytes_per_step = Times(each.runs_per_step, each.bytes);
    if (each.runs_per_step == 0) continue;
    TransferVolume& volume = volumes[{each.source_grid, each.target_grid, each.segment}];
    volume.source_grid = each.source_grid;
    volume.target_grid = each.target_grid;
    volume.segment = each.segment;
    volume.runs_per_step = each.runs_per_step;
    ++volume.channels;
    volume.bytes_per_step = Plus(volume.bytes_per_step, each.bytes_per_step);
    stats.transferred_bytes_per_step = Plus(stats.transferred_bytes_per_step, each.bytes_per_step);
  }
  for (auto& [unused, volume] : volumes) stats.transfers.push_back(std::move(volume));
}

}  // namespace

PlanStats ComputePlanStats(const plan::Plan& plan) {
  PlanStats stats;
  for (const auto& parameter : plan.parameters()) {
    const int64_t elements = FromPlan(parameter.global()).num_elements();
    stats.parameters += elements;
    if (parameter.trainable()) stats.trainable_parameters += elements;
  }
  for (const auto& program : plan.programs()) {
    ProgramStats& result = stats.programs.emplace_back();
    result.first_rank = program.first_rank();
    result.rank_count = program.rank_count();
    result.grid = GridIndexOf(plan, program.first_rank());
    result.arena_bytes = program.arena_bytes();
    AddStages(program, result);
    AddMemory(program, result);
    result.memory = ComputeMemoryStats(program);
    const plan::Grid& grid = plan.grids(result.grid);
    const GridLayout layout(grid);
    for (const auto& segment : program.segments()) {
      result.segments.push_back(StatsOf(program, layout, segment));
      const SegmentStats& last = result.segments.back();
      result.collective_bytes_per_step += last.runs_per_step * last.collective_bytes;
      result.sent_bytes_per_step += last.runs_per_step * last.sent_bytes;
      result.instructions_per_step += last.runs_per_step * last.instructions;
    }
    AddVolume(grid, result);
  }
  AddChannels(plan, stats);
  return stats;
}

}  // namespace oriel::runtime
