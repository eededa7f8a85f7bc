#include "runtime/comm/nccl/cuda_communicator.h"

#include <cstdlib>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/nccl/nccl_communicator.h"
#include "runtime/comm/nccl/staged.h"

namespace oriel::runtime {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The same error on all ranks, though some may have found none.
absl::Status Agree(Communicator& host, const absl::Status& mine) {
  int64_t failed = mine.ok() ? 0 : host.size() - host.rank();
  const ReduceBuffer buffer{&failed, &failed, 1, DType::kI64};
  ORIEL_RETURN_IF_ERROR(host.AllReduce(Reduction::kMax, {&buffer, 1}));
  if (failed == 0 || !mine.ok()) return mine;
  return absl::AbortedError(absl::StrCat("rank ", host.size() - failed, " has no communicator"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> OpenCudaCommunicator(
    Communicator& host, const kernels::cuda::Device& device, const NcclLoader& load) {
  const std::string kind = Variable("ORIEL_DEVICE_COMM");
  const std::string timeout = Variable("ORIEL_NCCL_TIMEOUT");
  NcclOptions options;
  absl::StatusOr<const Nccl*> nccl = nullptr;
  absl::Status status;
  double seconds = 0;
  if (!kind.empty() && kind != "nccl" && kind != "staged") {
    status = absl::InvalidArgumentError(
        absl::StrCat("ORIEL_DEVICE_COMM is '", kind, "'; it may be nccl or staged"));
  } else if (!timeout.empty() && (!absl::SimpleAtod(timeout, &seconds) || !(seconds >= 0.001))) {
    status = absl::InvalidArgumentError(
        absl::StrCat("ORIEL_NCCL_TIMEOUT is '", timeout, "', which is no number of seconds"));
  } else if (kind != "staged") {
    nccl = load();
    if (!nccl.ok()) {
      status = absl::UnavailableError(absl::StrCat(
          nccl.status().message(), "; or set ORIEL_DEVICE_COMM=staged, which is slow"));
    }
  }
  if (seconds > 0) options.timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
  ORIEL_RETURN_IF_ERROR(Agree(host, status));
  if (kind == "staged") return OpenStagedWorld(host, device);
  return OpenNcclWorld(host, device, **nccl, options);
}

}  // namespace oriel::runtime
