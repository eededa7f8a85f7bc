// How long a step of a model takes with a strategy on a cluster, and what memory it needs, without
// a plan.
#ifndef ORIEL_DRIVER_SIMULATION_H_
#define ORIEL_DRIVER_SIMULATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/kernel_forms.h"
#include "driver/stragglers.h"
#include "driver/vocabulary.h"
#include "passes/cost/cluster.h"
#include "passes/cost/software_stack.h"
#include "passes/simulate/program_profile.h"
#include "passes/simulate/step_simulator.h"
#include "passes/strategy/strategy.h"
#include "passes/train/recipe.h"

namespace oriel::driver {

struct SimulationOptions {
  std::string modelPath;  // .onnx, or .mlir as `oriel import -o` writes it
  Recipe recipe;
  Cluster cluster;
  SoftwareStack stack;
  KernelForms kernels;
  bool whole = false;      // every block is compiled, equal or not
  bool timeParts = false;  // also where nothing is cut, for who asks what cuts would be
  Stragglers stragglers;
};

// Of a model, what a stage has whole.
struct SimulatedPart {
  std::string name;      // "llm.3" of a block; else the folder of its largest parameter
  bool isBlock = false;  // or between blocks
  int64_t stage = 0;
  double seconds = 0;  // of a microbatch of all ranks on one device, where cuts were found by that
};

struct Simulation {
  StepTimeline step;
  std::vector<ProgramCost> programs;  // as in the timeline
  std::vector<std::string> stages;    // of each program: what it has of the model; may be empty
  std::vector<SimulatedPart> parts;   // of the model; none where all of several stages is compiled
  double seconds = 0;                 // of a step, with what the software adds
  double modelFlops = 0;              // of a step on all ranks
  double flops = 0;                   // likewise, with what runs again
  double samples = 0, tokens = 0;     // of a step; no tokens where labels are not of tokens
  double peakFlops = 0;               // per second, of all ranks
  int64_t ranks = 1;
  int64_t microBatch = 1, microbatches = 1;  // samples of a rank, and how many of them a step has
  int64_t compiledBlocks = 0, blocks = 0;    // of all equal blocks, how many were compiled
  Stragglers stragglers;                     // that were assumed

  double mfu() const { return modelFlops / step.seconds / peakFlops; }
  double hfu() const { return flops / step.seconds / peakFlops; }
  double peakBytes() const;  // of the rank that needs most
  // That an allocator reserves on the rank on which it is most; 0 where the stack has none.
  double cachedBytes() const;
  // The part of a step in which the busiest program waits for collectives.
  double exposedCommunication() const;
};

// Compiles as `oriel compile` does up to the launches of `lower`, but for equal blocks of a stage:
// of those it compiles two, and one more to see what another one takes. With the remat policy
// `auto` and with `whole` it compiles all. Errors about the graph have been printed.
absl::StatusOr<Simulation> simulate(const SimulationOptions& options, const Strategy& strategy,
                                    const Vocabulary& vocabulary);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_SIMULATION_H_
