#include "runtime/launch/device.h"

#include "absl/strings/str_cat.h"
#include "runtime/backend/cuda_plugin.h"
#include "runtime/base/status.h"
#include "runtime/plan/device.h"

namespace oriel::runtime {

absl::Status CheckDevice(const plan::Plan& plan, const std::string& asked) {
  const std::string kind(DeviceKind(plan));
  if (asked.empty() || asked == kind) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the plan is compiled for the device ", kind, ", but --device asks for ", asked,
                   "; compile it again: oriel compile --device ", asked));
}

absl::Status FindDevice(const plan::Plan& plan) {
  if (DeviceKind(plan) == kHostDevice) return absl::OkStatus();
  ORIEL_ASSIGN_OR_RETURN(const int devices, CountCudaDevices());
  return absl::UnimplementedError(
      absl::StrCat("the plan is for CUDA, and there are ", devices,
                   " devices, but this oriel-run has no executor for them"));
}

}  // namespace oriel::runtime
