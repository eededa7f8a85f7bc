// Links between devices: NCCL's sends and receives.
//
// Each link has an NCCL communicator of its two ranks, of its own: calls of one communicator are
// done one after the other, whatever their streams, and those of two directions are not to wait for
// each other.
#ifndef ORIEL_RUNTIME_COMM_NCCL_NCCL_LINKS_H_
#define ORIEL_RUNTIME_COMM_NCCL_NCCL_LINKS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/comm/link.h"
#include "runtime/comm/nccl/nccl_group.h"

namespace oriel::runtime {

// See Communicator::OpenLinks; ranks are of the world.
absl::StatusOr<std::vector<std::unique_ptr<Link>>> OpenNcclLinks(
    const std::shared_ptr<NcclWorld>& world, const std::vector<LinkEnds>& ends);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_NCCL_LINKS_H_
