// What the executor makes of a segment before it runs: its instructions with everything looked up.
#ifndef ORIEL_RUNTIME_EXEC_STEPS_H_
#define ORIEL_RUNTIME_EXEC_STEPS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "runtime/backend/backend.h"
#include "runtime/comm/blocks.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/step_clock.h"
#include "runtime/exec/streams.h"
#include "runtime/exec/transfers.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {

// An instruction: running one allocates and searches nothing.
struct Step {
  enum class Kind : uint8_t {
    kLaunch,
    kAllReduce,
    kAllGather,
    kReduceScatter,
    kAllToAll,
    kSlice,
    kCopy,
    kSend,
    kReceive,
    kWait,
  };
  Kind kind = Kind::kCopy;
  // kLaunch
  kernels::KernelFn kernel;
  kernels::KernelArgs args = {nullptr, nullptr};
  // Collectives; a null group is this rank alone
  Communicator* group = nullptr;
  Reduction reduction = Reduction::kSum;
  absl::Span<const ReduceBuffer> buffers;  // kAllReduce
  absl::Span<const PieceBuffer> pieces;    // other collectives
  // kSlice, kCopy
  const void* source = nullptr;
  void* target = nullptr;
  int64_t bytes = 0;                   // of the target
  ConstPiece piece = {nullptr, 0, 0};  // kSlice: how it lies in the source, where `source` is
  Transfer* transfer = nullptr;        // kSend, kReceive
  // Of a collective that is started, and of its kWait; null where the group is this rank alone, for
  // which starting it is doing it.
  CommunicationStream* stream = nullptr;
  CommunicationStream::Task* task = nullptr;
  bool at_once = false;  // the wait is right behind the start, and does both
  int started = -1;      // kWait: the step that it ends
  // Of a collective whose communicator is asynchronous, for its messages.
  std::string label;
  // Of a started collective of a device whose communicator blocks: what the device has to do
  // before, which the stream's thread waits for. Of its kWait too.
  Backend::Event* ready = nullptr;
};

// Whether replaced computing leaves it out.
inline bool IsComputing(Step::Kind kind) {
  return kind == Step::Kind::kLaunch || kind == Step::Kind::kSlice || kind == Step::Kind::kCopy;
}

// A pointer into a buffer of several copies, as the current microbatch needs it.
struct CopyPointer {
  void** place;
  char* first;  // what it is for the first copy
  const plan::Buffer* buffer;

  void Follow(int64_t microbatch) const {
    *place = first + (OffsetOf(*buffer, microbatch) - buffer->offset());
  }
};

// Steps that a device records once for each set of copies that they use, and then replays.
struct RecordedPart {
  size_t begin = 0, end = 0;
  // Libraries load what they need when they first run, and that is not to be recorded.
  bool has_run = false;
  struct Recording {
    std::unique_ptr<Backend::Recording> steps;
    int64_t calls = 0;  // of communicators (Communicator::Watch)
  };
  std::vector<Recording> recordings;  // by microbatch, up to the cycle
  std::string label;                  // for messages
};

struct PreparedSegment {
  using Duration = std::chrono::steady_clock::duration;

  const plan::Segment* segment = nullptr;
  std::vector<Step> steps;
  std::vector<CopyPointer> copy_pointers;  // into what follows, and into steps
  // After how many microbatches all copies are the same again.
  int64_t copy_cycle = 1;
  std::vector<RecordedPart> parts;  // in order; what is between them is never recorded
  // Instead of computing (ExecutorOptions::replace_compute): how long all together, and before each
  // step; as much as is left behind the last one.
  std::optional<Duration> sleep;
  std::vector<Duration> sleep_before;
  // What the steps point into. Never resized once filled.
  std::vector<const void*> operands;
  std::vector<void*> results;
  std::vector<ReduceBuffer> reduce_buffers;
  std::vector<PieceBuffer> piece_buffers;
  std::vector<std::unique_ptr<Backend::Event>> events;
  SegmentProfile profile;
  StepClock clock;  // of the profile
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_STEPS_H_
