// A model whose steps are simulated with many strategies: what these share is done once.
#ifndef ORIEL_DRIVER_SIMULATED_MODEL_H_
#define ORIEL_DRIVER_SIMULATED_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "driver/simulation.h"
#include "driver/vocabulary.h"
#include "passes/stage/encoders.h"
#include "passes/strategy/strategy.h"

namespace oriel::driver {

class ModelPhases;

// Not for several threads at a time, but each may have its own.
class SimulatedModel {
 public:
  // Where errors and warnings about the graph go. What isn't printed is in the status.
  enum class Diagnostics { kPrinted, kInStatus };

  SimulatedModel(SimulationOptions options, const Vocabulary& vocabulary, Diagnostics diagnostics);
  ~SimulatedModel();

  // As driver::simulate().
  absl::StatusOr<Simulation> simulate(const Strategy& strategy);

  // As the microbatches of this strategy see it.
  struct Structure {
    int64_t parts = 1;      // between which it can be cut into stages
    int64_t positions = 1;  // of the loss, that context parallelism cuts
    Encoders encoders;      // that may have a mesh of their own
  };
  absl::StatusOr<Structure> structure(const Strategy& strategy);

  // Whether `padding` adds zeros to any of the model's parameters, with this strategy's mesh.
  absl::StatusOr<bool> isPaddable(Strategy strategy);

  // Of a microbatch of all ranks, where the model's file is for one number only.
  absl::StatusOr<std::optional<int64_t>> samples();

 private:
  std::unique_ptr<ModelPhases> phases_;
};

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_SIMULATED_MODEL_H_
