// Makes a segment's instructions into steps.
#ifndef ORIEL_RUNTIME_EXEC_PREPARE_H_
#define ORIEL_RUNTIME_EXEC_PREPARE_H_

#include <map>
#include <memory>

#include "absl/status/status.h"
#include "runtime/backend/backend.h"
#include "runtime/exec/groups.h"
#include "runtime/exec/step_runner.h"
#include "runtime/exec/steps.h"
#include "runtime/exec/streams.h"
#include "runtime/exec/transfers.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// By the plan's number.
using CommunicationStreams = std::map<int, std::unique_ptr<CommunicationStream>>;

// What Backend::Prepare and Synchronize call a launch.
struct LaunchNumber {
  int segment;
  int instruction;

  int64_t ToInt() const { return int64_t{segment} << 32 | instruction; }
  static LaunchNumber FromInt(int64_t number) {
    return {static_cast<int>(number >> 32), static_cast<int>(number & 0xffffffff)};
  }
};

// Of one rank's program. What it is made with outlives what it prepares.
class SegmentPreparer {
 public:
  struct Environment {
    const plan::Plan& plan;
    const plan::Program& program;
    char* arena;
    int num_threads;
    Backend& backend;
    const CommunicationGroups& groups;
    Transfers& transfers;
    StepRunner& runner;
    CommunicationStreams& streams;  // gets those that the program uses
  };

  explicit SegmentPreparer(const Environment& environment) : e_(environment) {}

  // Fills `prepared`, which then stays where it is. On an error `*instruction` is what it is about.
  absl::Status Prepare(int segment, PreparedSegment& prepared, int* instruction);

 private:
  absl::Status Prepare(const plan::Instruction& instruction, LaunchNumber number,
                       PreparedSegment& prepared, Step& step);
  absl::Status PrepareLaunch(const plan::Launch& launch, LaunchNumber number,
                             PreparedSegment& prepared, Step& step);
  absl::Status PrepareCollective(const plan::Collective& collective, PreparedSegment& prepared,
                                 Step& step);
  absl::Status PreparePieces(const plan::Collective& collective, PreparedSegment& prepared,
                             Step& step);
  void PrepareCopy(const plan::Copy& copy, PreparedSegment& prepared, Step& step);
  void PrepareSlice(const plan::Slice& slice, PreparedSegment& prepared, Step& step);
  absl::Status PrepareStreams(PreparedSegment& prepared);
  absl::StatusOr<CommunicationStream*> StreamOf(int number, const Communicator& group);

  void* Address(const plan::Buffer& buffer) const { return e_.arena + buffer.offset(); }

  const Environment e_;
};

// Which steps a device records. They are those that put work on it and don't make the host wait.
std::vector<RecordedPart> PartsToRecord(const PreparedSegment& prepared);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_PREPARE_H_
