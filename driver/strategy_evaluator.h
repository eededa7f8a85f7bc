// Simulations of many strategies of a model, on several threads.
#ifndef ORIEL_DRIVER_STRATEGY_EVALUATOR_H_
#define ORIEL_DRIVER_STRATEGY_EVALUATOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/simulated_model.h"
#include "passes/search/search.h"

namespace oriel::driver {

Evaluation evaluationOf(const Simulation& simulation);

class StrategyEvaluator {
 public:
  StrategyEvaluator(const SimulationOptions& options, const Vocabulary& vocabulary);

  // Of the model alone, found with one strategy that it can have.
  struct ModelFacts {
    SimulatedModel::Structure structure;
    std::optional<int64_t> samples;  // of a microbatch, where the file has one number only
  };
  absl::StatusOr<ModelFacts> facts();

  // Of these sizes of tp, those with which `padding` adds zeros.
  std::set<int64_t> paddable(const std::set<int64_t>& sizes);

  // In the order of `strategies`. What was asked before is remembered.
  std::vector<absl::StatusOr<Evaluation>> evaluate(const std::vector<Strategy>& strategies);

 private:
  // Strategies by thread. Models are made for a size of microbatch, so one size stays with its
  // thread, unless that had more to do than others.
  std::vector<std::vector<size_t>> workOf(const std::vector<Strategy>& strategies) const;
  // On one rank, with the microbatch that the file is for, or that the recipe says.
  absl::StatusOr<Strategy> plainStrategy();
  int64_t samplesOf(const Strategy& strategy) const;  // of a microbatch, of all ranks

  const SimulationOptions options_;
  std::vector<std::unique_ptr<SimulatedModel>> models_;      // by thread
  std::vector<std::set<int64_t>> samplesOfThread_;           // for which its model is made
  std::map<int64_t, bool> isPaddable_;                       // by tp
  std::map<std::string, absl::StatusOr<Evaluation>> known_;  // by the strategy's text
};

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_STRATEGY_EVALUATOR_H_
