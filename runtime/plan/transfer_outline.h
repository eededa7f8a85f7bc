// The part of a program that has to do with other grids.
#ifndef ORIEL_RUNTIME_PLAN_TRANSFER_OUTLINE_H_
#define ORIEL_RUNTIME_PLAN_TRANSFER_OUTLINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {

// A Send or Receive instruction. A ring is the memory of a buffer's copies, and of its views.
struct OutlinedTransfer {
  bool sends;
  int instruction;
  int channel;
  int ring;
};

struct SegmentOutline {
  std::vector<int> rings;  // that it uses
  std::vector<OutlinedTransfer> transfers;
};

struct ProgramOutline {
  std::vector<int64_t> copies;  // of each ring
  std::vector<SegmentOutline> segments;
};

// Nothing if a problem was found.
std::optional<ProgramOutline> OutlineTransfers(const plan::Plan& plan, int program,
                                               Problems& problems);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_TRANSFER_OUTLINE_H_
