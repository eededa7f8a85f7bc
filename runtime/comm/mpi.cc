#include "runtime/comm/mpi.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/blocks.h"
#include "runtime/comm/mpi_calls.h"
#include "runtime/comm/mpi_messages.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

// Bytes reduced at a time. Bounds the scratch memory and keeps MPI's counts in an int.
constexpr int64_t kWindowBytes = 16 << 20;
// Smaller pieces are packed together; from this size on, copying costs more than a message.
constexpr int64_t kPackBytes = 256 << 10;
constexpr int64_t kMessageBytes = 1 << 30;

// How long a rank looks again and again for what it waits for before it sleeps between looks. Not
// where ranks exceed cores, for there the rank that is waited for needs this one's core.
constexpr std::chrono::microseconds kSpin{200};

#define ORIEL_MPI_AWAIT(function, ...) \
  Await([&](MPI_Request* request) { return function(__VA_ARGS__, request); }, #function)

// All-reduce is an all-to-all of slices, a local reduction in rank order, and an all-gather:
// MPI_Allreduce may sum in any order.
class MpiCommunicator final : public Communicator {
 public:
  // Takes both communicators.
  MpiCommunicator(MPI_Comm comm, MPI_Comm message_comm, bool is_world,
                  std::shared_ptr<MpiMessages> messages)
      : comm_(comm),
        message_comm_(message_comm),
        is_world_(is_world),
        messages_(std::move(messages)) {
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(comm_, &rank);
    MPI_Comm_size(comm_, &size);
    rank_ = rank;
    size_ = size;
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(message_comm_, MPI_ERRORS_RETURN);
    counts_.resize(size_);
    displacements_.resize(size_);
    receive_counts_.resize(size_);
    receive_displacements_.resize(size_);
    sources_.resize(size_);
  }

  ~MpiCommunicator() override {
    if (MpiFinalized()) return;
    // Who comes first sleeps here: in MPI_Finalize it would keep a core from the others.
    if (is_world_) static_cast<void>(Barrier());
    messages_->Forget(message_comm_);
    MPI_Comm_free(&message_comm_);
    MPI_Comm_free(&comm_);
    if (is_world_) MPI_Finalize();
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }
  std::string name() const override { return "mpi"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    ORIEL_RETURN_IF_ERROR(CheckGroup(ranks, rank_, size_));
    const std::vector<int> members(ranks.begin(), ranks.end());
    MPI_Group all;
    MPI_Group group;
    ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_group, comm_, &all));
    ORIEL_RETURN_IF_ERROR(
        ORIEL_MPI(MPI_Group_incl, all, static_cast<int>(members.size()), members.data(), &group));
    MPI_Comm comm = MPI_COMM_NULL;
    const absl::Status status = ORIEL_MPI(MPI_Comm_create_group, comm_, group, /*tag=*/0, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    ORIEL_RETURN_IF_ERROR(status);
    MPI_Comm message_comm = MPI_COMM_NULL;
    ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_dup, comm, &message_comm));
    return std::make_unique<MpiCommunicator>(comm, message_comm, /*is_world=*/false, messages_);
  }

  absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) override {
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

  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    if (root < 0 || root >= size_ || bytes < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("broadcast of ", bytes, " bytes from rank ", root, " of ", size_));
    }
    for (int64_t begin = 0; begin < bytes; begin += kMessageBytes) {
      const int count = static_cast<int>(std::min(kMessageBytes, bytes - begin));
      ORIEL_RETURN_IF_ERROR(ORIEL_MPI_AWAIT(MPI_Ibcast, static_cast<char*>(data) + begin, count,
                                            MPI_BYTE, static_cast<int>(root), comm_));
    }
    return absl::OkStatus();
  }

  absl::Status AllGather(absl::Span<const PieceBuffer> buffers) override {
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

  absl::Status ReduceScatter(Reduction reduction, absl::Span<const PieceBuffer> buffers) override {
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

  absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckAllToAll(buffers));
    return ExchangePieces(buffers, [&](const Part& part, int64_t stride) {
      const PieceBuffer& buffer = buffers[part.buffer];
      for (int64_t rank = 0; rank < size_; ++rank) {
        CopyPiece(
            Contiguous(received_.data() + rank * stride + part.offset, part.bytes), 0,
            PieceOf(buffer.target, buffer.target_blocks, size_, rank, DTypeBytes(buffer.dtype)),
            part.begin, part.bytes);
      }
    });
  }

  absl::Status Barrier() override { return ORIEL_MPI_AWAIT(MPI_Ibarrier, comm_); }

  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("send", peer, tag, data, bytes, size_));
    return messages_->Send(message_comm_, peer, tag, data, bytes);
  }

  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                   int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("receive", peer, tag, data, bytes, size_));
    return messages_->Receive(message_comm_, peer, tag, data, bytes);
  }

  void Progress() override { messages_->Progress(); }

  absl::Status CheckConcurrent() const override {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    if (provided >= MPI_THREAD_MULTIPLE) return absl::OkStatus();
    return absl::UnavailableError(
        "this MPI cannot be called by several threads at the same time (MPI_THREAD_MULTIPLE)");
  }
  void SetBackground(bool background) override { background_ = background; }

  void Abort(const absl::Status& reason) override {
    EndMpiJob({reason.message().data(), reason.message().size()});
  }

 private:
  struct Piece {
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

  // Starts a nonblocking call by `start(&request)` and waits for it.
  template <typename Start>
  absl::Status Await(const Start& start, const char* call) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = start(&request);
    if (code == MPI_SUCCESS) code = messages_->Await(request, background_);
    return MpiStatus(code, call);
  }

  template <typename T>
  static void Grow(std::vector<T>& scratch, int64_t size) {
    if (static_cast<int64_t>(scratch.size()) < size) scratch.resize(size);
  }

  // Bytes of a piece that are moved at a time: whole elements, and those of all ranks in a window.
  int64_t WindowOfPiece() const { return std::max<int64_t>(kWindowBytes / size_ / 64, 1) * 64; }

  // The pieces of all ranks, `bytes` each, lie one behind the other; this rank's is in place.
  absl::Status GatherWhole(char* target, int64_t bytes) {
    if (bytes <= INT_MAX / size_) {
      return ORIEL_MPI_AWAIT(MPI_Iallgather, MPI_IN_PLACE, 0, MPI_BYTE, target,
                             static_cast<int>(bytes), MPI_BYTE, comm_);
    }
    for (int64_t root = 0; root < size_; ++root) {
      ORIEL_RETURN_IF_ERROR(Broadcast(root, target + root * bytes, bytes));
    }
    return absl::OkStatus();
  }

  // Calls move(bytes) for one window of the buffers' pieces after the other: `parts_` says what of
  // which, in `bytes` bytes of each rank's. Pieces are of the size that source_blocks say.
  template <typename Move>
  absl::Status ForEachWindow(absl::Span<const PieceBuffer> buffers, const Move& move) {
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
  absl::Status GatherWindow(int64_t bytes) {
    const char* outgoing = static_cast<const char*>(scattered_[parts_[0].buffer].source);
    if (parts_.size() == 1) {
      outgoing += parts_[0].begin;
      bytes = parts_[0].bytes;
    } else {
      Grow(packed_, bytes);
      for (const Part& part : parts_) {
        std::memcpy(packed_.data() + part.offset,
                    static_cast<const char*>(scattered_[part.buffer].source) + part.begin,
                    part.bytes);
      }
      outgoing = packed_.data();
    }
    Grow(received_, size_ * bytes);
    ORIEL_RETURN_IF_ERROR(ORIEL_MPI_AWAIT(MPI_Iallgather, outgoing, static_cast<int>(bytes),
                                          MPI_BYTE, received_.data(), static_cast<int>(bytes),
                                          MPI_BYTE, comm_));
    for (const Part& part : parts_) {
      const PieceBuffer& buffer = scattered_[part.buffer];
      for (int64_t rank = 0; rank < size_; ++rank) {
        if (rank == rank_) continue;
        CopyPiece(
            Contiguous(received_.data() + rank * bytes + part.offset, part.bytes), 0,
            PieceOf(buffer.target, buffer.target_blocks, size_, rank, DTypeBytes(buffer.dtype)),
            part.begin, part.bytes);
      }
    }
    return absl::OkStatus();
  }

  // Sends piece r of each source to rank r, by windows. For each part of one that has come,
  // receive(part, stride) is called: what rank r sent is at received_[r * stride + part.offset].
  template <typename Receive>
  absl::Status ExchangePieces(absl::Span<const PieceBuffer> buffers, const Receive& receive) {
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
      ORIEL_RETURN_IF_ERROR(ORIEL_MPI_AWAIT(MPI_Ialltoall, packed_.data(), static_cast<int>(stride),
                                            MPI_BYTE, received_.data(), static_cast<int>(stride),
                                            MPI_BYTE, comm_));
      for (const Part& part : parts_) receive(part, stride);
      return absl::OkStatus();
    });
  }

  static int64_t Padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  Slice SliceOfPiece(size_t piece, int64_t rank) const {
    return SliceOf(window_[piece].count, window_[piece].dtype, size_, rank,
                   static_cast<int64_t>(piece));
  }

  // Calls visit(rank, piece, slice, offset) for each slice of a packed message: the slices of
  // one rank are together, each at a multiple of 64 bytes.
  template <typename Visit>
  void ForEachPackedSlice(Visit visit) const {
    int64_t offset = 0;
    for (int64_t rank = 0; rank < size_; ++rank) {
      for (size_t piece = 0; piece < window_.size(); ++piece) {
        const Slice slice = SliceOfPiece(piece, rank);
        visit(rank, piece, slice, offset);
        offset += Padded(slice.count * DTypeBytes(window_[piece].dtype));
      }
    }
  }

  // Reduces the pieces of `window_` and clears it.
  absl::Status ReduceWindow(Reduction reduction) {
    if (window_.empty()) return absl::OkStatus();
    if (size_ == 1) {
      for (const Piece& piece : window_) {
        if (piece.source != piece.target) std::memcpy(piece.target, piece.source, piece.bytes());
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
        const Slice slice = SliceOfPiece(0, rank);
        counts_[rank] = static_cast<int>(slice.count * width);
        displacements_[rank] = static_cast<int>(slice.begin * width);
      }
    }
    const int64_t mine = counts_[rank_];
    const int64_t stride = Padded(mine);
    for (int64_t rank = 0; rank < size_; ++rank) {
      receive_counts_[rank] = static_cast<int>(mine);
      receive_displacements_[rank] = static_cast<int>(rank * stride);
    }
    Grow(received_, size_ * stride);
    ORIEL_RETURN_IF_ERROR(ORIEL_MPI_AWAIT(
        MPI_Ialltoallv, outgoing, counts_.data(), displacements_.data(), MPI_BYTE, received_.data(),
        receive_counts_.data(), receive_displacements_.data(), MPI_BYTE, comm_));
    ReduceReceived(reduction, stride, results + displacements_[rank_]);
    ORIEL_RETURN_IF_ERROR(ORIEL_MPI_AWAIT(MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_BYTE, results,
                                          counts_.data(), displacements_.data(), MPI_BYTE, comm_));
    if (packed) Unpack();
    window_.clear();
    return absl::OkStatus();
  }

  char* Pack() {
    std::fill(counts_.begin(), counts_.end(), 0);
    int64_t total = 0;
    ForEachPackedSlice([&](int64_t rank, size_t piece, Slice slice, int64_t offset) {
      const int64_t bytes = Padded(slice.count * DTypeBytes(window_[piece].dtype));
      if (piece == 0) displacements_[rank] = static_cast<int>(offset);
      counts_[rank] += static_cast<int>(bytes);
      total = offset + bytes;
    });
    Grow(packed_, total);
    ForEachPackedSlice([&](int64_t, size_t piece, Slice slice, int64_t offset) {
      const int64_t width = DTypeBytes(window_[piece].dtype);
      std::memcpy(packed_.data() + offset, window_[piece].source + slice.begin * width,
                  slice.count * width);
    });
    return packed_.data();
  }

  void Unpack() {
    ForEachPackedSlice([&](int64_t, size_t piece, Slice slice, int64_t offset) {
      const int64_t width = DTypeBytes(window_[piece].dtype);
      std::memcpy(window_[piece].target + slice.begin * width, packed_.data() + offset,
                  slice.count * width);
    });
  }

  // Reduces this rank's slices, which have arrived from every rank, into `result`.
  void ReduceReceived(Reduction reduction, int64_t stride, char* result) {
    int64_t offset = 0;
    for (size_t piece = 0; piece < window_.size(); ++piece) {
      const DType dtype = window_[piece].dtype;
      const Slice slice = SliceOfPiece(piece, rank_);
      for (int64_t rank = 0; rank < size_; ++rank) {
        sources_[rank] = received_.data() + rank * stride + offset;
      }
      void* target = result + offset;
      ReduceInOrder(reduction, dtype, sources_, absl::MakeConstSpan(&target, 1), slice.count);
      offset += Padded(slice.count * DTypeBytes(dtype));
    }
  }

  MPI_Comm comm_;
  // Of messages alone: who looks for one of any tag would take what Open MPI's
  // MPI_Comm_create_group sends.
  MPI_Comm message_comm_;
  const bool is_world_;
  const std::shared_ptr<MpiMessages> messages_;  // of all groups
  int64_t rank_ = 0;
  int64_t size_ = 1;
  bool background_ = false;
  std::vector<Piece> window_;
  std::vector<Part> parts_;             // of the window of pieces that is moved
  std::vector<PieceBuffer> scattered_;  // in an all-gather: those that are packed
  // Scratch memory, kept between calls.
  std::vector<char> packed_;
  std::vector<char> received_;
  std::vector<int> counts_;
  std::vector<int> displacements_;
  std::vector<int> receive_counts_;
  std::vector<int> receive_displacements_;
  std::vector<const void*> sources_;
};

// Whether this machine has a core for each of its ranks. A rank that mpirun has bound to a core
// sees only that one, so all ranks' cores are joined.
absl::StatusOr<bool> CoresSuffice() {
  MPI_Comm machine = MPI_COMM_NULL;
  ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED,
                                  /*key=*/0, MPI_INFO_NULL, &machine));
  int ranks = 1;
  MPI_Comm_size(machine, &ranks);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  const absl::Status joined =
      ORIEL_MPI(MPI_Allreduce, MPI_IN_PLACE, &cores, sizeof cores, MPI_BYTE, MPI_BOR, machine);
  MPI_Comm_free(&machine);
  ORIEL_RETURN_IF_ERROR(joined);
  return ranks <= CPU_COUNT(&cores);
}

absl::StatusOr<Communicator*> OpenWorld() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized) return absl::FailedPreconditionError("MPI is initialised already");
  // Where ranks exceed cores, Open MPI gives the core away in every call that finds nothing, also
  // in a rank's look at its messages between two kernels. Ranks sleep when they wait, so that this
  // only costs: with other processes on the machine, a step took hundreds of times as long.
  setenv("OMPI_MCA_mpi_yield_when_idle", "0", /*replace=*/0);
  int provided = MPI_THREAD_SINGLE;
  ORIEL_RETURN_IF_ERROR(
      ORIEL_MPI(MPI_Init_thread, nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    return absl::UnavailableError(
        "this MPI cannot be called from several threads (MPI_THREAD_SERIALIZED)");
  }
  ORIEL_RETURN_IF_ERROR(CheckMpiTags());
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm message_comm = MPI_COMM_NULL;
  ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_dup, MPI_COMM_WORLD, &comm));
  ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_dup, MPI_COMM_WORLD, &message_comm));
  ORIEL_ASSIGN_OR_RETURN(const bool cores_suffice, CoresSuffice());
  return new MpiCommunicator(
      comm, message_comm, /*is_world=*/true,
      std::make_shared<MpiMessages>(cores_suffice ? kSpin : MpiMessages::Clock::duration()));
}

}  // namespace
}  // namespace oriel::runtime

extern "C" oriel::runtime::Communicator* OrielOpenMpiWorld(absl::Status* status) {
  absl::StatusOr<oriel::runtime::Communicator*> world = oriel::runtime::OpenWorld();
  *status = world.status();
  return world.ok() ? *world : nullptr;
}
