// Collectives between the ranks of a job, as the executor sees them.
//
// Every rank of a group calls the same collectives in the same order. Host
// reductions sum in rank order, element by element, whatever the message size:
// all communicators give the same bits.
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

  // Makes every pending and later call on any rank return Aborted with `reason`
  // (best effort: a peer in another process is told by the launcher).
  virtual void Abort(const absl::Status& reason) = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_COMMUNICATOR_H_
