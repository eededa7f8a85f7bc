// The device that a rank computes on.
#ifndef ORIEL_RUNTIME_LAUNCH_DEVICE_H_
#define ORIEL_RUNTIME_LAUNCH_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backend/backend.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// InvalidArgument if the plan is not for the kind of device that was asked for (empty: any).
absl::Status CheckDevice(const plan::Plan& plan, const std::string& asked);

// This process's number among those of its machine: LOCAL_RANK (torchrun), or what mpirun and srun
// set; else `rank`.
int64_t LocalRank(int64_t rank);

// The device of a rank: null for the host's. Of several, those of a machine take turns by their
// local rank. Unavailable without plugin, driver or device; FailedPrecondition if the plan is for
// other architectures.
absl::StatusOr<std::shared_ptr<Backend>> OpenDevice(const plan::Plan& plan, int64_t local_rank);

// ResourceExhausted, with what the memory is for, if the device has too little left for a rank of
// the program: before anything is allocated.
absl::Status CheckDeviceMemory(const plan::Program& program, int64_t free_bytes);

// An error of a rank; where the device's memory did not suffice, for that of libraries, kernels,
// graphs and communication, or of other ranks on the device, came on top, with what it is for.
// `free_bytes` were free before.
absl::Status ExplainDeviceMemory(const absl::Status& status, const plan::Program& program,
                                 int64_t free_bytes);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_DEVICE_H_
