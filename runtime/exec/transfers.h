// The messages of a rank's program: what its Send and Receive instructions do.
#ifndef ORIEL_RUNTIME_EXEC_TRANSFERS_H_
#define ORIEL_RUNTIME_EXEC_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backend/backend.h"
#include "runtime/base/box.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/link_message.h"
#include "runtime/exec/receive_schedule.h"
#include "runtime/exec/trace.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/transfer_layout.h"
#include "runtime/plan/transfer_order.h"

namespace oriel::runtime {

// A Send or Receive instruction of one rank. Parts of the tensor that are contiguous in the rank's
// piece are sent from there and received there, others are packed in memory of their own.
class Transfer {
 public:
  // `arena` is the memory of the program's buffers.
  Transfer(const plan::Buffer& buffer, const Box& local, const std::vector<TransferPart>& parts,
           int channel, char* arena, Backend& backend);

  // Packing memory for all copies: its size, and where it is.
  int64_t staging_bytes() const { return static_cast<int64_t>(memory_.size()) * staging_stride_; }
  void set_staging(char* staging) { staging_ = staging; }
  // Behind set_staging: its messages go over links, of which lane(peer) is one's.
  absl::Status Connect(const std::function<LinkLane(int64_t)>& lane, std::string label);
  std::vector<int64_t> Peers() const;
  int channel() const { return channel_; }
  // Whether messages of the microbatch's copy are on their way.
  bool IsPending(int64_t microbatch) const;

  // Puts together what is sent from packing memory; then Send sends it, or makes it ready.
  absl::Status Pack(int64_t microbatch);
  absl::Status Send(Communicator& world, int64_t microbatch);
  // Becomes ready to receive.
  absl::Status Post(Communicator& world, int64_t microbatch);
  // Puts what is ready on its links.
  absl::Status Put(int64_t microbatch);
  // Until what was sent may be written over, or what is received has arrived in the buffer.
  absl::Status WaitUntilSent(int64_t microbatch);
  absl::Status WaitUntilReceived(int64_t microbatch);

 private:
  struct Part {
    int64_t peer;
    int64_t bytes;
    int64_t offset;               // of its memory in a copy, or in a copy's packing memory
    std::optional<BoxRuns> runs;  // if it is packed: of the rank's piece, and of the part
  };

  int64_t CopyOf(int64_t microbatch) const {
    return microbatch % static_cast<int64_t>(memory_.size());
  }
  char* Address(const Part& part, int64_t copy) const {
    return (part.runs ? staging_ + copy * staging_stride_ : memory_[copy]) + part.offset;
  }
  std::unique_ptr<Message>& MessageOf(size_t part, int64_t copy) {
    return messages_[copy * parts_.size() + part];
  }
  LinkMessage& LinkMessageOf(size_t part, int64_t copy) {
    return link_messages_[copy * parts_.size() + part];
  }
  bool IsLinked() const { return !link_messages_.empty(); }
  absl::Status MakeReady(int64_t copy);
  // Nothing if there is no message.
  absl::Status WaitFor(size_t part, int64_t copy);

  int channel_;
  std::vector<char*> memory_;  // of each copy
  int64_t element_bytes_;
  char* staging_ = nullptr;
  int64_t staging_stride_ = 0;
  Backend* backend_;
  std::vector<Part> parts_;
  std::vector<std::unique_ptr<Message>> messages_;  // of each copy and part; null: none on its way
  std::vector<LinkMessage> link_messages_;          // instead, likewise
  std::string label_;                               // for their errors
};

// Where a rank is in one order of all messages, which it puts on links: of steps, or of
// evaluations.
struct LinkWalk {
  TransferOrder::Program order;
  size_t run = 0;
  int put = 0;
};

// All of a rank's. What it is ready to receive depends on where the rank is in the training step,
// which follows from the runs: those of segments in the schedule are in its order.
class Transfers {
 public:
  // `arena` is the memory of the program's buffers; `world` may be null if nothing is sent.
  // `settle` waits for what the device has to do, before a communicator that is not asynchronous
  // touches its memory. All arguments must outlive it.
  static absl::StatusOr<Transfers> Create(const plan::Plan& plan, const plan::Program& program,
                                          int64_t rank, Communicator* world, Backend& backend,
                                          std::function<absl::Status()> settle, char* arena,
                                          TraceRecorder* trace);

  // Of a Send or Receive instruction.
  Transfer* Find(int segment, int instruction) { return &transfers_.at({segment, instruction}); }

  // Around the instructions of each run. Before it, messages that the run would write over are
  // waited for. FailedPrecondition if the schedule goes on with another run.
  absl::Status BeforeRun(int segment, int64_t microbatch);
  absl::Status AfterRun(int segment);
  absl::Status Send(Transfer& transfer, int64_t microbatch);
  absl::Status Receive(Transfer& transfer, int64_t microbatch);
  // Between instructions: messages go on while the rank computes.
  void Progress() {
    if (!transfers_.empty()) world_->Progress();
  }

 private:
  using Place = std::pair<int, int>;  // segment, instruction

  struct Used {
    std::vector<Place> sends;     // all whose buffer the segment uses
    std::vector<Place> receives;  // its own
    bool scheduled = false;
  };

  absl::Status Connect(int64_t rank, Backend& backend);
  absl::Status BeginWalk(int segment, int64_t microbatch);
  absl::Status Pass();
  void Add(Place place, const TransferLayout& layout, int64_t rank, char* arena, Backend& backend);
  const plan::Instruction& InstructionAt(Place place) const;
  int ChannelAt(Place place) const;
  void Outline();
  absl::Status CheckSchedule(int segment, int64_t microbatch) const;
  absl::Status Post(Place place, int64_t microbatch);
  absl::Status PostWhatIsFree();
  absl::Status AtPlace(const absl::Status& status, Place place) const;
  absl::Status OnChannel(const absl::Status& status, const Transfer& transfer) const;

  const plan::Plan* plan_ = nullptr;
  const plan::Program* program_ = nullptr;
  Communicator* world_ = nullptr;
  TraceRecorder* trace_ = nullptr;
  std::function<absl::Status()> settle_;  // null: there is nothing to wait for
  DeviceMemory staging_;
  std::map<Place, Transfer> transfers_;
  std::vector<Used> used_;  // of each segment
  std::vector<std::vector<ScheduledReceive>> schedule_;
  int position_ = 0;  // runs of the step that are done
  // Where there are links:
  std::vector<std::unique_ptr<Link>> links_;
  LinkWalk step_, eval_;
  LinkWalk* walk_ = nullptr;  // of the run; null: it has no messages
  int point_ = 0;             // that comes next
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_TRANSFERS_H_
