// The timeline of a run as a file for ui.perfetto.dev and chrome://tracing.
//
//   ORIEL_ASSIGN_OR_RETURN(TraceFile file, TraceFile::Open(path, plan, rank, world));
//   ..  // training, which fills the recorder
//   ORIEL_RETURN_IF_ERROR(file.Write(program, recorder.slices()));
#ifndef ORIEL_RUNTIME_TRAIN_TRACE_FILE_H_
#define ORIEL_RUNTIME_TRAIN_TRACE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/files.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/trace.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// What a rank reads its times from.
struct TraceClock {
  std::string host;   // ranks of one host read one clock
  int64_t start = 0;  // when the rank left the barrier at the start: TraceNow()
};

// A rank's slices, in words: an object with the clock and the events.
std::string EncodeTrace(const plan::Plan& plan, const plan::Program& program,
                        const TraceClock& clock, const std::vector<TraceSlice>& slices);

// The file: of what each rank has encoded, in the order of ranks. Times count from the barrier, in
// microseconds: on each host from when the first of its ranks left it. So times of one host compare
// exactly, and those of two hosts are off by as much as one of them left it later than the other:
// at most the time of a barrier, tens of microseconds on a fast network.
// InvalidArgument if a text is not that of a rank.
absl::StatusOr<std::string> FormatTrace(const std::vector<std::string>& ranks);

// One process ("oriel-run") with a thread for each rank, and a slice for each run of a segment, for
// the time in which it waits for messages, and for collectives; and a thread for each of its
// communication streams, with what they do meanwhile.
class TraceFile {
 public:
  // Collective. Rank 0 creates the file, which appears once it is written, and reports why it
  // cannot. `plan` and `world` (null for one rank) must outlive the object.
  static absl::StatusOr<TraceFile> Open(const std::string& path, const plan::Plan& plan,
                                        int64_t rank, Communicator* world);
  // Once, and collective: rank 0 writes the slices of all ranks.
  absl::Status Write(const plan::Program& program, const std::vector<TraceSlice>& slices);

 private:
  TraceFile() = default;
  absl::StatusOr<std::vector<std::string>> Gather(std::string mine) const;

  const plan::Plan* plan_ = nullptr;
  int64_t rank_ = 0;
  Communicator* world_ = nullptr;
  TraceClock clock_;
  std::unique_ptr<AtomicFile> file_;  // on rank 0
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_TRACE_FILE_H_
