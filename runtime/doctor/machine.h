// What this machine is, in numbers.
#ifndef ORIEL_RUNTIME_DOCTOR_MACHINE_H_
#define ORIEL_RUNTIME_DOCTOR_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel::runtime {

// Those that this process may use, which in a container are fewer than the machine's.
int UsableCores();

// Bytes; all 0 where they can't be read.
struct MachineMemory {
  int64_t total = 0;
  int64_t available = 0;  // that nobody uses now
  int64_t usable = 0;     // of the total, what the control group lets this process have
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

// Of /proc/meminfo's text, and of the memory limit of the control group ("max", a number, or
// empty).
MachineMemory MemoryOf(const std::string& meminfo, const std::string& limit);
// Of what DescribeCuda gives, or of why there is nothing.
absl::StatusOr<std::vector<CudaDevice>> CudaDevicesOf(
    const absl::StatusOr<std::string>& description);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_DOCTOR_MACHINE_H_
