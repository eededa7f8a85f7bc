// The conformance suite's buffers are the host's: here they are brought to a device. Tests only.
#ifndef ORIEL_RUNTIME_COMM_NCCL_ON_DEVICE_H_
#define ORIEL_RUNTIME_COMM_NCCL_ON_DEVICE_H_

#include <memory>

#include "kernels/cuda/device.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// A communicator of the host's memory: each call copies its buffers to fresh memory of the device,
// calls `beneath`, which waits, and copies the results back. `device` outlives it.
std::unique_ptr<Communicator> OnDevice(std::unique_ptr<Communicator> beneath,
                                       const kernels::cuda::Device& device);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_ON_DEVICE_H_
