#include "runtime/train/kernel_profile.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

constexpr size_t kShown = 15;

struct Entry {
  std::string name;
  int64_t nanoseconds = 0;
  int64_t runs = 0;
};

void AppendTable(const char* title, std::vector<Entry> entries, int64_t total,
                 std::string* report) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.nanoseconds > b.nanoseconds; });
  absl::StrAppend(report, title, "\n");
  for (size_t i = 0; i < std::min(entries.size(), kShown); ++i) {
    const Entry& entry = entries[i];
    absl::StrAppendFormat(
        report, "  %10.3f ms %5.1f%% %9d x  %s\n", static_cast<double>(entry.nanoseconds) / 1e6,
        total > 0 ? 100.0 * static_cast<double>(entry.nanoseconds) / static_cast<double>(total)
                  : 0.0,
        entry.runs, entry.name);
  }
}

}  // namespace

absl::StatusOr<std::string> ReportKernels(const Executor& executor) {
  std::map<std::string, Entry> kernels;
  std::vector<Entry> instructions;
  int64_t total = 0, least = 0;
  std::set<std::string> scheduled;
  for (const plan::ScheduleEntry& entry : executor.program().schedule()) {
    scheduled.insert(entry.segment());
  }
  for (const plan::Segment& segment : executor.program().segments()) {
    if (scheduled.count(segment.name()) == 0) continue;
    ORIEL_ASSIGN_OR_RETURN(SegmentProfile profile, executor.Profile(segment.name()));
    const int count =
        std::min(segment.instructions_size(), static_cast<int>(profile.nanoseconds.size()));
    for (int i = 0; i < count; ++i) {
      const plan::Instruction& instruction = segment.instructions(i);
      const std::string name = InstructionName(instruction);
      const int64_t nanoseconds = profile.nanoseconds[i];
      Entry& kernel = kernels[name];
      kernel.name = name;
      kernel.nanoseconds += nanoseconds;
      kernel.runs += profile.runs;
      instructions.push_back(
          {absl::StrCat(segment.name(), "[", i, "] ", name, " ", instruction.location()),
           nanoseconds, profile.runs});
      total += nanoseconds;
      const int64_t least_run = profile.least_nanoseconds[i] - profile.least_empty_nanoseconds;
      least += std::max<int64_t>(0, least_run) * profile.runs;
    }
  }
  std::vector<Entry> by_kernel;
  for (auto& [name, entry] : kernels) by_kernel.push_back(std::move(entry));
  // Runs as short as the shortest, without what events take: what the first one loads is left out.
  std::string report =
      absl::StrFormat("all kernels %.3f ms, at least %.3f ms (rank 0, all steps)\n",
                      static_cast<double>(total) / 1e6, static_cast<double>(least) / 1e6);
  AppendTable("kernels (rank 0, all steps)", std::move(by_kernel), total, &report);
  AppendTable("instructions", std::move(instructions), total, &report);
  return report;
}

}  // namespace oriel::runtime
