// Runs the segments of a plan for one rank.
#ifndef ORIEL_RUNTIME_EXEC_EXECUTOR_H_
#define ORIEL_RUNTIME_EXEC_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "runtime/backend/backend.h"
#include "runtime/base/tensor.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/trace.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// A buffer of the arena. Valid as long as the executor.
struct BufferView {
  TensorSpec spec;
  void* data = nullptr;  // an address of the device, which is for the executor to use
};

struct ExecutorOptions {
  std::shared_ptr<Backend> backend;  // the rank's device; null: the host
  int num_threads = 1;               // that each kernel may use
  bool profile = false;              // measure each instruction
  // Fills memory with 0xff bytes (NaN in every float type) as soon as no later instruction reads
  // what it holds, so that a value that survives by chance shows. For tests.
  bool poison_dead_memory = false;
  // Reads back every result, and refuses the first one with a NaN (nan_check.h). Slow.
  bool check_nan = false;
  // Whether a device that can (CUDA graphs) records its work, and replays it. Nothing is recorded
  // where runs are measured, traced, poisoned or checked.
  bool record = true;
  // By segment ("forward.2") or kind of segments ("forward"), where the segment counts before its
  // kind: milliseconds that a run takes instead of computing. It waits for what it receives, sleeps
  // this long before it sends, and communicates as planned; launches, copies and slices are left
  // out, so that values mean nothing. Where it starts collectives, it sleeps an equal part for each
  // launch. For studies of schedules.
  std::map<std::string, double> replace_compute;
  TraceRecorder* trace = nullptr;  // if not null: gets runs, waits and collectives
};

// Time spent in a segment since the executor was made. On a device that is asynchronous, the time
// that its computing stream takes (step_clock.h).
struct SegmentProfile {
  int64_t runs = 0;
  std::vector<int64_t> nanoseconds;  // total of each instruction, in the plan's order
  // Of each instruction's shortest run: the first one also loads libraries' kernels.
  std::vector<int64_t> least_nanoseconds;
  // The shortest time between two of a device's events with nothing between them: what each of the
  // times above has too much, or so. 0 where no events are used.
  int64_t least_empty_nanoseconds = 0;
};

// One rank's arena, prepared kernels, communication groups and streams. Not thread-safe: one thread
// drives an executor. Each communication stream of the program has a thread of its own, or is a
// stream of the device.
class Executor {
 public:
  // Allocates and zeroes the arena, fills in constants, prepares every kernel, makes the
  // communication groups (collective: every rank of `world` calls it). `plan` must outlive
  // the executor and have passed VerifyPlan. `world` may be null for a plan of one rank.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const plan::Plan& plan, int64_t rank,
                                                          Communicator* world,
                                                          const ExecutorOptions& options);
  virtual ~Executor() = default;

  // Runs all instructions of a segment, for a microbatch from 0 on. Where a program receives in
  // the training step, the runs of a step come in the order of its schedule, for that says when a
  // rank gets ready to receive: else FailedPrecondition. Segments outside of the schedule (eval)
  // may run between steps, and get ready when they begin.
  //
  // On a device that is asynchronous, the run may be under way when this returns. What goes wrong
  // in it is then the error of a later Run or Read, of which it names the run that failed.
  //
  // An error names rank, segment, instruction number, kernel or channel, and the ONNX node it came
  // from. The caller then aborts the world with it, for the peers may be waiting for this rank, and
  // before it destroys the executor, for messages and collectives may be on their way (see Message,
  // CommunicationStream).
  virtual absl::Status Run(std::string_view segment, int64_t microbatch = 0) = 0;

  // The buffer with this kind, reference and slot (the fields of plan::Buffer); NotFound
  // if the rank's program has none.
  virtual absl::StatusOr<BufferView> Find(plan::BufferKind kind, std::string_view ref,
                                          std::string_view slot = "") const = 0;

  // How the host gets at a buffer that Find has given; HostAccess (host_access.h) is more
  // convenient. What is read is what the runs before have left, and what is written is there for
  // the runs behind it.
  //
  // The buffer's own memory, to be read and written between runs, where the device is the host;
  // else null.
  virtual void* HostMemory(const BufferView& view) const = 0;
  // Copies `bytes` from byte `offset` of the buffer on. Where runs go on behind Run's back, it
  // waits for them, and returns what has gone wrong in them.
  virtual absl::Status Read(const BufferView& view, int64_t offset, void* target,
                            int64_t bytes) const = 0;
  // The other way round. The source may change as soon as it returns.
  virtual absl::Status Write(const BufferView& view, int64_t offset, const void* source,
                             int64_t bytes) = 0;

  // Runs a kernel without operands, whose result is the buffer, as Write would fill it.
  // Unimplemented, or NotFound, where the device has none for it; as on the host, which computes
  // by itself what it writes.
  virtual absl::Status Fill(const BufferView& /*view*/, const kernels::KernelSpec& /*spec*/) {
    return absl::UnimplementedError("nothing is filled by kernels here");
  }

  // FailedPrecondition unless the options asked for it.
  virtual absl::StatusOr<SegmentProfile> Profile(std::string_view segment) const = 0;
  virtual const plan::Program& program() const = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_EXECUTOR_H_
