// Ranks of a grid meet in the same collectives in the same order.
//
// Where collectives are started on communication streams, it is the order of the starts. So no rank
// waits for ever, wherever its waits stand: take the first collective, in this order, that one of
// its ranks does not get done. A rank that has not come to it yet is held up by a collective before
// it, or by the wait for one, and those are done; and so are those before it on its stream. So all
// its ranks are in it. That a group is not in two collectives at once is checked with the waits
// (verify_programs.cc).
#include <algorithm>
#include <map>

#include "absl/strings/str_join.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

std::string Describe(const plan::Program& program, const plan::Collective& collective) {
  std::vector<std::string> axes(collective.axes().begin(), collective.axes().end());
  std::sort(axes.begin(), axes.end());
  std::vector<std::string> operands;
  for (const int index : collective.operands()) {
    const TensorSpec spec = FromPlan(program.buffers(index).local());
    // Where a dimension counts, so does the shape.
    operands.push_back(
        collective.kind() == plan::Collective::ALL_REDUCE
            ? absl::StrCat(spec.num_elements(), " ", std::string(DTypeName(spec.dtype)))
            : spec.ToString());
  }
  std::string text = CollectiveName(collective.kind());
  if (Reduces(collective.kind())) {
    text += collective.reduction() == plan::Collective::MAX ? " max" : " sum";
  }
  absl::StrAppend(&text, " over ", absl::StrJoin(axes, ","), " of ", absl::StrJoin(operands, ", "));
  if (Cuts(collective.kind())) {
    absl::StrAppend(&text, " cut along ", absl::StrJoin(collective.split_dims(), ", "));
  }
  if (Joins(collective.kind())) {
    absl::StrAppend(&text, " joined along ", absl::StrJoin(collective.concat_dims(), ", "));
  }
  if (collective.stream() > 0) absl::StrAppend(&text, " on stream ", collective.stream());
  return text;
}

// Collectives by segment. Segments without any don't appear.
using Collectives = std::map<std::string, std::vector<std::string>>;

Collectives CollectivesOf(const plan::Program& program) {
  Collectives result;
  for (const auto& segment : program.segments()) {
    for (const auto& instruction : segment.instructions()) {
      if (!instruction.has_collective()) continue;
      result[segment.name()].push_back(Describe(program, instruction.collective()));
    }
  }
  return result;
}

// The scheduled segments that have collectives, in order.
std::vector<std::string> MeetingsOf(const plan::Program& program, const Collectives& collectives) {
  std::vector<std::string> result;
  for (const auto& entry : program.schedule()) {
    if (collectives.count(entry.segment()) > 0) result.push_back(entry.segment());
  }
  return result;
}

void Compare(const Collectives& a, const Collectives& b, const std::string& who,
             Problems& problems) {
  std::set<std::string> segments;
  for (const auto& [name, unused] : a) segments.insert(name);
  for (const auto& [name, unused] : b) segments.insert(name);
  for (const std::string& name : segments) {
    static const auto* none = new std::vector<std::string>();
    const auto& left = a.count(name) > 0 ? a.at(name) : *none;
    const auto& right = b.count(name) > 0 ? b.at(name) : *none;
    for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      const std::string first = i < left.size() ? left[i] : "nothing";
      const std::string second = i < right.size() ? right[i] : "nothing";
      if (first == second) continue;
      problems.Add(who, ", segment ", name, ": the ranks would not meet in collective ", i, ": ",
                   first, " against ", second);
      break;
    }
  }
}

}  // namespace

void VerifyCollectives(const plan::Plan& plan, Problems& problems) {
  struct First {
    int program;
    Collectives collectives;
    std::vector<std::string> meetings;
  };
  std::map<const plan::Grid*, First> first_of_grid;
  for (int i = 0; i < plan.programs_size(); ++i) {
    const auto& program = plan.programs(i);
    Collectives collectives = CollectivesOf(program);
    std::vector<std::string> meetings = MeetingsOf(program, collectives);
    const plan::Grid* grid = GridOf(plan, program);
    const auto found = first_of_grid.find(grid);
    if (found == first_of_grid.end()) {
      first_of_grid[grid] = {i, std::move(collectives), std::move(meetings)};
      continue;
    }
    const std::string who = absl::StrCat("programs ", found->second.program, " and ", i);
    Compare(found->second.collectives, collectives, who, problems);
    if (found->second.meetings != meetings) {
      problems.Add(who, ": their schedules run segments with collectives in different orders");
    }
  }
}

}  // namespace oriel::runtime
