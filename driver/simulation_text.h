// What a simulation says, for people, for scripts and for https://ui.perfetto.dev.
#ifndef ORIEL_DRIVER_SIMULATION_TEXT_H_
#define ORIEL_DRIVER_SIMULATION_TEXT_H_

#include <cstddef>
#include <string>

#include "driver/simulation.h"

namespace oriel::driver {

// The key of a MemoryUse: "optimizer_state".
std::string memoryUseKey(size_t use);

std::string simulationText(const Simulation& simulation, const Cluster& cluster);
// What a rank computes in a step, by kernel, the longest first: a rank of the program that computes
// longest. Kernels have the names of `oriel-run --profile`.
std::string kernelsText(const Simulation& simulation);
// One object: seconds, bytes, and parts of 1; `stages` has an entry for each program.
std::string simulationJson(const Simulation& simulation);
// Chrome's trace events: a track for each program, an event for each run of a segment.
std::string simulationTrace(const Simulation& simulation);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_SIMULATION_TEXT_H_
