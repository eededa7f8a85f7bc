#include "runtime/backend/cuda/pinned_ring.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<std::unique_ptr<PinnedRing>> PinnedRing::Create(const kernels::cuda::Driver& driver,
                                                               int64_t piece_bytes) {
  std::unique_ptr<PinnedRing> ring(new PinnedRing(driver, piece_bytes));
  for (Piece& piece : ring->pieces_) {
    void* memory = nullptr;
    ORIEL_RETURN_IF_ERROR(
        ORIEL_CUDA(driver, cuMemAllocHost, &memory, static_cast<size_t>(piece_bytes)));
    piece.memory = static_cast<char*>(memory);
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuEventCreate, &piece.event, CU_EVENT_DISABLE_TIMING));
  }
  return ring;
}

PinnedRing::~PinnedRing() {
  for (const Piece& piece : pieces_) {
    if (piece.event != nullptr) driver_.cuEventDestroy(piece.event);
    if (piece.memory != nullptr) driver_.cuMemFreeHost(piece.memory);
  }
}

absl::Status PinnedRing::Upload(CUdeviceptr target, const void* source, int64_t bytes,
                                CUstream stream) {
  for (int64_t done = 0; done < bytes; done += piece_bytes_) {
    const auto size = static_cast<size_t>(std::min(piece_bytes_, bytes - done));
    Piece& piece = Next();
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventSynchronize, piece.event));
    std::memcpy(piece.memory, static_cast<const char*>(source) + done, size);
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemcpyAsync, target + done,
                                     reinterpret_cast<CUdeviceptr>(piece.memory), size, stream));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventRecord, piece.event, stream));
  }
  return absl::OkStatus();
}

absl::Status PinnedRing::Download(void* target, CUdeviceptr source, int64_t bytes,
                                  CUstream stream) {
  struct Waiting {
    Piece* piece = nullptr;
    int64_t at = 0;
    size_t size = 0;
  } waiting;
  const auto empty = [&]() -> absl::Status {
    if (waiting.piece == nullptr) return absl::OkStatus();
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventSynchronize, waiting.piece->event));
    std::memcpy(static_cast<char*>(target) + waiting.at, waiting.piece->memory, waiting.size);
    return absl::OkStatus();
  };
  for (int64_t done = 0; done < bytes; done += piece_bytes_) {
    const auto size = static_cast<size_t>(std::min(piece_bytes_, bytes - done));
    Piece& piece = Next();
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventSynchronize, piece.event));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemcpyAsync,
                                     reinterpret_cast<CUdeviceptr>(piece.memory), source + done,
                                     size, stream));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventRecord, piece.event, stream));
    ORIEL_RETURN_IF_ERROR(empty());
    waiting = {&piece, done, size};
  }
  return empty();
}

}  // namespace oriel::runtime
