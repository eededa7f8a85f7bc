// What oriel-run finds in liboriel_cuda.so.
#include "runtime/backend/cuda/plugin.h"

#include "kernels/cuda/registry.h"
#include "runtime/backend/cuda/cuda_backend.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

absl::StatusOr<std::unique_ptr<Backend>> Open(int ordinal) {
  ORIEL_ASSIGN_OR_RETURN(const kernels::cuda::Driver* driver, PluginDriver());
  return MakeCudaBackend(
      *driver, ordinal,
      [](const auto& spec, auto& device) {
        return kernels::cuda::Registry::Get().Prepare(spec, device);
      },
      &PluginCommunicator);
}

}  // namespace
}  // namespace oriel::runtime

// The caller owns the result; if it is null, the status says why.
extern "C" __attribute__((visibility("default"))) oriel::runtime::Backend* OrielOpenCudaBackend(
    int ordinal, absl::Status* status) {
  absl::StatusOr<std::unique_ptr<oriel::runtime::Backend>> backend = oriel::runtime::Open(ordinal);
  *status = backend.status();
  return backend.ok() ? backend->release() : nullptr;
}
