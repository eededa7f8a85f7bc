// The devices that plans are compiled for.
#ifndef ORIEL_RUNTIME_PLAN_DEVICE_H_
#define ORIEL_RUNTIME_PLAN_DEVICE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

inline constexpr char kHostDevice[] = "host";
inline constexpr char kCudaDevice[] = "cuda";

// "host" where the plan says nothing.
std::string_view DeviceKind(const plan::Plan& plan);

// "host", "cuda", or "cuda:sm_90,sm_100": for these architectures only. InvalidArgument for
// anything else.
absl::StatusOr<plan::Device> ParseDevice(std::string_view text);
// The same as a text.
std::string DeviceText(const plan::Device& device);
// What ParseDevice gives: a known kind, and architectures of CUDA's alone.
bool IsDevice(const plan::Device& device);

// Whether the plan may run on a device of this architecture ("sm_90").
bool RunsOn(const plan::Device& device, std::string_view architecture);

// Multiple at which the compiler puts values into the arena: a cache line of the host; on CUDA what
// the driver's own allocations are aligned to. The format asks for the host's only.
int64_t ArenaAlignment(std::string_view kind);

// The kernels that Oriel has for CUDA, sorted; those of the host are not known here, for plugins
// bring more.
const std::vector<std::string_view>& CudaKernels();

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_DEVICE_H_
