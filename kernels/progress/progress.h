// Counts how often a stream, or a graph that is replayed, has come past a place, for a host that
// can't wait for it.
//
//   ORIEL_ASSIGN_OR_RETURN(const PassCounter counter, PassCounter::Find(device));
//   ORIEL_RETURN_IF_ERROR(counter.Put(counted, seen, stream));
//
// The count is kept in the device's memory, and written to the host's: reading that back would cost
// the device a round trip.
#ifndef ORIEL_KERNELS_PROGRESS_PROGRESS_H_
#define ORIEL_KERNELS_PROGRESS_PROGRESS_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"

namespace oriel::kernels::cuda {

class PassCounter {
 public:
  // NotFound if the device has been opened without Oriel's kernels.
  static absl::StatusOr<PassCounter> Find(const Device& device) {
    absl::StatusOr<Function> function = device.Find("oriel_count_passed");
    if (!function.ok()) return function.status();
    return PassCounter(*std::move(function));
  }

  // Puts a launch on the stream that adds 1 to `counted`, in the device's memory, and writes the
  // sum to `seen`, in pinned host memory. May be captured. Launches of the same two must be in one
  // order.
  absl::Status Put(uint32_t* counted, uint32_t* seen, CUstream stream) const {
    return function_.Launch({1, 1, 1}, {1, 1, 1}, stream, counted, seen);
  }

 private:
  explicit PassCounter(Function function) : function_(std::move(function)) {}

  Function function_;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_PROGRESS_PROGRESS_H_
