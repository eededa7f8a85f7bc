#include "runtime/comm/nccl/device_memory.h"

#include <algorithm>

#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

CUdeviceptr Address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

}  // namespace

absl::Status CopyAsync(const kernels::cuda::Device& device, void* target, const void* source,
                       int64_t bytes, CUstream stream) {
  if (bytes == 0 || target == source) return absl::OkStatus();
  return ORIEL_CUDA(device.driver(), cuMemcpyAsync, Address(target), Address(source),
                    static_cast<size_t>(bytes), stream);
}

absl::StatusOr<std::unique_ptr<OwnStream>> OwnStream::Create(const kernels::cuda::Device& device) {
  ORIEL_RETURN_IF_ERROR(device.MakeCurrent());
  std::unique_ptr<OwnStream> result(new OwnStream(device));
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(device.driver(), cuStreamCreateWithPriority, &result->stream_,
                                   CU_STREAM_NON_BLOCKING, /*priority=*/0));
  return result;
}

OwnStream::~OwnStream() {
  if (stream_ == nullptr || !device_.MakeCurrent().ok()) return;
  device_.driver().cuStreamSynchronize(stream_);  // memory and code that it uses may go then
  device_.driver().cuStreamDestroy(stream_);
}

Scratch::~Scratch() {
  if (blocks_.empty() || !device_.MakeCurrent().ok()) return;
  for (const CUdeviceptr block : blocks_) device_.driver().cuMemFree(block);
}

absl::StatusOr<char*> Scratch::Get(int64_t bytes) {
  if (bytes > bytes_) {
    // Twice as much as before, so that all together are not more than twice the last.
    const int64_t wanted = std::max(bytes, blocks_.empty() ? bytes : 2 * bytes_);
    CUdeviceptr block = 0;
    ORIEL_RETURN_IF_ERROR(
        ORIEL_CUDA(device_.driver(), cuMemAlloc, &block, static_cast<size_t>(wanted)));
    blocks_.push_back(block);
    bytes_ = wanted;
  }
  return blocks_.empty() ? nullptr : reinterpret_cast<char*>(blocks_.back());
}

PinnedPool::~PinnedPool() {
  if (!device_.MakeCurrent().ok()) return;
  for (const Free& block : free_) device_.driver().cuMemFreeHost(block.data);
}

absl::StatusOr<PinnedPool::Block> PinnedPool::Get(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto best = free_.end();
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      if (at->bytes >= bytes && (best == free_.end() || at->bytes < best->bytes)) best = at;
    }
    // Not a huge one for little.
    if (best != free_.end() && best->bytes / 4 <= std::max<int64_t>(bytes, 1 << 20)) {
      const Free block = *best;
      free_.erase(best);
      return Block(this, block.data, block.bytes);
    }
  }
  void* data = nullptr;
  ORIEL_RETURN_IF_ERROR(
      ORIEL_CUDA(device_.driver(), cuMemAllocHost, &data, static_cast<size_t>(bytes)));
  return Block(this, static_cast<char*>(data), bytes);
}

void PinnedPool::Return(char* data, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back({data, bytes});
}

}  // namespace oriel::runtime
