#include "runtime/exec/replaced_compute.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

constexpr double kMaxMilliseconds = 1e9;

// Milliseconds that replace the computing of a segment, if any.
std::optional<double> Replacement(const ExecutorOptions& options, const std::string& segment) {
  auto found = options.replace_compute.find(segment);
  for (const std::string_view kind : {SegmentKind(segment), PlainKind(segment)}) {
    if (found == options.replace_compute.end()) {
      found = options.replace_compute.find(std::string(kind));
    }
  }
  if (found == options.replace_compute.end()) return std::nullopt;
  return found->second;
}

// The rank sleeps before it first sends. Where it starts collectives, what each launch would take
// is slept before whatever communicates behind it, so that they run meanwhile.
void SleepFor(double milliseconds, PreparedSegment& prepared) {
  const auto whole = std::chrono::duration_cast<PreparedSegment::Duration>(
      std::chrono::duration<double, std::milli>(milliseconds));
  const std::vector<Step>& steps = prepared.steps;
  prepared.sleep = whole;
  prepared.sleep_before.assign(steps.size(), PreparedSegment::Duration(0));
  const bool starts = std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.stream != nullptr && !step.at_once;
  });
  const int64_t launches = std::count_if(steps.begin(), steps.end(), [](const Step& step) {
    return step.kind == Step::Kind::kLaunch;
  });
  if (starts && launches == 0) return;
  int64_t passed = 0, slept = 0;  // launches
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == Step::Kind::kLaunch) ++passed;
    if (steps[i].kind == Step::Kind::kSend && !starts) {
      prepared.sleep_before[i] = whole;
      return;
    }
    if (!starts || IsComputing(steps[i].kind)) continue;
    prepared.sleep_before[i] = whole * passed / launches - whole * slept / launches;
    slept = passed;
  }
}

}  // namespace

absl::Status CheckReplacements(const plan::Plan& plan, const ExecutorOptions& options) {
  for (const auto& [name, milliseconds] : options.replace_compute) {
    bool known = false;
    for (const auto& program : plan.programs()) {
      for (const auto& segment : program.segments()) {
        known = known || segment.name() == name || SegmentKind(segment.name()) == name ||
                PlainKind(segment.name()) == name;
      }
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan has no segment '", name, "' whose computing could be replaced"));
    }
    if (!(milliseconds >= 0) || milliseconds > kMaxMilliseconds) {
      return absl::InvalidArgumentError(
          absl::StrCat("the computing of ", name, " can't be replaced by ", milliseconds, " ms"));
    }
  }
  return absl::OkStatus();
}

void PrepareSleep(const ExecutorOptions& options, PreparedSegment& prepared) {
  const std::optional<double> milliseconds = Replacement(options, prepared.segment->name());
  if (milliseconds) SleepFor(*milliseconds, prepared);
}

}  // namespace oriel::runtime
