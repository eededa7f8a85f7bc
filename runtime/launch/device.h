// The device that ranks compute on.
#ifndef ORIEL_RUNTIME_LAUNCH_DEVICE_H_
#define ORIEL_RUNTIME_LAUNCH_DEVICE_H_

#include <string>

#include "absl/status/status.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// InvalidArgument if the plan is not for the kind of device that was asked for (empty: any).
absl::Status CheckDevice(const plan::Plan& plan, const std::string& asked);

// Unavailable, with what is missing and what to do, if this machine can't run plans for their
// device.
absl::Status FindDevice(const plan::Plan& plan);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_DEVICE_H_
