// Which segments a program has, and in which order its schedule runs them; which stages each
// program runs.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

class ScheduleVerifier {
 public:
  ScheduleVerifier(const plan::Plan& plan, int index, Problems& problems)
      : plan_(plan), index_(index), program_(plan.programs(index)), problems_(problems) {}

  void Verify() {
    std::set<std::string> segments;
    for (const auto& segment : program_.segments()) segments.insert(segment.name());
    if (HasStages(plan_)) VerifyStageNames(segments);
    VerifySchedule(segments);
  }

 private:
  std::string Here() const { return absl::StrCat("program ", index_); }

  // Segments of the stages: which of them there are, and what belongs to them.
  void VerifyStageNames(const std::set<std::string>& segments) {
    static const auto* kinds = new std::set<std::string_view>{
        "forward", "backward", "backward_input", "backward_weight", "eval"};
    // One that runs for a single microbatch may be there as that of the last one alone.
    std::set<std::string> plain;
    for (const std::string& name : segments) plain.insert(PlainSegment(name));
    for (const std::string& name : segments) {
      if (name == kUpdateSegment) continue;
      const std::string kind(PlainKind(name));
      const auto stage = SegmentStage(name);
      if (kinds->count(kind) == 0 || !stage) {
        problems_.Add(Here(), ", segment '", name, "': not the name of a segment of a stage");
        continue;
      }
      const auto has = [&](const char* other) {
        return plain.count(absl::StrCat(other, ".", *stage)) > 0;
      };
      if (kind != "forward" && !has("forward")) {
        problems_.Add(Here(), " has ", name, ", but not forward.", *stage);
      }
      if (kind == "backward" && (has("backward_input") || has("backward_weight"))) {
        problems_.Add(Here(), " has ", name, " whole and in parts");
      }
      if (kind == "backward_weight" && !has("backward_input")) {
        problems_.Add(Here(), " has ", name, ", but not backward_input.", *stage);
      }
    }
    if (segments.count(kUpdateSegment) == 0) problems_.Add(Here(), " has no update");
  }

  // What a segment of a microbatch needs to have run before it; empty for nothing.
  static std::string Before(const std::string& segment) {
    const std::string_view kind = PlainKind(segment);
    const char* before = kind == "backward" || kind == "backward_input" ? "forward"
                         : kind == "backward_weight"                    ? "backward_input"
                                                                        : nullptr;
    return before == nullptr ? "" : before + segment.substr(SegmentKind(segment).size());
  }

  // Each microbatch runs forward and backward of each stage once, in this order, and the part of
  // backward that makes gradients of weights after the other; where there is another segment for
  // the last microbatch, that runs once, behind the others. Update runs once, at the end.
  void VerifySchedule(const std::set<std::string>& segments) {
    const int64_t microbatches = plan_.training().microbatches();
    if (program_.schedule().empty()) return problems_.Add(Here(), " has an empty schedule");
    std::map<std::string, std::set<int64_t>> done;
    std::map<std::string, int64_t> last;  // microbatches that ran for the last time, by plain name
    for (const auto& entry : program_.schedule()) {
      if (problems_.full()) return;
      if (segments.count(entry.segment()) == 0) {
        problems_.Add(Here(), ": the schedule names the segment '", entry.segment(),
                      "', which is not there");
        continue;
      }
      if (entry.microbatch() < 0 || entry.microbatch() >= microbatches) {
        problems_.Add(Here(), ": the schedule names microbatch ", entry.microbatch(), " of ",
                      microbatches);
      }
      if (done.count(kUpdateSegment) > 0) {
        problems_.Add(Here(), ": the schedule goes on after update");
      }
      const std::string name = PlainSegment(entry.segment());
      if (name == kUpdateSegment) VerifyUpdateEntry(entry.microbatch());
      if (last.count(name) > 0) {
        problems_.Add(Here(), ": the schedule has ", entry.segment(), " of microbatch ",
                      entry.microbatch(), " after the last run of ", name);
      }
      if (IsLast(entry.segment())) last[name] = entry.microbatch();
      if (SegmentKind(entry.segment()) == "eval") {
        problems_.Add(Here(), ": the schedule has ", entry.segment(),
                      ", which is no part of a step");
      }
      const std::string before = Before(entry.segment());
      if (!before.empty() && done[before].count(entry.microbatch()) == 0) {
        problems_.Add(Here(), ": the schedule has ", entry.segment(), " of microbatch ",
                      entry.microbatch(), " before its ", before);
      }
      if (!done[name].insert(entry.microbatch()).second) {
        problems_.Add(Here(), ": the schedule has ", entry.segment(), " of microbatch ",
                      entry.microbatch(), " twice");
      }
    }
    for (const std::string& segment : segments) {
      if (SegmentKind(segment) != "forward" && Before(segment).empty()) continue;
      const std::string name = PlainSegment(segment);
      const auto run = static_cast<int64_t>(done[name].size());
      if (run < microbatches) {
        problems_.Add(Here(), ": the schedule has ", name, " of ", run, " microbatches out of ",
                      microbatches);
      }
      if (IsLast(segment) && last.count(name) == 0) {
        problems_.Add(Here(), ": the schedule has no ", segment);
      }
    }
    if (segments.count(kUpdateSegment) > 0 && done[kUpdateSegment].empty()) {
      problems_.Add(Here(), ": the schedule has no update");
    }
  }

  // It may read what segments for the last microbatch leave, as that microbatch.
  // Those of all programs go with the same one, for they send to each other (transfer_order.h).
  void VerifyUpdateEntry(int64_t microbatch) {
    const auto has_last = [](const plan::Program& program) {
      return std::any_of(program.segments().begin(), program.segments().end(),
                         [](const auto& segment) { return IsLast(segment.name()); });
    };
    const bool of_last = microbatch == plan_.training().microbatches() - 1 &&
                         std::any_of(plan_.programs().begin(), plan_.programs().end(), has_last);
    if (microbatch != 0 && !of_last) {
      problems_.Add(Here(), ": the schedule has update of microbatch ", microbatch);
    }
  }

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  Problems& problems_;
};

// Stages are numbered from 0, and each has one program that runs it.
void VerifyStages(const plan::Plan& plan, Problems& problems) {
  std::map<int64_t, int> program_of;
  for (int i = 0; i < plan.programs_size(); ++i) {
    for (const auto& segment : plan.programs(i).segments()) {
      const auto stage = SegmentStage(segment.name());
      if (SegmentKind(segment.name()) != "forward" || !stage) continue;
      const auto [other, added] = program_of.emplace(*stage, i);
      if (!added) {
        problems.Add("stage ", *stage, " is in programs ", other->second, " and ", i);
      }
    }
  }
  int64_t next = 0;
  for (const auto& [stage, unused] : program_of) {
    if (stage != next) return problems.Add("stage ", next, " is in no program, but stage ", stage);
    ++next;
  }
}

}  // namespace

bool HasStages(const plan::Plan& plan) {
  if (plan.grids_size() > 1) return true;
  for (const auto& program : plan.programs()) {
    for (const auto& segment : program.segments()) {
      if (SegmentStage(segment.name())) return true;
    }
  }
  return false;
}

void VerifySchedules(const plan::Plan& plan, Problems& problems) {
  for (int i = 0; i < plan.programs_size(); ++i) ScheduleVerifier(plan, i, problems).Verify();
  if (HasStages(plan)) VerifyStages(plan, problems);
}

}  // namespace oriel::runtime
