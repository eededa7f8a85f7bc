// What this machine is, in numbers.
#ifndef ORIEL_RUNTIME_DOCTOR_MACHINE_H_
#define ORIEL_RUNTIME_DOCTOR_MACHINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel::runtime {

// Bytes; all 0 where they can't be read.
struct MachineMemory {
  int64_t total = 0;
  int64_t available = 0;  // that nobody uses now
  int64_t usable = 0;     // of the total, what control groups let this process have
};
MachineMemory ReadMemory();

struct CudaDevice {
  std::string name;  // as the driver has it: "NVIDIA H100 80GB HBM3"
  int64_t memory = 0;
};
// Those that the driver shows this process. Unavailable if there is no plugin, no driver, no device
// or one that can't be used.
absl::StatusOr<std::vector<CudaDevice>> VisibleCudaDevices();

// Parts of these, for tests.

// Of /proc/meminfo's text, and of the control groups' limit.
MachineMemory MemoryOf(const std::string& meminfo, std::optional<int64_t> limit);
// Of what DescribeCuda gives, or of why there is nothing.
absl::StatusOr<std::vector<CudaDevice>> CudaDevicesOf(
    const absl::StatusOr<std::string>& description);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_DOCTOR_MACHINE_H_
