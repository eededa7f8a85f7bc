// Collectives between devices through NCCL.
//
// Each group has an NCCL communicator of its own, made when the group is: rank 0 of the group makes
// its id, and the host's communicator of the same ranks carries it. Every rank has a GPU of its
// own: NCCL refuses two on one.
//
// Sums are NCCL's: the same on every run of the same ranks unless the switch adds (NVLS), but in an
// order that depends on sizes and links, and bf16 may be rounded at every step of it. A maximum may
// lose a NaN. Links are NCCL's sends and receives, each in a communicator of its own
// (nccl_links.h). Messages with tags go through pinned memory and the host's communicator
// (staged.h), for NCCL has neither tags nor messages that are given up.
//
// Nothing waits for ever: a collective that does not end in time, an error of NCCL, or a rank that
// the host's communicator has lost, ends the job on every rank with Aborted, or DeadlineExceeded
// where it was found, and the collective's name, ranks and label.
#ifndef ORIEL_RUNTIME_COMM_NCCL_NCCL_COMMUNICATOR_H_
#define ORIEL_RUNTIME_COMM_NCCL_NCCL_COMMUNICATOR_H_

#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/nccl/nccl_library.h"

namespace oriel::runtime {

struct NcclOptions {
  // In which a collective ends, from when it is put on its stream.
  std::chrono::milliseconds timeout{600'000};
};

// A communicator of the ranks of `host`, each with its device. All three outlive it, and its
// groups. Collective. FailedPrecondition, naming versions and ranks, where ranks have different
// NCCLs.
absl::StatusOr<std::unique_ptr<Communicator>> OpenNcclWorld(Communicator& host,
                                                            const kernels::cuda::Device& device,
                                                            const Nccl& nccl,
                                                            const NcclOptions& options = {});

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_NCCL_COMMUNICATOR_H_
