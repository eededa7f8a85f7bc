#include "runtime/comm/in_process.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/blocks.h"
#include "runtime/comm/in_process_group.h"
#include "runtime/comm/mix.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

enum Operation { kAllReduce, kBroadcast, kAllGather, kReduceScatter, kAllToAll, kBarrier };
constexpr const char* kOperationNames[] = {"all_reduce",     "broadcast",  "all_gather",
                                           "reduce_scatter", "all_to_all", "barrier"};

// One side of a message. It may be destroyed after its communicator.
class InProcessMessage final : public Message {
 public:
  InProcessMessage(std::shared_ptr<InProcessGroup> group,
                   std::shared_ptr<InProcessMailbox::Transfer> transfer,
                   InProcessMailbox::Side side)
      : group_(std::move(group)), transfer_(std::move(transfer)), side_(side) {}
  ~InProcessMessage() override { group_->mailbox().GiveUp(*transfer_, side_); }

  absl::Status Wait() override { return group_->mailbox().Wait(*transfer_, side_); }

 private:
  const std::shared_ptr<InProcessGroup> group_;
  const std::shared_ptr<InProcessMailbox::Transfer> transfer_;
  const InProcessMailbox::Side side_;
};

class InProcessCommunicator final : public Communicator {
 public:
  InProcessCommunicator(std::shared_ptr<InProcessWorld> world,
                        std::shared_ptr<InProcessGroup> group, int64_t rank, bool is_world)
      : world_(std::move(world)),
        group_(std::move(group)),
        rank_(rank),
        is_world_(is_world),
        sources_(group_->size()),
        targets_(group_->size()) {}

  ~InProcessCommunicator() override {
    const int64_t world_rank = group_->world_ranks()[rank_];
    if (is_world_) {
      world_->Leave(world_rank);
    } else {
      group_->Leave(world_rank);
    }
  }

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return group_->size(); }
  std::string name() const override { return "in_process"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    ORIEL_RETURN_IF_ERROR(CheckGroup(ranks, rank_, size()));
    std::vector<int64_t> world_ranks;
    for (const int64_t rank : ranks) world_ranks.push_back(group_->world_ranks()[rank]);
    const int64_t ordinal = group_ordinals_[world_ranks]++;
    const int64_t place = std::find(ranks.begin(), ranks.end(), rank_) - ranks.begin();
    return std::make_unique<InProcessCommunicator>(
        world_, world_->Join(group_.get(), world_ranks, ordinal), place, /*is_world=*/false);
  }

  absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckReduceBuffers(buffers));
    ORIEL_RETURN_IF_ERROR(group_->Check());
    if (size() == 1) {
      for (const ReduceBuffer& buffer : buffers) {
        if (buffer.source != buffer.target && buffer.count > 0) {
          std::memcpy(buffer.target, buffer.source, buffer.bytes());
        }
      }
    }
    InProcessCall& call = NextCall(kAllReduce);
    call.buffers = buffers;
    call.tensors = static_cast<int64_t>(buffers.size());
    call.signature = Mix(call.signature, static_cast<uint64_t>(reduction));
    for (const ReduceBuffer& buffer : buffers) {
      call.signature = Mix(Mix(call.signature, static_cast<uint64_t>(buffer.count)),
                           static_cast<uint64_t>(buffer.dtype));
      call.bytes += buffer.bytes();
    }
    ORIEL_RETURN_IF_ERROR(group_->Begin(sequence_, background_));
    if (size() > 1) ReduceMySlices(reduction, buffers);
    return group_->End(background_);
  }

  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    if (root < 0 || root >= size() || bytes < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("broadcast of ", bytes, " bytes from rank ", root, " of ", size()));
    }
    ORIEL_RETURN_IF_ERROR(group_->Check());
    InProcessCall& call = NextCall(kBroadcast);
    call.data = data;
    call.bytes = bytes;
    call.signature =
        Mix(Mix(call.signature, static_cast<uint64_t>(bytes)), static_cast<uint64_t>(root));
    ORIEL_RETURN_IF_ERROR(group_->Begin(sequence_, background_));
    if (rank_ != root && bytes > 0) {
      std::memcpy(data, group_->call(root, sequence_).data, bytes);
    }
    return group_->End(background_);
  }

  absl::Status AllGather(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckAllGather(buffers));
    ORIEL_RETURN_IF_ERROR(BeginPieces(kAllGather, buffers));
    for (size_t i = 0; i < buffers.size(); ++i) {
      const auto& [unused, target, dtype, none, blocks] = buffers[i];
      const int64_t width = DTypeBytes(dtype);
      const int64_t bytes = blocks.num_elements() * width;
      for (int64_t rank = 0; rank < size(); ++rank) {
        const MutablePiece place = PieceOf(target, blocks, size(), rank, width);
        const void* source = SourceOf(rank, i);
        if (place.data != source) CopyPiece(Contiguous(source, bytes), 0, place, 0, bytes);
      }
    }
    return group_->End(background_);
  }

  absl::Status ReduceScatter(Reduction reduction, absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckReduceScatter(buffers));
    ORIEL_RETURN_IF_ERROR(BeginPieces(kReduceScatter, buffers, static_cast<uint64_t>(reduction)));
    for (size_t i = 0; i < buffers.size(); ++i) {
      const PieceBuffer& buffer = buffers[i];
      const Blocks blocks = buffer.source_blocks;
      const int64_t width = DTypeBytes(buffer.dtype);
      for (int64_t row = 0; row < blocks.outer && blocks.inner > 0; ++row) {
        for (int64_t rank = 0; rank < size(); ++rank) {
          const ConstPiece piece = PieceOf(SourceOf(rank, i), blocks, size(), rank_, width);
          sources_[rank] = piece.data + row * piece.stride;
        }
        void* place = static_cast<char*>(buffer.target) + row * blocks.inner * width;
        ReduceInOrder(reduction, buffer.dtype, sources_, absl::MakeConstSpan(&place, 1),
                      blocks.inner);
      }
    }
    return group_->End(background_);
  }

  absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckAllToAll(buffers));
    ORIEL_RETURN_IF_ERROR(BeginPieces(kAllToAll, buffers));
    for (size_t i = 0; i < buffers.size(); ++i) {
      const PieceBuffer& buffer = buffers[i];
      const int64_t width = DTypeBytes(buffer.dtype);
      for (int64_t rank = 0; rank < size(); ++rank) {
        CopyPiece(PieceOf(SourceOf(rank, i), buffer.source_blocks, size(), rank_, width), 0,
                  PieceOf(buffer.target, buffer.target_blocks, size(), rank, width), 0,
                  buffer.source_blocks.num_elements() * width);
      }
    }
    return group_->End(background_);
  }

  absl::Status Barrier() override {
    ORIEL_RETURN_IF_ERROR(group_->Check());
    NextCall(kBarrier);
    ORIEL_RETURN_IF_ERROR(group_->Meet(background_));
    return group_->Agree(sequence_);
  }

  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("send", peer, tag, data, bytes, size()));
    return Start(InProcessMailbox::kSender, rank_, peer, tag, const_cast<void*>(data), bytes);
  }

  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                   int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("receive", peer, tag, data, bytes, size()));
    return Start(InProcessMailbox::kReceiver, peer, rank_, tag, data, bytes);
  }

  void SetBackground(bool background) override { background_ = background; }

  absl::Status Check() override { return world_->Check(); }

  void Abort(const absl::Status& reason) override {
    const std::string who = absl::StrCat("rank ", group_->world_ranks()[rank_]);
    // An executor's error begins with the rank already.
    if (absl::StartsWith(reason.message(), who)) {
      world_->Abort(absl::AbortedError(reason.message()));
    } else {
      world_->Abort(absl::AbortedError(absl::StrCat(who, " failed: ", reason.message())));
    }
  }

 private:
  InProcessCall& NextCall(Operation operation) {
    InProcessCall& call = group_->call(rank_, ++sequence_);
    call = InProcessCall();
    call.operation = kOperationNames[operation];
    call.signature = Mix(0, static_cast<uint64_t>(operation) + 1);
    return call;
  }

  // Publishes a collective on pieces and waits for the peers' calls.
  absl::Status BeginPieces(Operation operation, absl::Span<const PieceBuffer> buffers,
                           uint64_t detail = 0) {
    ORIEL_RETURN_IF_ERROR(group_->Check());
    InProcessCall& call = NextCall(operation);
    call.pieces = buffers;
    call.tensors = static_cast<int64_t>(buffers.size());
    call.signature = Mix(call.signature, detail);
    for (const PieceBuffer& buffer : buffers) {
      Blocks source = buffer.source_blocks, target = buffer.target_blocks;
      if (operation == kAllGather) source = target;
      if (operation == kReduceScatter) target = source;
      const int64_t bytes = source.num_elements() * DTypeBytes(buffer.dtype);
      call.bytes += operation == kAllGather ? bytes : bytes * size();
      for (const int64_t part : {static_cast<int64_t>(buffer.dtype), source.outer, source.inner,
                                 target.outer, target.inner}) {
        call.signature = Mix(call.signature, static_cast<uint64_t>(part));
      }
    }
    return group_->Begin(sequence_, background_);
  }

  // In a collective on pieces: what the rank brings as its index-th buffer.
  const void* SourceOf(int64_t rank, size_t index) const {
    return group_->call(rank, sequence_).pieces[index].source;
  }

  absl::StatusOr<std::unique_ptr<Message>> Start(InProcessMailbox::Side side, int64_t sender,
                                                 int64_t receiver, int64_t tag, void* data,
                                                 int64_t bytes) {
    ORIEL_ASSIGN_OR_RETURN(std::shared_ptr<InProcessMailbox::Transfer> transfer,
                           group_->mailbox().Start(side, sender, receiver, tag, data, bytes));
    return std::make_unique<InProcessMessage>(group_, std::move(transfer), side);
  }

  // Reads this rank's slices from all ranks and writes the result to all. Nobody else touches
  // those slices, so that targets may be the sources.
  void ReduceMySlices(Reduction reduction, absl::Span<const ReduceBuffer> buffers) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      const DType dtype = buffers[i].dtype;
      const Slice slice = SliceOf(buffers[i].count, dtype, size(), rank_, static_cast<int64_t>(i));
      if (slice.count == 0) continue;
      const int64_t offset = slice.begin * DTypeBytes(dtype);
      for (int64_t rank = 0; rank < size(); ++rank) {
        const ReduceBuffer& buffer = group_->call(rank, sequence_).buffers[i];
        sources_[rank] = static_cast<const char*>(buffer.source) + offset;
        targets_[rank] = static_cast<char*>(buffer.target) + offset;
      }
      ReduceInOrder(reduction, dtype, sources_, targets_, slice.count);
    }
  }

  const std::shared_ptr<InProcessWorld> world_;
  const std::shared_ptr<InProcessGroup> group_;
  const int64_t rank_;
  const bool is_world_;
  bool background_ = false;
  uint64_t sequence_ = 0;
  std::map<std::vector<int64_t>, int64_t> group_ordinals_;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeInProcessWorld(int64_t size) {
  std::vector<int64_t> ranks(std::max<int64_t>(size, 1));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int64_t>(i);
  auto world = std::make_shared<InProcessWorld>();
  std::vector<std::unique_ptr<Communicator>> result;
  for (const int64_t rank : ranks) {
    result.push_back(std::make_unique<InProcessCommunicator>(world, world->Join(nullptr, ranks, 0),
                                                             rank, /*is_world=*/true));
  }
  return result;
}

}  // namespace oriel::runtime
