// What all host communicators share: the arithmetic of reductions, so that they give the same
// bits, and the checks of arguments, so that they refuse the same.
#ifndef ORIEL_RUNTIME_COMM_REDUCE_H_
#define ORIEL_RUNTIME_COMM_REDUCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/base/tensor.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// f32, f64, f16, bf16, i64 and i32.
bool CanReduce(DType dtype);

// The buffers of one AllReduce call can be reduced: known dtypes, no negative count, no null
// address. InvalidArgument names the buffer.
absl::Status CheckReduceBuffers(absl::Span<const ReduceBuffer> buffers);

// The arguments of collectives on pieces: no negative size, pieces of the same size on both sides,
// no null address, and dtypes that can be reduced if they are. InvalidArgument names the operation.
absl::Status CheckAllGather(absl::Span<const PieceBuffer> buffers);
absl::Status CheckReduceScatter(absl::Span<const PieceBuffer> buffers);
absl::Status CheckAllToAll(absl::Span<const PieceBuffer> buffers);

// The arguments of Communicator::Send and Receive. InvalidArgument names the operation.
absl::Status CheckMessage(const char* operation, int64_t peer, int64_t tag, const void* data,
                          int64_t bytes, int64_t size);
// What both sides of a message get if their sizes differ; the ranks are of the world.
absl::Status MessageMismatch(int64_t sender, int64_t receiver, int64_t tag, int64_t sent,
                             int64_t received);

// The arguments of Communicator::Group on rank `self` of `size`: ascending ranks, with this one.
absl::Status CheckGroup(const std::vector<int64_t>& ranks, int64_t self, int64_t size);

// By rank, its number in Communicator::Renumber(ranks). InvalidArgument unless `ranks` has each
// rank below `size` once.
absl::StatusOr<std::vector<int64_t>> NewNumbers(const std::vector<int64_t>& ranks, int64_t size);

// target[t][i] = sources[0][i] ∘ sources[1][i] ∘ .., from left to right, for each i and t.
//
// ∘ is a sum or a maximum (of which NaN is the greatest). f16 and bf16 are accumulated in f32 and
// rounded once, to nearest even; integer sums wrap. A target may be a source, but not overlap one
// otherwise. `dtype` is one that CanReduce takes.
void ReduceInOrder(Reduction reduction, DType dtype, absl::Span<const void* const> sources,
                   absl::Span<void* const> targets, int64_t count);

// Elements [begin, begin + count) of a buffer.
struct Slice {
  int64_t begin;
  int64_t count;
};

// The slice that `rank` of `size` reduces of the `index`-th buffer, which has `count` elements.
// The slices of all ranks cover the buffer; they begin at multiples of 64 bytes; small buffers
// go to different ranks by turns.
Slice SliceOf(int64_t count, DType dtype, int64_t size, int64_t rank, int64_t index);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_REDUCE_H_
