// Packs buckets for collectives on a device: pieces of many tensors, in one launch.
//
// NCCL wants the piece of each rank in one stretch. A tensor that is cut along an inner dimension
// is [outer, ranks, run], and packed [ranks, outer, run]: the same swap both ways, with the two
// sizes exchanged.
//
//   ORIEL_ASSIGN_OR_RETURN(const Packer packer, Packer::Find(device));
//   ORIEL_RETURN_IF_ERROR(packer.Swap({{tensor, packed, outer, ranks, run}, ..}, stream));
//
// Bytes are moved, whatever their type. Assigns; source and target don't overlap.
#ifndef ORIEL_KERNELS_PACKING_PACKING_H_
#define ORIEL_KERNELS_PACKING_PACKING_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/cuda/device.h"

namespace oriel::kernels::cuda {

// target[inner][outer] = source[outer][inner], each of `run` bytes.
struct RunsToSwap {
  const void* source;
  void* target;
  int64_t outer, inner, run;
};

class Packer {
 public:
  // NotFound if the device has been opened without Oriel's kernels.
  static absl::StatusOr<Packer> Find(const Device& device);

  // Puts as few launches on the stream as it can: one for up to 80 tensors whose addresses and runs
  // are multiples of the same power of two, which is what one moves at a time (16 bytes at most).
  // May be captured. InvalidArgument for a tensor of 2^31 such units or more.
  absl::Status Swap(absl::Span<const RunsToSwap> tensors, CUstream stream) const;

 private:
  Packer() = default;

  std::array<Function, 5> functions_;  // for units of 1, 2, 4, 8 and 16 bytes
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_PACKING_PACKING_H_
