// The collectives of host communicators whose ranks are processes: what is reduced, in which order,
// and how buffers are packed into messages. How bytes go from rank to rank is left to MPI or TCP.
//
// An all-reduce is an exchange of slices, a local reduction in rank order, and an all-gather: so
// every sum has the same bits, whatever moves the bytes. Small buffers are packed together, and all
// work goes by windows, which bound the scratch memory.
#ifndef ORIEL_RUNTIME_COMM_RANK_ORDER_H_
#define ORIEL_RUNTIME_COMM_RANK_ORDER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {

class RankOrderCommunicator : public Communicator {
 public:
  int64_t rank() const final { return rank_; }
  int64_t size() const final { return size_; }
  absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) final;
  absl::Status AllGather(absl::Span<const PieceBuffer> buffers) final;
  absl::Status ReduceScatter(Reduction reduction, absl::Span<const PieceBuffer> buffers) final;
  absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) final;
  using Communicator::AllGather;

 protected:
  // Bytes that lie within a block of memory.
  struct Extent {
    int64_t offset = 0;
    int64_t bytes = 0;
  };

  RankOrderCommunicator(int64_t rank, int64_t size);

  // What follows is collective over the group, and called for more than one rank only. No extent is
  // larger than 64 MiB, but in GatherWhole.

  // Sends bytes outgoing[r] of `source` to rank r, and receives what rank r has for this one to
  // incoming[r] of `target`. A rank's own bytes are copied.
  virtual absl::Status ExchangeBytes(const char* source, absl::Span<const Extent> outgoing,
                                     char* target, absl::Span<const Extent> incoming) = 0;
  // Bytes extents[r] of `target` are rank r's: its own are there, the others' arrive.
  virtual absl::Status GatherBytes(char* target, absl::Span<const Extent> extents) = 0;
  // The same for `bytes` of each rank, one behind the other, however many.
  virtual absl::Status GatherWhole(char* target, int64_t bytes) = 0;

 private:
  // Of an all-reduce's buffer: what is reduced at a time.
  struct Portion {
    const char* source;
    char* target;
    int64_t count;
    DType dtype;

    int64_t bytes() const { return count * DTypeBytes(dtype); }
  };

  // In a window of pieces: of one buffer's, bytes [begin, begin + bytes), at `offset` of what is
  // moved of each rank's.
  struct Part {
    size_t buffer;
    int64_t begin;
    int64_t bytes;
    int64_t offset;
  };

  int64_t WindowOfPiece() const;
  template <typename Move>
  absl::Status ForEachWindow(absl::Span<const PieceBuffer> buffers, const Move& move);
  absl::Status GatherWindow(int64_t bytes);
  template <typename Unpacker>
  absl::Status ExchangePieces(absl::Span<const PieceBuffer> buffers, const Unpacker& unpack);

  Slice SliceOfPortion(size_t portion, int64_t rank) const;
  template <typename Visit>
  void ForEachPackedSlice(Visit visit) const;
  absl::Status ReduceWindow(Reduction reduction);
  char* Pack();
  void Unpack();
  void ReduceReceived(Reduction reduction, int64_t stride, char* result);

  const int64_t rank_;
  const int64_t size_;
  std::vector<Portion> window_;         // that is reduced
  std::vector<Part> parts_;             // of the window of pieces that is moved
  std::vector<PieceBuffer> scattered_;  // in an all-gather: those that are packed
  // Scratch memory, kept between calls.
  std::vector<char> packed_;
  std::vector<char> received_;
  std::vector<Extent> outgoing_;
  std::vector<Extent> incoming_;
  std::vector<const void*> sources_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_RANK_ORDER_H_
