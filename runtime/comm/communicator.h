// Collectives and messages between the ranks of a job, as the executor sees them.
//
// Every rank of a group calls the same collectives in the same order. Host
// reductions sum in rank order, element by element, whatever the message size:
// all communicators give the same bits.
//
// Messages go from one rank to another, and don't wait for collectives, nor collectives for them:
//   ORIEL_ASSIGN_OR_RETURN(auto message, world.Receive(/*peer=*/2, /*tag=*/7, data, bytes));
//   ..  // the rank computes
//   ORIEL_RETURN_IF_ERROR(message->Wait());  // `data` has arrived
#ifndef ORIEL_RUNTIME_COMM_COMMUNICATOR_H_
#define ORIEL_RUNTIME_COMM_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/tensor.h"

namespace oriel::runtime {

enum class Reduction { kSum, kMax };

// One buffer of a collective; source and target may be the same address.
struct ReduceBuffer {
  const void* source;
  void* target;
  int64_t count;  // elements
  DType dtype;
};

// How a tensor is cut along one dimension into a piece for each rank of a group: it is [outer,
// ranks, inner] elements. Rank r's piece is [outer, inner], row-major, with r in the middle.
struct Blocks {
  int64_t outer = 1;
  int64_t inner = 0;

  int64_t num_elements() const { return outer * inner; }  // of a piece
};

// A message on its way, on the side that sends or on the side that receives it.
//
// Destroying one that is not done gives it up; after that its memory is not touched. That is for a
// rank that fails: its peer gets Aborted, or does not see it, and later messages of the same
// sender, receiver and tag are not to be relied on. MPI cannot take a send back: its destructor
// waits up to 5 s until the peer has received it, then ends the job. So a rank that fails calls
// Abort() first. A message is destroyed before its communicator.
class Message {
 public:
  virtual ~Message() = default;
  // Blocks until the message is done: what was sent may be written over, what is received has
  // arrived. Aborted, naming ranks, tag and sizes, if the two sides differ in size; Aborted, naming
  // the rank, when a rank has failed or the peer has left.
  virtual absl::Status Wait() = 0;
};

// Tags of messages are below this.
inline constexpr int64_t kMaxTags = 32768;

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  // "in_process", "mpi"
  virtual std::string name() const = 0;

  // A communicator of the ranks that `ranks` lists (ranks of this one, sorted,
  // this rank among them). Collective over those ranks; every member passes the
  // same list. Members are numbered by their place in the list.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Group(
      const std::vector<int64_t>& ranks) = 0;

  // Reduces every buffer over the ranks. Counts and dtypes agree on all ranks.
  // Aborted, naming the rank, when a peer has failed or left.
  virtual absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) = 0;
  // `bytes` at `data` of rank `root` reach `data` of every rank.
  virtual absl::Status Broadcast(int64_t root, void* data, int64_t bytes) = 0;

  // The following move pieces of tensors. Blocks and dtypes agree on all ranks, or all of them get
  // Aborted where the communicator can tell. `source` and `target` must not overlap, but that an
  // all-gather's source may be this rank's piece within a target of outer 1.

  // `source` is this rank's piece of `target`; every rank gets all of it.
  virtual absl::Status AllGather(DType dtype, const void* source, void* target,
                                 Blocks target_blocks) = 0;
  // `target` becomes this rank's piece of the sources' reduction: the bits of AllReduce.
  virtual absl::Status ReduceScatter(Reduction reduction, DType dtype, const void* source,
                                     Blocks source_blocks, void* target) = 0;
  // Piece r of `source` goes to rank r; what rank r sends becomes piece r of `target`. A piece has
  // the same elements in the same order on both sides: the blocks' products are equal.
  virtual absl::Status AllToAll(DType dtype, const void* source, Blocks source_blocks, void* target,
                                Blocks target_blocks) = 0;
  // `bytes` of each rank are laid one behind the other at `target`, in rank order.
  absl::Status AllGather(const void* source, int64_t bytes, void* target) {
    return AllGather(DType::kU8, source, target, Blocks{1, bytes});
  }

  virtual absl::Status Barrier() = 0;

  // Starts a message of `bytes` >= 0 at `data`, which stays in place until the message is done.
  // `peer` is a rank of this communicator, 0 <= tag < kMaxTags. Messages with the same sender,
  // receiver and tag match in the order in which they are started; nothing else orders them. A
  // message to oneself works, if its memory on both sides does not overlap.
  //
  // A send may not be done before its receive is started. Once both are, waiting for either side
  // ends: ranks that first start all their messages may wait for them in any order.
  virtual absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                        int64_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                           int64_t bytes) = 0;

  // Lets the messages that are on their way go on. Without it some of MPI's, those that are large
  // and go through no memory that both ranks see, wait until both are in a call. To be called often
  // by a rank that computes: it returns at once.
  virtual void Progress() {}

  // Makes every pending and later call on any rank return Aborted with `reason`
  // (best effort: a peer in another process is told by the launcher).
  virtual void Abort(const absl::Status& reason) = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_COMMUNICATOR_H_
