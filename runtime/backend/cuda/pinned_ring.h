// Copies between a device and memory of the host that is not pinned, through some that is.
#ifndef ORIEL_RUNTIME_BACKEND_CUDA_PINNED_RING_H_
#define ORIEL_RUNTIME_BACKEND_CUDA_PINNED_RING_H_

#include <cuda.h>

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/driver.h"

namespace oriel::runtime {

// Pieces of pinned memory in turn: while some are copied to or from the device, the host fills or
// empties others. For the thread in which the device is current.
class PinnedRing {
 public:
  static absl::StatusOr<std::unique_ptr<PinnedRing>> Create(const kernels::cuda::Driver& driver,
                                                            int64_t piece_bytes);
  ~PinnedRing();
  PinnedRing(const PinnedRing&) = delete;
  PinnedRing& operator=(const PinnedRing&) = delete;

  // On the stream; the source may change when it returns.
  absl::Status Upload(CUdeviceptr target, const void* source, int64_t bytes, CUstream stream);
  // Behind what is on the stream; done when it returns.
  absl::Status Download(void* target, CUdeviceptr source, int64_t bytes, CUstream stream);

 private:
  struct Piece {
    char* memory = nullptr;
    CUevent event = nullptr;  // its last copy
  };

  PinnedRing(const kernels::cuda::Driver& driver, int64_t piece_bytes)
      : driver_(driver), piece_bytes_(piece_bytes) {}
  Piece& Next() { return pieces_[next_++ % pieces_.size()]; }

  const kernels::cuda::Driver& driver_;
  const int64_t piece_bytes_;
  // So many that inputs of a few pieces wait for none of the microbatch before.
  std::array<Piece, 8> pieces_;
  size_t next_ = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BACKEND_CUDA_PINNED_RING_H_
