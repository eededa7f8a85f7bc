// What the control groups that a container or a job runs in let this process have: of both versions
// of Linux's interface, the least of the process's group and of all around it.
#ifndef ORIEL_RUNTIME_BASE_CONTROL_GROUP_H_
#define ORIEL_RUNTIME_BASE_CONTROL_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>

namespace oriel::runtime {

// Seconds of CPU in a second, 1.5 say; none: as many as there are cores. `root` has `proc` and
// `sys`, in tests those of another machine.
std::optional<double> CpuQuota(const std::string& root = "/");

// Bytes; none: all that the machine has.
std::optional<int64_t> MemoryQuota(const std::string& root = "/");

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_CONTROL_GROUP_H_
