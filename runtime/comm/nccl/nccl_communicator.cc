#include "runtime/comm/nccl/nccl_communicator.h"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/packing/packing.h"
#include "runtime/base/status.h"
#include "runtime/comm/nccl/device_memory.h"
#include "runtime/comm/nccl/graph_progress.h"
#include "runtime/comm/nccl/nccl_group.h"
#include "runtime/comm/nccl/nccl_links.h"
#include "runtime/comm/nccl/small_tensors.h"
#include "runtime/comm/nccl/staged.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

// Of those that CanReduce takes.
ncclDataType_t NcclType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kF64:
      return ncclFloat64;
    case DType::kF16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kI64:
      return ncclInt64;
    case DType::kI32:
      return ncclInt32;
    default:
      return ncclUint8;
  }
}

ncclRedOp_t NcclOp(Reduction reduction) { return reduction == Reduction::kMax ? ncclMax : ncclSum; }

// Where the bytes of the pieces of one tensor lie for NCCL: piece r at data + r * bytes.
struct Packed {
  char* data;
  int64_t bytes;  // of a piece
};

class NcclCommunicator final : public Communicator {
 public:
  // `owned` is the host's communicator of a group, null for the world's.
  NcclCommunicator(std::shared_ptr<NcclWorld> world, std::unique_ptr<Communicator> owned,
                   Communicator& host, std::vector<int64_t> world_ranks,
                   std::unique_ptr<OwnStream> own_stream, std::unique_ptr<Communicator> messages,
                   const kernels::cuda::Packer& packer)
      : world_(std::move(world)),
        owned_(std::move(owned)),
        host_(host),
        world_ranks_(std::move(world_ranks)),
        own_stream_(std::move(own_stream)),
        messages_(std::move(messages)),
        packer_(packer),
        scratch_(world_->device()) {}

  // Collective over the ranks of `host`.
  static absl::StatusOr<std::unique_ptr<NcclCommunicator>> Create(
      std::shared_ptr<NcclWorld> world, std::unique_ptr<Communicator> owned, Communicator& host,
      std::vector<int64_t> world_ranks) {
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<OwnStream> stream, OwnStream::Create(world->device()));
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> messages,
                           OpenStagedWorld(host, world->device()));
    ORIEL_ASSIGN_OR_RETURN(const kernels::cuda::Packer packer,
                           kernels::cuda::Packer::Find(world->device()));
    return std::make_unique<NcclCommunicator>(std::move(world), std::move(owned), host,
                                              std::move(world_ranks), std::move(stream),
                                              std::move(messages), packer);
  }

  // What only collectives need. Collective.
  absl::Status MakeGroup() {
    if (group_ != nullptr || size() == 1) return absl::OkStatus();
    ORIEL_ASSIGN_OR_RETURN(group_, NcclGroup::Create(world_, host_));
    return absl::OkStatus();
  }

  int64_t rank() const override { return host_.rank(); }
  int64_t size() const override { return host_.size(); }
  std::string name() const override { return "nccl"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> host, host_.Group(ranks));
    std::vector<int64_t> world_ranks;
    for (const int64_t rank : ranks) world_ranks.push_back(world_ranks_[rank]);
    Communicator& group = *host;
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<NcclCommunicator> result,
                           Create(world_, std::move(host), group, std::move(world_ranks)));
    ORIEL_RETURN_IF_ERROR(result->MakeGroup());
    return result;
  }

  absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckReduceBuffers(buffers));
    int64_t bytes = 0;
    for (const ReduceBuffer& buffer : buffers) bytes += buffer.bytes();
    ORIEL_RETURN_IF_ERROR(Begin("all_reduce", buffers.size(), bytes));
    if (size() == 1) {
      for (const ReduceBuffer& buffer : buffers) {
        ORIEL_RETURN_IF_ERROR(Copy(buffer.target, buffer.source, buffer.bytes()));
      }
      return End();
    }
    if (bytes == 0) return End();
    const SmallTensors small = FindSmallTensors(buffers);
    ORIEL_RETURN_IF_ERROR(Reserve(small.bytes));
    ORIEL_RETURN_IF_ERROR(PackSmall(small, buffers));
    ORIEL_RETURN_IF_ERROR(Enqueue([&](ncclComm_t comm) {
      return Each(Travelling(small, buffers), [&](const ReduceBuffer& buffer) {
        return nccl().ncclAllReduce(buffer.source, buffer.target, buffer.count,
                                    NcclType(buffer.dtype), NcclOp(reduction), comm, stream());
      });
    }));
    ORIEL_RETURN_IF_ERROR(UnpackSmall(small, buffers));
    return End();
  }

  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    if (root < 0 || root >= size() || bytes < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("broadcast of ", bytes, " bytes from rank ", root, " of ", size()));
    }
    ORIEL_RETURN_IF_ERROR(Begin("broadcast", 1, bytes));
    if (size() == 1 || bytes == 0) return End();
    return Call([&](ncclComm_t comm) {
      return nccl().ncclBroadcast(data, data, bytes, ncclUint8, static_cast<int>(root), comm,
                                  stream());
    });
  }

  absl::Status AllGather(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckAllGather(buffers));
    ORIEL_RETURN_IF_ERROR(BeginPieces("all_gather", buffers, {&PieceBuffer::target_blocks}));
    if (bytes_ == 0) return End();
    std::vector<Packed> targets;
    for (const PieceBuffer& buffer : buffers) {
      targets.push_back(PlaceOf(buffer.target, buffer, buffer.target_blocks));
    }
    ORIEL_RETURN_IF_ERROR(CallOrCopy(buffers, targets, [&](ncclComm_t comm) {
      size_t i = 0;
      return Each(buffers, [&](const PieceBuffer& buffer) {
        const Packed& target = targets[i++];
        if (target.bytes == 0) return ncclSuccess;
        return nccl().ncclAllGather(buffer.source, target.data, target.bytes, ncclUint8, comm,
                                    stream());
      });
    }));
    ORIEL_RETURN_IF_ERROR(Unpack(targets, buffers));
    return End();
  }

  absl::Status ReduceScatter(Reduction reduction, absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckReduceScatter(buffers));
    ORIEL_RETURN_IF_ERROR(BeginPieces("reduce_scatter", buffers, {&PieceBuffer::source_blocks}));
    if (bytes_ == 0) return End();
    ORIEL_ASSIGN_OR_RETURN(const std::vector<Packed> sources, Pack(buffers));
    std::vector<Packed> targets;
    for (size_t i = 0; i < buffers.size(); ++i) {
      targets.push_back({static_cast<char*>(buffers[i].target), sources[i].bytes});
    }
    ORIEL_RETURN_IF_ERROR(CallOrCopy(sources, targets, [&](ncclComm_t comm) {
      size_t i = 0;
      return Each(buffers, [&](const PieceBuffer& buffer) {
        const Packed& source = sources[i++];
        if (source.bytes == 0) return ncclSuccess;
        return nccl().ncclReduceScatter(source.data, buffer.target,
                                        source.bytes / DTypeBytes(buffer.dtype),
                                        NcclType(buffer.dtype), NcclOp(reduction), comm, stream());
      });
    }));
    return End();
  }

  absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckAllToAll(buffers));
    ORIEL_RETURN_IF_ERROR(BeginPieces("all_to_all", buffers,
                                      {&PieceBuffer::source_blocks, &PieceBuffer::target_blocks}));
    if (bytes_ == 0) return End();
    ORIEL_ASSIGN_OR_RETURN(const std::vector<Packed> sources, Pack(buffers));
    std::vector<Packed> targets;
    for (const PieceBuffer& buffer : buffers) {
      targets.push_back(PlaceOf(buffer.target, buffer, buffer.target_blocks));
    }
    ORIEL_RETURN_IF_ERROR(CallOrCopy(sources, targets, [&](ncclComm_t comm) {
      for (size_t i = 0; i < sources.size(); ++i) {
        const int64_t piece = sources[i].bytes;
        for (int64_t peer = 0; peer < size() && piece > 0; ++peer) {
          ncclResult_t result = nccl().ncclSend(sources[i].data + peer * piece, piece, ncclUint8,
                                                static_cast<int>(peer), comm, stream());
          if (result == ncclSuccess || result == ncclInProgress) {
            result = nccl().ncclRecv(targets[i].data + peer * piece, piece, ncclUint8,
                                     static_cast<int>(peer), comm, stream());
          }
          if (result != ncclSuccess && result != ncclInProgress) return result;
        }
      }
      return ncclSuccess;
    }));
    ORIEL_RETURN_IF_ERROR(Unpack(targets, buffers));
    return End();
  }

  absl::Status Barrier() override {
    ORIEL_RETURN_IF_ERROR(world_->Check());
    return host_.Barrier();
  }

  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                int64_t bytes) override {
    return messages_->Send(peer, tag, data, bytes);
  }
  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                   int64_t bytes) override {
    return messages_->Receive(peer, tag, data, bytes);
  }

  bool HasLinks() const override { return true; }
  absl::StatusOr<std::vector<std::unique_ptr<Link>>> OpenLinks(
      const std::vector<LinkEnds>& ends) override {
    std::vector<LinkEnds> in_world;
    for (const auto& [sender, receiver] : ends) {
      in_world.push_back({world_ranks_[sender], world_ranks_[receiver]});
    }
    return OpenNcclLinks(world_, in_world);
  }

  void Progress() override { host_.Progress(); }
  absl::Status CheckConcurrent() const override { return host_.CheckConcurrent(); }
  absl::Status Check() override { return world_->Check(); }
  void Abort(const absl::Status& reason) override {
    const std::string who = absl::StrCat("rank ", world_ranks_[rank()]);
    world_->Fail(absl::AbortedError(absl::StartsWith(reason.message(), who)
                                        ? std::string(reason.message())
                                        : absl::StrCat(who, " failed: ", reason.message())));
  }

  void SetStream(void* stream) override {
    stream_ = static_cast<CUstream>(stream);
    messages_->SetStream(stream);
  }
  bool IsAsynchronous() const override { return true; }
  void SetLabel(const std::string& what) override { label_ = what; }
  int64_t EndRecording() override { return world_->progress().EndGraph(); }
  absl::Status Watch(int64_t recording, void* stream, const std::string& what) override {
    if (!world_->progress().HasCalls(recording)) return absl::OkStatus();
    ORIEL_RETURN_IF_ERROR(world_->device().MakeCurrent());
    ORIEL_RETURN_IF_ERROR(world_->Check());
    return world_->Follow(static_cast<CUstream>(stream), what,
                          world_->progress().Replay(recording));
  }

 private:
  const Nccl& nccl() const { return world_->nccl(); }
  CUstream stream() const { return stream_ == nullptr ? own_stream_->get() : stream_; }

  absl::Status Copy(void* target, const void* source, int64_t bytes) {
    return CopyAsync(world_->device(), target, source, bytes, stream());
  }

  // "rank 0, segment forward, ..: all_reduce of 3 tensors (1200 bytes) over ranks 0, 2"
  std::string Describe(const std::string& what) const {
    constexpr size_t kNamed = 16;
    const size_t named = std::min(kNamed, world_ranks_.size());
    return absl::StrCat(
        label_.empty() ? absl::StrCat("rank ", world_ranks_[rank()]) : label_, ": ", what,
        " over ranks ", absl::StrJoin(world_ranks_.begin(), world_ranks_.begin() + named, ", "),
        world_ranks_.size() > named ? absl::StrCat(", .. (", world_ranks_.size(), ")") : "");
  }

  absl::Status Begin(const char* operation, size_t tensors, int64_t bytes) {
    ORIEL_RETURN_IF_ERROR(world_->device().MakeCurrent());
    ORIEL_RETURN_IF_ERROR(world_->Check());
    ORIEL_RETURN_IF_ERROR(MakeGroup());  // of the world, when it is first needed
    operation_ = operation;
    tensors_ = tensors;
    bytes_ = bytes;
    packed_ = 0;
    return absl::OkStatus();
  }
  // Of a collective whose tensors are cut into pieces: with memory for those sides that NCCL wants
  // one piece behind the other. All sides have the same bytes.
  absl::Status BeginPieces(const char* operation, absl::Span<const PieceBuffer> buffers,
                           std::initializer_list<Blocks PieceBuffer::*> cut_sides) {
    int64_t bytes = 0, packed = 0;
    for (const PieceBuffer& buffer : buffers) {
      bytes += BytesOf(buffer, buffer.*(*cut_sides.begin()));
      for (const auto side : cut_sides) packed += PackedBytes(buffer, buffer.*side);
    }
    ORIEL_RETURN_IF_ERROR(Begin(operation, buffers.size(), bytes));
    return Reserve(packed);
  }
  std::string Current() const {
    return Describe(absl::StrCat(operation_, " of ", tensors_,
                                 tensors_ == 1 ? " tensor (" : " tensors (", bytes_, " bytes)"));
  }
  absl::Status End() {
    if (stream_ == nullptr) return world_->FollowAndWait(stream(), Current());
    if (size() == 1) return absl::OkStatus();
    // Events of a capture tell nothing; who launches the graph calls Watch.
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    ORIEL_RETURN_IF_ERROR(
        ORIEL_CUDA(world_->device().driver(), cuStreamIsCapturing, stream_, &capture));
    if (capture != CU_STREAM_CAPTURE_STATUS_NONE) {
      return world_->progress().Add(Current(), stream_);
    }
    return world_->Follow(stream_, Current());
  }

  absl::Status Enqueue(const std::function<ncclResult_t(ncclComm_t)>& enqueue) {
    return group_->Call(Current(), enqueue);
  }
  absl::Status Call(const std::function<ncclResult_t(ncclComm_t)>& enqueue) {
    ORIEL_RETURN_IF_ERROR(Enqueue(enqueue));
    return End();
  }
  // Of a rank alone: its piece is the whole.
  template <typename Sources>
  absl::Status CallOrCopy(const Sources& sources, const std::vector<Packed>& targets,
                          const std::function<ncclResult_t(ncclComm_t)>& enqueue) {
    if (size() > 1) return Enqueue(enqueue);
    for (size_t i = 0; i < targets.size(); ++i) {
      ORIEL_RETURN_IF_ERROR(Copy(targets[i].data, SourceOf(sources[i]), targets[i].bytes));
    }
    return absl::OkStatus();
  }
  static const void* SourceOf(const PieceBuffer& buffer) { return buffer.source; }
  static const void* SourceOf(const Packed& packed) { return packed.data; }

  template <typename Buffers, typename Put>
  static ncclResult_t Each(const Buffers& buffers, const Put& put) {
    for (const auto& buffer : buffers) {
      const ncclResult_t result = put(buffer);
      if (result != ncclSuccess && result != ncclInProgress) return result;
    }
    return ncclSuccess;
  }

  // Of all pieces of a tensor.
  int64_t BytesOf(const PieceBuffer& buffer, Blocks blocks) const {
    return size() * blocks.num_elements() * DTypeBytes(buffer.dtype);
  }
  // What of the scratch memory it needs: none where pieces lie one behind the other.
  int64_t PackedBytes(const PieceBuffer& buffer, Blocks blocks) const {
    return blocks.outer == 1 || size() == 1 ? 0 : Aligned(BytesOf(buffer, blocks));
  }
  static int64_t Aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

  absl::Status Reserve(int64_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    ORIEL_ASSIGN_OR_RETURN(memory_, scratch_.Get(bytes));
    return absl::OkStatus();
  }
  Packed PlaceOf(const void* tensor, const PieceBuffer& buffer, Blocks blocks) {
    const int64_t piece = blocks.num_elements() * DTypeBytes(buffer.dtype);
    const int64_t bytes = PackedBytes(buffer, blocks);
    if (bytes == 0) return {static_cast<char*>(const_cast<void*>(tensor)), piece};
    char* place = memory_ + packed_;
    packed_ += bytes;
    return {place, piece};
  }
  // Puts the pieces of each source one behind the other.
  absl::StatusOr<std::vector<Packed>> Pack(absl::Span<const PieceBuffer> buffers) {
    std::vector<Packed> packed;
    std::vector<kernels::cuda::RunsToSwap> swaps;
    for (const PieceBuffer& buffer : buffers) {
      const Blocks& blocks = buffer.source_blocks;
      packed.push_back(PlaceOf(buffer.source, buffer, blocks));
      if (PackedBytes(buffer, blocks) == 0) continue;
      swaps.push_back({buffer.source, packed.back().data, blocks.outer, size(),
                       blocks.inner * DTypeBytes(buffer.dtype)});
    }
    ORIEL_RETURN_IF_ERROR(packer_.Swap(swaps, stream()));
    return packed;
  }
  absl::Status Unpack(const std::vector<Packed>& packed, absl::Span<const PieceBuffer> buffers) {
    std::vector<kernels::cuda::RunsToSwap> swaps;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Blocks& blocks = buffers[i].target_blocks;
      if (PackedBytes(buffers[i], blocks) == 0) continue;
      swaps.push_back({packed[i].data, buffers[i].target, size(), blocks.outer,
                       blocks.inner * DTypeBytes(buffers[i].dtype)});
    }
    return packer_.Swap(swaps, stream());
  }

  absl::Status PackSmall(const SmallTensors& small, absl::Span<const ReduceBuffer> buffers) {
    std::vector<kernels::cuda::RunsToSwap> copies;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const std::optional<int64_t>& place = small.places[i];
      if (place) copies.push_back(CopyOf(buffers[i].source, memory_ + *place, buffers[i]));
    }
    return packer_.Swap(copies, stream());
  }
  absl::Status UnpackSmall(const SmallTensors& small, absl::Span<const ReduceBuffer> buffers) {
    std::vector<kernels::cuda::RunsToSwap> copies;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const std::optional<int64_t>& place = small.places[i];
      if (place) copies.push_back(CopyOf(memory_ + *place, buffers[i].target, buffers[i]));
    }
    return packer_.Swap(copies, stream());
  }
  static kernels::cuda::RunsToSwap CopyOf(const void* source, void* target,
                                          const ReduceBuffer& buffer) {
    return {source, target, /*outer=*/1, /*inner=*/1, buffer.bytes()};
  }
  // What NCCL reduces: packs, and the tensors that go alone.
  std::vector<ReduceBuffer> Travelling(const SmallTensors& small,
                                       absl::Span<const ReduceBuffer> buffers) const {
    std::vector<ReduceBuffer> result;
    for (const SmallTensors::Pack& pack : small.packs) {
      result.push_back({memory_ + pack.begin, memory_ + pack.begin, pack.count, pack.dtype});
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!small.places[i] && buffers[i].count > 0) result.push_back(buffers[i]);
    }
    return result;
  }

  const std::shared_ptr<NcclWorld> world_;
  const std::unique_ptr<Communicator> owned_;
  Communicator& host_;
  const std::vector<int64_t> world_ranks_;  // of the members
  const std::unique_ptr<OwnStream> own_stream_;
  const std::unique_ptr<Communicator> messages_;
  const kernels::cuda::Packer packer_;
  std::unique_ptr<NcclGroup> group_;
  CUstream stream_ = nullptr;
  std::string label_;
  Scratch scratch_;
  // Of the call.
  const char* operation_ = "";
  size_t tensors_ = 0;
  int64_t bytes_ = 0;
  char* memory_ = nullptr;
  int64_t packed_ = 0;  // of `memory_`
};

// All ranks have one version, or an error that says who has which.
absl::Status CheckVersions(Communicator& host, const Nccl& nccl) {
  int32_t mine = 0;
  int version = 0;
  const absl::Status status = ORIEL_NCCL(nccl, ncclGetVersion, &version);
  if (status.ok()) mine = version;
  std::vector<int32_t> all(host.size());
  ORIEL_RETURN_IF_ERROR(host.AllGather(&mine, sizeof mine, all.data()));
  ORIEL_RETURN_IF_ERROR(status);
  std::map<int32_t, std::vector<int64_t>> ranks;
  for (int64_t rank = 0; rank < host.size(); ++rank) ranks[all[rank]].push_back(rank);
  if (ranks.size() == 1) return absl::OkStatus();
  std::vector<std::string> parts;
  for (const auto& [which, members] : ranks) {
    parts.push_back(absl::StrCat(
        members.size() == 1 ? "rank " : "ranks ", absl::StrJoin(members, ", "),
        members.size() == 1 ? " has " : " have ", which == 0 ? "none" : NcclVersionName(which)));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("ranks have different versions of NCCL: ", absl::StrJoin(parts, "; "),
                   "; install the same on all machines"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> OpenNcclWorld(Communicator& host,
                                                            const kernels::cuda::Device& device,
                                                            const Nccl& nccl,
                                                            const NcclOptions& options) {
  ORIEL_RETURN_IF_ERROR(CheckVersions(host, nccl));
  std::vector<int64_t> ranks(host.size());
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int64_t>(i);
  ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<GraphProgress> progress, GraphProgress::Create(device));
  return NcclCommunicator::Create(
      std::make_shared<NcclWorld>(host, device, nccl, options, std::move(progress)), nullptr, host,
      std::move(ranks));
}

}  // namespace oriel::runtime
