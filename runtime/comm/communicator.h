// Collectives and messages between the ranks of a job, as the executor sees them.
//
// Every rank of a group calls the same collectives in the same order. Host
// reductions sum in rank order, element by element, whatever the message size
// and however many buffers go together: all communicators give the same bits.
//
// A communicator is used by one thread at a time. Different groups of a rank may be in calls at the
// same time, each in a thread of its own (see CheckConcurrent); Abort may be called from any.
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
#include "runtime/comm/link.h"

namespace oriel::runtime {

enum class Reduction { kSum, kMax };

// One buffer of a collective; source and target may be the same address.
struct ReduceBuffer {
  const void* source;
  void* target;
  int64_t count;  // elements
  DType dtype;

  int64_t bytes() const { return count * DTypeBytes(dtype); }
};

// How a tensor is cut along one dimension into a piece for each rank of a group: it is [outer,
// ranks, inner] elements. Rank r's piece is [outer, inner], row-major, with r in the middle.
struct Blocks {
  int64_t outer = 1;
  int64_t inner = 0;

  int64_t num_elements() const { return outer * inner; }  // of a piece
};

// One tensor of a collective that moves pieces of tensors. `source` and `target` must not overlap
// each other or another tensor's, but that an all-gather's source may be this rank's piece within a
// target of outer 1.
struct PieceBuffer {
  const void* source;
  void* target;
  DType dtype;
  Blocks source_blocks;  // how the source is cut; of an all-gather nothing
  Blocks target_blocks;  // how the target is joined; of a reduce-scatter nothing
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

  // The same ranks by other numbers: rank i of the result is rank `ranks[i]` of this one. Of a
  // world, collective over it, before groups are made; every rank passes the same list. From here
  // on errors have the new numbers. The result is destroyed before this one, which goes on.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Renumber(
      const std::vector<int64_t>& /*ranks*/) {
    return absl::UnimplementedError(name() + " can't number its ranks otherwise");
  }

  // Reduces every buffer over the ranks. Counts and dtypes agree on all ranks.
  // Aborted, naming the rank, when a peer has failed or left.
  virtual absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) = 0;
  // `bytes` at `data` of rank `root` reach `data` of every rank.
  virtual absl::Status Broadcast(int64_t root, void* data, int64_t bytes) = 0;

  // The following move pieces of tensors, of all of `buffers` together: one meeting of the ranks,
  // and one message where they are small. Blocks and dtypes agree on all ranks, or all of them get
  // Aborted where the communicator can tell.

  // `source` is this rank's piece of `target`; every rank gets all of it.
  virtual absl::Status AllGather(absl::Span<const PieceBuffer> buffers) = 0;
  // `target` becomes this rank's piece of the sources' reduction: the bits of AllReduce.
  virtual absl::Status ReduceScatter(Reduction reduction,
                                     absl::Span<const PieceBuffer> buffers) = 0;
  // Piece r of `source` goes to rank r; what rank r sends becomes piece r of `target`. A piece has
  // the same elements in the same order on both sides: the blocks' products are equal.
  virtual absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) = 0;
  // `bytes` of each rank are laid one behind the other at `target`, in rank order.
  absl::Status AllGather(const void* source, int64_t bytes, void* target) {
    return AllGather({{source, target, DType::kU8, {}, {1, bytes}}});
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

  // Whether groups of a rank may be in calls at the same time. Unavailable, with what is missing,
  // if this communicator can't.
  virtual absl::Status CheckConcurrent() const { return absl::OkStatus(); }
  // Whether the calls that follow come from a thread that works beside one that computes. There who
  // waits leaves the core at once; else it looks for a while whether it need not wait. Between
  // calls; at first false.
  virtual void SetBackground(bool /*background*/) {}

  // Of a communicator for a device's memory. Asynchronous: calls return before they are done, as
  // work on the device's stream that SetStream has given last. Memory is read and written there, in
  // the stream's order; Message::Wait makes the stream wait, not the host; a collective can be
  // recorded into a graph. Else a call blocks until the memory holds its result, and what was put
  // on streams before must be done when it is made.
  virtual bool IsAsynchronous() const { return false; }
  // A stream's handle (CUstream). Called before each call that is to be put on another stream than
  // the one before. Nothing where the communicator is not asynchronous.
  virtual void SetStream(void* /*stream*/) {}
  // What the calls that follow are, for messages about peers that are late: rank, segment,
  // instruction and ONNX node. Called where the communicator is asynchronous.
  virtual void SetLabel(const std::string& /*what*/) {}
  // Of a world, for it and the groups made of it: the calls since the last time were recorded into
  // one graph. Returns a number for Watch.
  virtual int64_t EndRecording() { return 0; }
  // Of the same world, behind each launch of that graph on a stream: the calls that it holds have
  // to end within the communicator's time, from here on. `what` is the graph, for messages.
  virtual absl::Status Watch(int64_t /*recording*/, void* /*stream*/, const std::string& /*what*/) {
    return absl::OkStatus();
  }
  // Whether messages can be work on streams too. If not, Send and Receive are all there is.
  virtual bool HasLinks() const { return false; }
  // A link for each of `ends`, of which this rank is one. Both ranks of a link open it; each opens
  // its links in an order that is part of one order of all ranks, for they meet.
  virtual absl::StatusOr<std::vector<std::unique_ptr<Link>>> OpenLinks(
      const std::vector<LinkEnds>& /*ends*/) {
    return absl::UnimplementedError(name() + " has no links");
  }
  // OK, or why the job has ended, as far as this rank knows: a rank has aborted or was lost, or a
  // call that had returned has failed, of this communicator or of a group made of it. Does not
  // wait. May be called from any thread.
  virtual absl::Status Check() { return absl::OkStatus(); }

  // Makes every pending and later call on any rank return Aborted with `reason`
  // (best effort: a peer in another process is told by the launcher).
  virtual void Abort(const absl::Status& reason) = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_COMMUNICATOR_H_
