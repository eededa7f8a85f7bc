// How many cores this process may use.
#ifndef ORIEL_RUNTIME_BASE_CORES_H_
#define ORIEL_RUNTIME_BASE_CORES_H_

#include <optional>

namespace oriel::runtime {

// Those that this thread may run on, or what the control groups' quota is for where that is less:
// in a container, fewer than the machine's. At least 1.
int UsableCores();

// Of so many cores, those that a quota (CpuQuota()) keeps busy: whole ones, for a thread more would
// be stopped for a part of the time, and the others wait for it.
int CoresOfQuota(int cores, std::optional<double> quota);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_CORES_H_
