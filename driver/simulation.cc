#include "driver/simulation.h"

#include <algorithm>

#include "driver/simulated_model.h"

namespace oriel::driver {

double Simulation::peakBytes() const {
  double most = 0;
  for (const ProgramCost& program : programs) most = std::max(most, program.peakBytes());
  return most;
}

double Simulation::cachedBytes() const {
  double most = 0;
  for (const ProgramCost& program : programs) most = std::max(most, program.cachedBytes);
  return most;
}

double Simulation::exposedCommunication() const {
  const auto busiest =
      std::min_element(step.programs.begin(), step.programs.end(),
                       [](const auto& a, const auto& b) { return a.waiting < b.waiting; });
  return busiest == step.programs.end() ? 0 : busiest->communicating / step.seconds;
}

absl::StatusOr<Simulation> simulate(const SimulationOptions& options, const Strategy& strategy,
                                    const Vocabulary& vocabulary) {
  return SimulatedModel(options, vocabulary, SimulatedModel::Diagnostics::kPrinted)
      .simulate(strategy);
}

}  // namespace oriel::driver
