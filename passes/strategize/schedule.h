// The schedule: the ordered list of (segment, microbatch) that a step runs.
#ifndef ORIEL_PASSES_STRATEGIZE_SCHEDULE_H_
#define ORIEL_PASSES_STRATEGIZE_SCHEDULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

namespace oriel {

struct ScheduleEntry {
  std::string segment;
  int64_t microbatch = 0;

  friend bool operator==(const ScheduleEntry& a, const ScheduleEntry& b) {
    return a.segment == b.segment && a.microbatch == b.microbatch;
  }
};

// One stage: forward and backward of each microbatch in turn, then the update. One microbatch is
// in flight at a time.
std::vector<ScheduleEntry> accumulationSchedule(int64_t microbatches);

// What takes the place of a segment for the last microbatch: "backward_last.2" of "backward.2", and
// the way back; none for a segment that takes no other's place.
std::string lastSegment(llvm::StringRef plain);
std::optional<std::string> plainSegment(llvm::StringRef last);

// The schedule is kept on the module as this attribute.
inline constexpr llvm::StringLiteral kScheduleAttr("oriel.schedule");
void setSchedule(mlir::ModuleOp module, const std::vector<ScheduleEntry>& schedule);
// Empty if the module has none; fails with a diagnostic if it is malformed.
mlir::FailureOr<std::vector<ScheduleEntry>> getSchedule(mlir::ModuleOp module);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_SCHEDULE_H_
