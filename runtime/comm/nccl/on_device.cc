#include "runtime/comm/nccl/on_device.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/comm/nccl/device_memory.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

using kernels::cuda::Device;

// The device's memory, which is given back at the end: freeing some waits for all that is on the
// device, also for collectives of other groups, whose peers may wait for this thread.
class Memory {
 public:
  explicit Memory(const Device& device) : device(device) {}
  ~Memory() {
    if (!device.MakeCurrent().ok()) return;
    for (const auto& [bytes, address] : free_) device.driver().cuMemFree(address);
  }

  // Of exactly this size, so that the emulator sees what goes beyond; of 0xff bytes.
  absl::StatusOr<CUdeviceptr> Get(int64_t bytes) {
    ORIEL_RETURN_IF_ERROR(device.MakeCurrent());
    CUdeviceptr address = 0;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (const auto found = free_.find(bytes); found != free_.end()) {
        address = found->second;
        free_.erase(found);
      }
    }
    if (address == 0) {
      ORIEL_RETURN_IF_ERROR(
          ORIEL_CUDA(device.driver(), cuMemAlloc, &address, static_cast<size_t>(bytes)));
    }
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(device.driver(), cuMemsetD8Async, address, 0xff,
                                     static_cast<size_t>(bytes), nullptr));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(device.driver(), cuStreamSynchronize, nullptr));
    return address;
  }
  void Return(int64_t bytes, CUdeviceptr address) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.emplace(bytes, address);
  }

  const Device& device;

 private:
  std::mutex mutex_;
  std::multimap<int64_t, CUdeviceptr> free_;
};

// Device memory that mirrors memory of the host.
class Mirror {
 public:
  explicit Mirror(Memory& memory) : memory_(memory) {}
  Mirror(Mirror&& other) noexcept
      : memory_(other.memory_), bytes_(other.bytes_), address_(std::exchange(other.address_, 0)) {}
  ~Mirror() {
    if (address_ != 0) memory_.Return(bytes_, address_);
  }

  // Null for null, so that the communicator sees what it was given.
  absl::StatusOr<char*> Allocate(const void* host, int64_t bytes) {
    if (host == nullptr) return nullptr;
    bytes_ = std::max<int64_t>(bytes, 1);
    ORIEL_ASSIGN_OR_RETURN(address_, memory_.Get(bytes_));
    return get();
  }
  char* get() const { return reinterpret_cast<char*>(address_); }

 private:
  Memory& memory_;
  int64_t bytes_ = 0;
  CUdeviceptr address_ = 0;
};

absl::Status CopyNow(const Device& device, void* target, const void* source, int64_t bytes) {
  if (target == nullptr || source == nullptr) return absl::OkStatus();
  ORIEL_RETURN_IF_ERROR(device.MakeCurrent());
  ORIEL_RETURN_IF_ERROR(CopyAsync(device, target, source, bytes, nullptr));
  return ORIEL_CUDA(device.driver(), cuStreamSynchronize, nullptr);
}

class DeviceMessage final : public Message {
 public:
  DeviceMessage(std::shared_ptr<Memory> owner, Mirror memory, std::unique_ptr<Message> message,
                void* target, int64_t bytes)
      : owner_(std::move(owner)),
        memory_(std::move(memory)),
        message_(std::move(message)),
        target_(target),
        bytes_(bytes) {}

  absl::Status Wait() override {
    ORIEL_RETURN_IF_ERROR(message_->Wait());
    return CopyNow(owner_->device, target_, memory_.get(), bytes_);
  }

 private:
  const std::shared_ptr<Memory> owner_;
  const Mirror memory_;  // destroyed behind the message
  const std::unique_ptr<Message> message_;
  void* const target_;
  const int64_t bytes_;
};

class OnDeviceCommunicator final : public Communicator {
 public:
  OnDeviceCommunicator(std::unique_ptr<Communicator> beneath, std::shared_ptr<Memory> memory)
      : beneath_(std::move(beneath)), memory_(std::move(memory)), device_(memory_->device) {}

  int64_t rank() const override { return beneath_->rank(); }
  int64_t size() const override { return beneath_->size(); }
  std::string name() const override { return beneath_->name(); }

  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> group, beneath_->Group(ranks));
    return std::make_unique<OnDeviceCommunicator>(std::move(group), memory_);
  }

  absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckReduceBuffers(buffers));
    std::vector<Mirror> memory;
    std::vector<ReduceBuffer> mirrored(buffers.begin(), buffers.end());
    for (ReduceBuffer& buffer : mirrored) {
      const int64_t bytes = buffer.bytes();
      const bool in_place = buffer.source == buffer.target;
      ORIEL_ASSIGN_OR_RETURN(buffer.source, Bring(memory, buffer.source, bytes));
      if (in_place) {
        buffer.target = const_cast<void*>(buffer.source);
      } else {
        ORIEL_ASSIGN_OR_RETURN(buffer.target, Room(memory, buffer.target, bytes));
      }
    }
    ORIEL_RETURN_IF_ERROR(beneath_->AllReduce(reduction, mirrored));
    for (size_t i = 0; i < mirrored.size(); ++i) {
      ORIEL_RETURN_IF_ERROR(
          CopyNow(device_, buffers[i].target, mirrored[i].target, buffers[i].bytes()));
    }
    return absl::OkStatus();
  }

  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    std::vector<Mirror> memory;
    ORIEL_ASSIGN_OR_RETURN(char* mirrored, Bring(memory, data, bytes));
    ORIEL_RETURN_IF_ERROR(beneath_->Broadcast(root, mirrored, bytes));
    return CopyNow(device_, data, mirrored, bytes);
  }

  absl::Status AllGather(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckAllGather(buffers));
    return Pieces(
        /*cuts=*/false, /*joins=*/true, buffers,
        [&](absl::Span<const PieceBuffer> pieces) { return beneath_->AllGather(pieces); });
  }
  absl::Status ReduceScatter(Reduction reduction, absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckReduceScatter(buffers));
    return Pieces(/*cuts=*/true, /*joins=*/false, buffers,
                  [&](absl::Span<const PieceBuffer> pieces) {
                    return beneath_->ReduceScatter(reduction, pieces);
                  });
  }
  absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) override {
    ORIEL_RETURN_IF_ERROR(CheckAllToAll(buffers));
    return Pieces(/*cuts=*/true, /*joins=*/true, buffers,
                  [&](absl::Span<const PieceBuffer> pieces) { return beneath_->AllToAll(pieces); });
  }

  absl::Status Barrier() override { return beneath_->Barrier(); }

  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("send", peer, tag, data, bytes, size()));
    std::vector<Mirror> memory;
    ORIEL_ASSIGN_OR_RETURN(const char* mirrored, Bring(memory, data, bytes));
    ORIEL_ASSIGN_OR_RETURN(auto message, beneath_->Send(peer, tag, mirrored, bytes));
    return std::make_unique<DeviceMessage>(memory_, std::move(memory[0]), std::move(message),
                                           nullptr, bytes);
  }
  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                   int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("receive", peer, tag, data, bytes, size()));
    std::vector<Mirror> memory;
    ORIEL_ASSIGN_OR_RETURN(char* mirrored, Room(memory, data, bytes));
    ORIEL_ASSIGN_OR_RETURN(auto message, beneath_->Receive(peer, tag, mirrored, bytes));
    return std::make_unique<DeviceMessage>(memory_, std::move(memory[0]), std::move(message), data,
                                           bytes);
  }

  void Progress() override { beneath_->Progress(); }
  absl::Status CheckConcurrent() const override { return beneath_->CheckConcurrent(); }
  void SetBackground(bool background) override { beneath_->SetBackground(background); }
  absl::Status Check() override { return beneath_->Check(); }
  void Abort(const absl::Status& reason) override { beneath_->Abort(reason); }

 private:
  // Memory for what is at `host`, and its bytes.
  absl::StatusOr<char*> Room(std::vector<Mirror>& memory, const void* host, int64_t bytes) const {
    memory.emplace_back(*memory_);
    return memory.back().Allocate(host, bytes);
  }
  absl::StatusOr<char*> Bring(std::vector<Mirror>& memory, const void* host, int64_t bytes) const {
    ORIEL_ASSIGN_OR_RETURN(char* mirrored, Room(memory, host, bytes));
    ORIEL_RETURN_IF_ERROR(CopyNow(device_, mirrored, host, bytes));
    return mirrored;
  }

  // `cuts`: the source is all pieces of a tensor; `joins`: the target is.
  template <typename Call>
  absl::Status Pieces(bool cuts, bool joins, absl::Span<const PieceBuffer> buffers,
                      const Call& call) {
    std::vector<Mirror> memory;
    std::vector<PieceBuffer> mirrored(buffers.begin(), buffers.end());
    std::vector<int64_t> target_bytes;
    for (PieceBuffer& buffer : mirrored) {
      const Blocks& blocks = cuts ? buffer.source_blocks : buffer.target_blocks;
      const int64_t piece = blocks.num_elements() * DTypeBytes(buffer.dtype);
      const int64_t source = cuts ? size() * piece : piece;
      target_bytes.push_back(joins ? size() * piece : piece);
      const char* const first = static_cast<const char*>(buffer.target);
      const int64_t offset = static_cast<const char*>(buffer.source) - first;
      const void* const host_source = buffer.source;
      ORIEL_ASSIGN_OR_RETURN(buffer.target, Room(memory, buffer.target, target_bytes.back()));
      if (!cuts && buffer.source != nullptr && offset >= 0 && offset < target_bytes.back()) {
        buffer.source = static_cast<char*>(buffer.target) + offset;  // in place
        ORIEL_RETURN_IF_ERROR(
            CopyNow(device_, const_cast<void*>(buffer.source), host_source, source));
      } else {
        ORIEL_ASSIGN_OR_RETURN(buffer.source, Bring(memory, host_source, source));
      }
    }
    ORIEL_RETURN_IF_ERROR(call(absl::MakeConstSpan(mirrored)));
    for (size_t i = 0; i < mirrored.size(); ++i) {
      ORIEL_RETURN_IF_ERROR(
          CopyNow(device_, buffers[i].target, mirrored[i].target, target_bytes[i]));
    }
    return absl::OkStatus();
  }

  const std::unique_ptr<Communicator> beneath_;
  const std::shared_ptr<Memory> memory_;
  const Device& device_;
};

}  // namespace

std::unique_ptr<Communicator> OnDevice(std::unique_ptr<Communicator> beneath,
                                       const kernels::cuda::Device& device) {
  return std::make_unique<OnDeviceCommunicator>(std::move(beneath),
                                                std::make_shared<Memory>(device));
}

}  // namespace oriel::runtime
