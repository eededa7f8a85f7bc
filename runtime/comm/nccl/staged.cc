#include "runtime/comm/nccl/staged.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/nccl/device_memory.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

using kernels::cuda::Device;

// Pinned memory of a collective; a tensor of pieces may take more.
constexpr int64_t kWindowBytes = 64 << 20;

int64_t Padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// What the groups of a world share.
struct Shared {
  explicit Shared(const Device& device) : device(device), pool(device) {}

  const Device& device;
  PinnedPool pool;
};

class StagedMessage final : public Message {
 public:
  // `target` is null on the side that sends.
  StagedMessage(std::shared_ptr<Shared> shared, PinnedPool::Block block,
                std::unique_ptr<Message> message, void* target, int64_t bytes, CUstream stream)
      : shared_(std::move(shared)),
        block_(std::move(block)),
        message_(std::move(message)),
        target_(target),
        bytes_(bytes),
        stream_(stream) {}

  absl::Status Wait() override {
    ORIEL_RETURN_IF_ERROR(message_->Wait());
    if (target_ == nullptr) return absl::OkStatus();
    ORIEL_RETURN_IF_ERROR(shared_->device.MakeCurrent());
    ORIEL_RETURN_IF_ERROR(CopyAsync(shared_->device, target_, block_.data(), bytes_, stream_));
    target_ = nullptr;
    // The memory is given back behind it.
    return ORIEL_CUDA(shared_->device.driver(), cuStreamSynchronize, stream_);
  }

 private:
  const std::shared_ptr<Shared> shared_;
  PinnedPool::Block block_;  // in use until the message is destroyed
  const std::unique_ptr<Message> message_;
  void* target_;
  const int64_t bytes_;
  const CUstream stream_;
};

class StagedCommunicator final : public Communicator {
 public:
  // `owned` is the host's communicator of a group, null for the world's.
  StagedCommunicator(std::shared_ptr<Shared> shared, std::unique_ptr<Communicator> owned,
                     Communicator& host, std::unique_ptr<OwnStream> own_stream)
      : shared_(std::move(shared)),
        owned_(std::move(owned)),
        host_(host),
        own_stream_(std::move(own_stream)),
        stream_(own_stream_->get()) {}

  int64_t rank() const override { return host_.rank(); }
  int64_t size() const override { return host_.size(); }
  std::string name() const override { return absl::StrCat("staged ", host_.name()); }

  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> host, host_.Group(ranks));
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<OwnStream> stream, OwnStream::Create(device()));
    Communicator& group = *host;
    return std::make_unique<StagedCommunicator>(shared_, std::move(host), group, std::move(stream));
  }

  absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckReduceBuffers(buffers));
    std::vector<ReduceBuffer> window;
    int64_t bytes = 0;
    for (const ReduceBuffer& buffer : buffers) {
      const int64_t width = DTypeBytes(buffer.dtype);
      for (int64_t begin = 0; begin < buffer.count;) {
        const int64_t count = std::min(buffer.count - begin, (kWindowBytes - bytes) / width);
        window.push_back({static_cast<const char*>(buffer.source) + begin * width,
                          static_cast<char*>(buffer.target) + begin * width, count, buffer.dtype});
        begin += count;
        bytes += Padded(count * width);
        if (bytes + 64 <= kWindowBytes) continue;
        ORIEL_RETURN_IF_ERROR(ReduceWindow(reduction, window, bytes));
        window.clear();
        bytes = 0;
      }
    }
    // Without anything too: the host says whether the job goes on.
    return ReduceWindow(reduction, window, bytes);
  }

  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(device().MakeCurrent());
    ORIEL_ASSIGN_OR_RETURN(const PinnedPool::Block block, shared_->pool.Get(bytes));
    if (rank() == root && bytes > 0) {
      ORIEL_RETURN_IF_ERROR(Copy(block.data(), data, bytes));
      ORIEL_RETURN_IF_ERROR(Synchronize());
    }
    ORIEL_RETURN_IF_ERROR(host_.Broadcast(root, block.data(), bytes));
    if (rank() == root) return absl::OkStatus();
    ORIEL_RETURN_IF_ERROR(Copy(data, block.data(), bytes));
    return Synchronize();
  }

  absl::Status AllGather(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckAllGather(buffers));
    return Stage(
        buffers,
        [this](const PieceBuffer& buffer) {
          const int64_t piece = buffer.target_blocks.num_elements();
          return Elements{piece, size() * piece};
        },
        [this](absl::Span<const PieceBuffer> staged) { return host_.AllGather(staged); });
  }

  absl::Status ReduceScatter(Reduction reduction, absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckReduceScatter(buffers));
    return Stage(
        buffers,
        [this](const PieceBuffer& buffer) {
          const int64_t piece = buffer.source_blocks.num_elements();
          return Elements{size() * piece, piece};
        },
        [&](absl::Span<const PieceBuffer> staged) {
          return host_.ReduceScatter(reduction, staged);
        });
  }

  absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckAllToAll(buffers));
    return Stage(
        buffers,
        [this](const PieceBuffer& buffer) {
          const int64_t whole = size() * buffer.source_blocks.num_elements();
          return Elements{whole, whole};
        },
        [this](absl::Span<const PieceBuffer> staged) { return host_.AllToAll(staged); });
  }

  absl::Status Barrier() override { return host_.Barrier(); }

  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("send", peer, tag, data, bytes, size()));
    ORIEL_RETURN_IF_ERROR(device().MakeCurrent());
    ORIEL_ASSIGN_OR_RETURN(PinnedPool::Block block, shared_->pool.Get(bytes));
    ORIEL_RETURN_IF_ERROR(Copy(block.data(), data, bytes));
    ORIEL_RETURN_IF_ERROR(Synchronize());
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Message> message,
                           host_.Send(peer, tag, block.data(), bytes));
    return std::make_unique<StagedMessage>(shared_, std::move(block), std::move(message),
                                           /*target=*/nullptr, bytes, stream_);
  }

  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                   int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("receive", peer, tag, data, bytes, size()));
    ORIEL_RETURN_IF_ERROR(device().MakeCurrent());
    ORIEL_ASSIGN_OR_RETURN(PinnedPool::Block block, shared_->pool.Get(bytes));
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Message> message,
                           host_.Receive(peer, tag, block.data(), bytes));
    return std::make_unique<StagedMessage>(shared_, std::move(block), std::move(message), data,
                                           bytes, stream_);
  }

  void Progress() override { host_.Progress(); }
  absl::Status CheckConcurrent() const override { return host_.CheckConcurrent(); }
  absl::Status Check() override { return host_.Check(); }
  void SetBackground(bool background) override { host_.SetBackground(background); }
  void Abort(const absl::Status& reason) override { host_.Abort(reason); }

  // For who puts work on it before.
  void SetStream(void* stream) override {
    stream_ = stream == nullptr ? own_stream_->get() : static_cast<CUstream>(stream);
  }

 private:
  struct Elements {
    int64_t source, target;
  };

  const Device& device() const { return shared_->device; }
  absl::Status Copy(void* target, const void* source, int64_t bytes) {
    return CopyAsync(device(), target, source, bytes, stream_);
  }
  absl::Status Synchronize() { return ORIEL_CUDA(device().driver(), cuStreamSynchronize, stream_); }

  absl::Status ReduceWindow(Reduction reduction, std::vector<ReduceBuffer>& window, int64_t bytes) {
    ORIEL_RETURN_IF_ERROR(device().MakeCurrent());
    ORIEL_ASSIGN_OR_RETURN(const PinnedPool::Block block, shared_->pool.Get(bytes));
    std::vector<ReduceBuffer> staged = window;
    char* place = block.data();
    for (ReduceBuffer& buffer : staged) {
      const int64_t size = buffer.bytes();
      ORIEL_RETURN_IF_ERROR(Copy(place, buffer.source, size));
      buffer.source = buffer.target = place;
      place += Padded(size);
    }
    ORIEL_RETURN_IF_ERROR(Synchronize());
    ORIEL_RETURN_IF_ERROR(host_.AllReduce(reduction, staged));
    for (size_t i = 0; i < window.size(); ++i) {
      ORIEL_RETURN_IF_ERROR(Copy(window[i].target, staged[i].target, window[i].bytes()));
    }
    return Synchronize();
  }

  // Calls communicate() with some of the buffers at a time, on the host.
  template <typename Count, typename Communicate>
  absl::Status Stage(absl::Span<const PieceBuffer> buffers, const Count& count,
                     const Communicate& communicate) {
    size_t first = 0;
    do {
      int64_t bytes = 0;
      size_t next = first;
      for (; next < buffers.size(); ++next) {
        const Elements elements = count(buffers[next]);
        const int64_t width = DTypeBytes(buffers[next].dtype);
        const int64_t more = Padded(elements.source * width) + Padded(elements.target * width);
        if (next > first && bytes + more > kWindowBytes) break;
        bytes += more;
      }
      ORIEL_RETURN_IF_ERROR(
          StageSome(buffers.subspan(first, next - first), bytes, count, communicate));
      first = next;
    } while (first < buffers.size());
    return absl::OkStatus();
  }

  template <typename Count, typename Communicate>
  absl::Status StageSome(absl::Span<const PieceBuffer> buffers, int64_t bytes, const Count& count,
                         const Communicate& communicate) {
    ORIEL_RETURN_IF_ERROR(device().MakeCurrent());
    ORIEL_ASSIGN_OR_RETURN(const PinnedPool::Block block, shared_->pool.Get(bytes));
    std::vector<PieceBuffer> staged(buffers.begin(), buffers.end());
    char* place = block.data();
    for (PieceBuffer& buffer : staged) {
      const Elements elements = count(buffer);
      const int64_t width = DTypeBytes(buffer.dtype);
      ORIEL_RETURN_IF_ERROR(Copy(place, buffer.source, elements.source * width));
      buffer.source = place;
      place += Padded(elements.source * width);
      buffer.target = place;
      place += Padded(elements.target * width);
    }
    ORIEL_RETURN_IF_ERROR(Synchronize());
    ORIEL_RETURN_IF_ERROR(communicate(absl::MakeConstSpan(staged)));
    for (size_t i = 0; i < staged.size(); ++i) {
      ORIEL_RETURN_IF_ERROR(Copy(buffers[i].target, staged[i].target,
                                 count(staged[i]).target * DTypeBytes(staged[i].dtype)));
    }
    return Synchronize();
  }

  const std::shared_ptr<Shared> shared_;
  const std::unique_ptr<Communicator> owned_;
  Communicator& host_;
  const std::unique_ptr<OwnStream> own_stream_;
  CUstream stream_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> OpenStagedWorld(Communicator& host,
                                                              const kernels::cuda::Device& device) {
  ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<OwnStream> stream, OwnStream::Create(device));
  return std::make_unique<StagedCommunicator>(std::make_shared<Shared>(device), nullptr, host,
                                              std::move(stream));
}

}  // namespace oriel::runtime
