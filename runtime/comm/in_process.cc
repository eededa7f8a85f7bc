#include "runtime/comm/in_process.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/in_process_group.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

enum Operation { kAllReduce, kBroadcast, kAllGather, kBarrier };
constexpr const char* kOperationNames[] = {"all_reduce", "broadcast", "all_gather", "barrier"};

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

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
      group_->Abort(InProcessWorld::Left(world_rank));
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
          std::memcpy(buffer.target, buffer.source, buffer.count * DTypeBytes(buffer.dtype));
        }
      }
    }
    InProcessCall& call = NextCall(kAllReduce);
    call.buffers = buffers;
    call.signature = Mix(call.signature, static_cast<uint64_t>(reduction));
    for (const ReduceBuffer& buffer : buffers) {
      call.signature = Mix(Mix(call.signature, static_cast<uint64_t>(buffer.count)),
                           static_cast<uint64_t>(buffer.dtype));
      call.bytes += buffer.count * DTypeBytes(buffer.dtype);
    }
    ORIEL_RETURN_IF_ERROR(group_->Begin(sequence_));
    if (size() > 1) ReduceMySlices(reduction, buffers);
    return group_->End();
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
    ORIEL_RETURN_IF_ERROR(group_->Begin(sequence_));
    if (rank_ != root && bytes > 0) {
      std::memcpy(data, group_->call(root, sequence_).data, bytes);
    }
    return group_->End();
  }

  absl::Status AllGather(const void* source, int64_t bytes, void* target) override {
    if (bytes < 0) {
      return absl::InvalidArgumentError(absl::StrCat("all_gather of ", bytes, " bytes"));
    }
    ORIEL_RETURN_IF_ERROR(group_->Check());
    InProcessCall& call = NextCall(kAllGather);
    call.data = const_cast<void*>(source);  // only read
    call.bytes = bytes;
    call.signature = Mix(call.signature, static_cast<uint64_t>(bytes));
    ORIEL_RETURN_IF_ERROR(group_->Begin(sequence_));
    for (int64_t rank = 0; rank < size(); ++rank) {
      char* place = static_cast<char*>(target) + rank * bytes;
      const void* data = group_->call(rank, sequence_).data;
      if (bytes > 0 && place != data) std::memcpy(place, data, bytes);
    }
    return group_->End();
  }

  absl::Status Barrier() override {
    ORIEL_RETURN_IF_ERROR(group_->Check());
    NextCall(kBarrier);
    ORIEL_RETURN_IF_ERROR(group_->Meet());
    return group_->Agree(sequence_);
  }

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
