#include "runtime/comm/rank_order.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/comm/blocks.h"

namespace oriel::runtime {
namespace {

// Bytes reduced at a time.
constexpr int64_t kWindowBytes = 16 << 20;
// Smaller pieces are packed together; from this size on, copying costs more than a message.
constexpr int64_t kPackBytes = 256 << 10;

int64_t Padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

template <typename T>
void Grow(std::vector<T>& scratch, int64_t size) {
  if (static_cast<int64_t>(scratch.size()) < size) scratch.resize(size);
}

}  // namespace

RankOrderCommunicator::RankOrderCommunicator(int64_t rank, int64_t size)
    : rank_(rank), size_(size), outgoing_(size), incoming_(size), sources_(size) {}

absl::Status RankOrderCommunicator::AllReduce(Reduction reduction,
                                              absl::Span<const ReduceBuffer> buffers) {
  ORIEL_RETURN_IF_ERROR(CheckReduceBuffers(buffers));
  window_.clear();
  int64_t window_bytes = 0;
  for (const ReduceBuffer& buffer : buffers) {
    const int64_t width = DTypeBytes(buffer.dtype);
    for (int64_t begin = 0; begin < buffer.count;) {
      const int64_t count = std::min(buffer.count - begin, kWindowBytes / width);
      const int64_t bytes = count * width;
      const bool alone = bytes >= kPackBytes;
      if (alone || window_bytes + bytes > kWindowBytes) {
        ORIEL_RETURN_IF_ERROR(ReduceWindow(reduction));
        window_bytes = 0;
      }
      window_.push_back({static_cast<const char*>(buffer.source) + begin * width,
                         static_cast<char*>(buffer.target) + begin * width, count, buffer.dtype});
      window_bytes += bytes;
      if (alone) {
        ORIEL_RETURN_IF_ERROR(ReduceWindow(reduction));
        window_bytes = 0;
      }
      begin += count;
    }
  }
  return ReduceWindow(reduction);
}

absl::Status RankOrderCommunicator::AllGather(absl::Span<const PieceBuffer> buffers) {
  ORIEL_RETURN_IF_ERROR(CheckAllGather(buffers));
  scattered_.clear();
  for (const PieceBuffer& buffer : buffers) {
    const int64_t width = DTypeBytes(buffer.dtype);
    const int64_t bytes = buffer.target_blocks.num_elements() * width;
    if (bytes == 0) continue;
    const MutablePiece place = PieceOf(buffer.target, buffer.target_blocks, size_, rank_, width);
    if (place.data != buffer.source) {
      CopyPiece(Contiguous(buffer.source, bytes), 0, place, 0, bytes);
    }
    if (size_ == 1) continue;
    if (buffer.target_blocks.outer == 1 && (buffers.size() == 1 || bytes >= kPackBytes)) {
      ORIEL_RETURN_IF_ERROR(GatherWhole(static_cast<char*>(buffer.target), bytes));
    } else {
      scattered_.push_back(buffer);
      scattered_.back().source_blocks = buffer.target_blocks;
    }
  }
  return ForEachWindow(scattered_, [&](int64_t bytes) { return GatherWindow(bytes); });
}

absl::Status RankOrderCommunicator::ReduceScatter(Reduction reduction,
                                                  absl::Span<const PieceBuffer> buffers) {
  ORIEL_RETURN_IF_ERROR(CheckReduceScatter(buffers));
  return ExchangePieces(buffers, [&](const Part& part, int64_t stride) {
    const PieceBuffer& buffer = buffers[part.buffer];
    for (int64_t rank = 0; rank < size_; ++rank) {
      sources_[rank] = received_.data() + rank * stride + part.offset;
    }
    void* place = static_cast<char*>(buffer.target) + part.begin;
    ReduceInOrder(reduction, buffer.dtype, sources_, absl::MakeConstSpan(&place, 1),
                  part.bytes / DTypeBytes(buffer.dtype));
  });
}

absl::Status RankOrderCommunicator::AllToAll(absl::Span<const PieceBuffer> buffers) {
  ORIEL_RETURN_IF_ERROR(CheckAllToAll(buffers));
  return ExchangePieces(buffers, [&](const Part& part, int64_t stride) {
    const PieceBuffer& buffer = buffers[part.buffer];
    for (int64_t rank = 0; rank < size_; ++rank) {
      CopyPiece(Contiguous(received_.data() + rank * stride + part.offset, part.bytes), 0,
                PieceOf(buffer.target, buffer.target_blocks, size_, rank, DTypeBytes(buffer.dtype)),
                part.begin, part.bytes);
    }
  });
}

// Bytes of a piece that are moved at a time: whole elements, and those of all ranks in a window.
int64_t RankOrderCommunicator::WindowOfPiece() const {
  return std::max<int64_t>(kWindowBytes / size_ / 64, 1) * 64;
}

// Calls move(bytes) for one window of the buffers' pieces after the other: `parts_` says what of
// which, in `bytes` bytes of each rank's. Pieces are of the size that source_blocks say.
template <typename Move>
absl::Status RankOrderCommunicator::ForEachWindow(absl::Span<const PieceBuffer> buffers,
                                                  const Move& move) {
  int64_t filled = 0;
  const auto flush = [&] {
    absl::Status status = parts_.empty() ? absl::OkStatus() : move(filled);
    parts_.clear();
    filled = 0;
    return status;
  };
  parts_.clear();
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t piece = buffers[i].source_blocks.num_elements() * DTypeBytes(buffers[i].dtype);
    for (int64_t begin = 0; begin < piece;) {
      const int64_t bytes = std::min(WindowOfPiece() - filled, piece - begin);
      parts_.push_back({i, begin, bytes, filled});
      begin += bytes;
      filled += Padded(bytes);
      if (filled >= WindowOfPiece()) ORIEL_RETURN_IF_ERROR(flush());
    }
  }
  return flush();
}

// All-gathers the parts of `scattered_`, `bytes` of each rank together.
absl::Status RankOrderCommunicator::GatherWindow(int64_t bytes) {
  Grow(received_, size_ * bytes);
  for (const Part& part : parts_) {
    std::memcpy(received_.data() + rank_ * bytes + part.offset,
                static_cast<const char*>(scattered_[part.buffer].source) + part.begin, part.bytes);
  }
  for (int64_t rank = 0; rank < size_; ++rank) incoming_[rank] = {rank * bytes, bytes};
  ORIEL_RETURN_IF_ERROR(GatherBytes(received_.data(), incoming_));
  for (const Part& part : parts_) {
    const PieceBuffer& buffer = scattered_[part.buffer];
    for (int64_t rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      CopyPiece(Contiguous(received_.data() + rank * bytes + part.offset, part.bytes), 0,
                PieceOf(buffer.target, buffer.target_blocks, size_, rank, DTypeBytes(buffer.dtype)),
                part.begin, part.bytes);
    }
  }
  return absl::OkStatus();
}

// Sends piece r of each source to rank r, by windows. For each part of one that has come,
// unpack(part, stride) is called: what rank r sent is at received_[r * stride + part.offset].
template <typename Unpacker>
absl::Status RankOrderCommunicator::ExchangePieces(absl::Span<const PieceBuffer> buffers,
                                                   const Unpacker& unpack) {
  return ForEachWindow(buffers, [&](int64_t stride) {
    Grow(packed_, size_ * stride);
    Grow(received_, size_ * stride);
    for (const Part& part : parts_) {
      const PieceBuffer& buffer = buffers[part.buffer];
      for (int64_t rank = 0; rank < size_; ++rank) {
        CopyPiece(
            PieceOf(buffer.source, buffer.source_blocks, size_, rank, DTypeBytes(buffer.dtype)),
            part.begin, Contiguous(packed_.data() + rank * stride + part.offset, part.bytes), 0,
            part.bytes);
      }
    }
    if (size_ == 1) {
      std::memcpy(received_.data(), packed_.data(), stride);
    } else {
      for (int64_t rank = 0; rank < size_; ++rank) outgoing_[rank] = {rank * stride, stride};
      ORIEL_RETURN_IF_ERROR(ExchangeBytes(packed_.data(), outgoing_, received_.data(), outgoing_));
    }
    for (const Part& part : parts_) unpack(part, stride);
    return absl::OkStatus();
  });
}

Slice RankOrderCommunicator::SliceOfPortion(size_t portion, int64_t rank) const {
  return SliceOf(window_[portion].count, window_[portion].dtype, size_, rank,
                 static_cast<int64_t>(portion));
}

// Calls visit(rank, portion, slice, offset) for each slice of a packed message: the slices of
// one rank are together, each at a multiple of 64 bytes.
template <typename Visit>
void RankOrderCommunicator::ForEachPackedSlice(Visit visit) const {
  int64_t offset = 0;
  for (int64_t rank = 0; rank < size_; ++rank) {
    for (size_t portion = 0; portion < window_.size(); ++portion) {
      const Slice slice = SliceOfPortion(portion, rank);
      visit(rank, portion, slice, offset);
      offset += Padded(slice.count * DTypeBytes(window_[portion].dtype));
    }
  }
}

// Reduces the portions of `window_` and clears it.
absl::Status RankOrderCommunicator::ReduceWindow(Reduction reduction) {
  if (window_.empty()) return absl::OkStatus();
  if (size_ == 1) {
    for (const Portion& portion : window_) {
      if (portion.source != portion.target) {
        std::memcpy(portion.target, portion.source, portion.bytes());
      }
    }
    window_.clear();
    return absl::OkStatus();
  }
  const bool packed = window_.size() > 1;
  const char* outgoing = window_[0].source;
  char* results = window_[0].target;
  if (packed) {
    outgoing = results = Pack();
  } else {
    const int64_t width = DTypeBytes(window_[0].dtype);
    for (int64_t rank = 0; rank < size_; ++rank) {
      const Slice slice = SliceOfPortion(0, rank);
      outgoing_[rank] = {slice.begin * width, slice.count * width};
    }
  }
  const int64_t mine = outgoing_[rank_].bytes;
  const int64_t stride = Padded(mine);
  for (int64_t rank = 0; rank < size_; ++rank) incoming_[rank] = {rank * stride, mine};
  Grow(received_, size_ * stride);
  ORIEL_RETURN_IF_ERROR(ExchangeBytes(outgoing, outgoing_, received_.data(), incoming_));
  ReduceReceived(reduction, stride, results + outgoing_[rank_].offset);
  ORIEL_RETURN_IF_ERROR(GatherBytes(results, outgoing_));
  if (packed) Unpack();
  window_.clear();
  return absl::OkStatus();
}

// Fills outgoing_.
char* RankOrderCommunicator::Pack() {
  for (Extent& extent : outgoing_) extent = {};
  int64_t total = 0;
  ForEachPackedSlice([&](int64_t rank, size_t portion, Slice slice, int64_t offset) {
    const int64_t bytes = Padded(slice.count * DTypeBytes(window_[portion].dtype));
    if (portion == 0) outgoing_[rank].offset = offset;
    outgoing_[rank].bytes += bytes;
    total = offset + bytes;
  });
  Grow(packed_, total);
  ForEachPackedSlice([&](int64_t, size_t portion, Slice slice, int64_t offset) {
    const int64_t width = DTypeBytes(window_[portion].dtype);
    std::memcpy(packed_.data() + offset, window_[portion].source + slice.begin * width,
                slice.count * width);
  });
  return packed_.data();
}

void RankOrderCommunicator::Unpack() {
  ForEachPackedSlice([&](int64_t, size_t portion, Slice slice, int64_t offset) {
    const int64_t width = DTypeBytes(window_[portion].dtype);
    std::memcpy(window_[portion].target + slice.begin * width, packed_.data() + offset,
                slice.count * width);
  });
}

// Reduces this rank's slices, which have arrived from every rank, into `result`.
void RankOrderCommunicator::ReduceReceived(Reduction reduction, int64_t stride, char* result) {
  int64_t offset = 0;
  for (size_t portion = 0; portion < window_.size(); ++portion) {
    const DType dtype = window_[portion].dtype;
    const Slice slice = SliceOfPortion(portion, rank_);
    for (int64_t rank = 0; rank < size_; ++rank) {
      sources_[rank] = received_.data() + rank * stride + offset;
    }
    void* target = result + offset;
    ReduceInOrder(reduction, dtype, sources_, absl::MakeConstSpan(&target, 1), slice.count);
    offset += Padded(slice.count * DTypeBytes(dtype));
  }
}

}  // namespace oriel::runtime
