// Memory that communicators of a device work with, and copies between the two sides.
#ifndef ORIEL_RUNTIME_COMM_NCCL_DEVICE_MEMORY_H_
#define ORIEL_RUNTIME_COMM_NCCL_DEVICE_MEMORY_H_

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

namespace oriel::runtime {

// Puts a copy on the stream; nothing for no bytes. Either side may be pinned host memory.
absl::Status CopyAsync(const kernels::cuda::Device& device, void* target, const void* source,
                       int64_t bytes, CUstream stream);

// A stream of one's own.
class OwnStream {
 public:
  static absl::StatusOr<std::unique_ptr<OwnStream>> Create(const kernels::cuda::Device& device);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  CUstream get() const { return stream_; }

 private:
  explicit OwnStream(const kernels::cuda::Device& device) : device_(device) {}

  const kernels::cuda::Device& device_;
  CUstream stream_ = nullptr;
};

// Device memory that grows with what is asked of it. What it was before stays: graphs may hold its
// address.
class Scratch {
 public:
  explicit Scratch(const kernels::cuda::Device& device) : device_(device) {}
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // At least so many bytes, of any content. ResourceExhausted.
  absl::StatusOr<char*> Get(int64_t bytes);

 private:
  const kernels::cuda::Device& device_;
  std::vector<CUdeviceptr> blocks_;  // the last is the largest
  int64_t bytes_ = 0;
};

// Pinned host memory, kept for the next who asks. Thread-safe.
class PinnedPool {
 public:
  explicit PinnedPool(const kernels::cuda::Device& device) : device_(device) {}
  // All of it has been given back.
  ~PinnedPool();
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  // Gives itself back.
  class Block {
   public:
    Block(PinnedPool* pool, char* data, int64_t bytes) : pool_(pool), data_(data), bytes_(bytes) {}
    Block(Block&& other) noexcept : pool_(other.pool_), data_(other.data_), bytes_(other.bytes_) {
      other.data_ = nullptr;
    }
    Block& operator=(Block&&) = delete;
    ~Block() {
      if (data_ != nullptr) pool_->Return(data_, bytes_);
    }
    char* data() const { return data_; }

   private:
    PinnedPool* pool_;
    char* data_;
    int64_t bytes_;
  };

  absl::StatusOr<Block> Get(int64_t bytes);

 private:
  struct Free {
    char* data;
    int64_t bytes;
  };

  void Return(char* data, int64_t bytes);

  const kernels::cuda::Device& device_;
  std::mutex mutex_;
  std::vector<Free> free_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_DEVICE_MEMORY_H_
