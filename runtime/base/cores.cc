#include "runtime/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "runtime/base/control_group.h"

namespace oriel::runtime {

int CoresOfQuota(int cores, std::optional<double> quota) {
  if (quota && *quota < cores) cores = static_cast<int>(*quota);
  return std::max(1, cores);
}

int UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int count = sched_getaffinity(0, sizeof cores, &cores) == 0
                        ? CPU_COUNT(&cores)
                        : static_cast<int>(std::thread::hardware_concurrency());
  return CoresOfQuota(count, CpuQuota());
}

}  // namespace oriel::runtime
