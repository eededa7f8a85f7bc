// The device that a rank computes on, as the executor sees it.
#ifndef ORIEL_RUNTIME_BACKEND_BACKEND_H_
#define ORIEL_RUNTIME_BACKEND_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace oriel::runtime {

// Memory of a device; frees itself.
using DeviceMemory = std::unique_ptr<void, std::function<void(void*)>>;

class Backend {
 public:
  virtual ~Backend() = default;

  // "host", "cuda"
  virtual std::string name() const = 0;
  // Zeroed memory, aligned to at least 64 bytes. ResourceExhausted if there is not enough.
  virtual absl::StatusOr<DeviceMemory> Allocate(int64_t bytes) = 0;
  // The kernel for one launch; its arguments are addresses of this device.
  virtual absl::StatusOr<kernels::KernelFn> Prepare(const kernels::KernelSpec& spec) = 0;
  // Either side may be host memory. The ranges don't overlap.
  virtual absl::Status Copy(void* target, const void* source, int64_t bytes) = 0;
  // Copies `count` runs of `run` bytes each, which begin `stride` bytes apart, to `target`, one
  // behind the other. The ranges don't overlap.
  virtual absl::Status CopyRuns(void* target, const void* source, int64_t run, int64_t stride,
                                int64_t count) = 0;
  // Sets every byte.
  virtual absl::Status Fill(void* target, uint8_t value, int64_t bytes) = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BACKEND_BACKEND_H_
