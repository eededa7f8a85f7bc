#include "driver/strategy_evaluator.h"

#include <algorithm>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "runtime/base/cores.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

// Seconds of a run, and those of them that it waits for collectives.
struct RunTime {
  double all = 0, waits = 0;
};

// Of the first run whose segment begins so; 0 if there is none.
RunTime firstRun(const ProgramCost& program, const ProgramTimeline& timeline,
                 const std::string& segment) {
  for (const TimedSegment& run : timeline.runs) {
    if (!absl::StartsWith(run.run.segment, segment)) continue;
    RunTime time{run.end - run.start};
    for (const SegmentPiece& piece : program.profile.segments.at(run.run.segment)) {
      time.waits += piece.waiting;
    }
    return time;
  }
  return {};
}

// Bounds need the times of the parts.
SimulationOptions withTimes(SimulationOptions options) {
  options.timeParts = true;
  return options;
}

MicrobatchCost microbatchOf(const ProgramCost& program, const ProgramTimeline& timeline) {
  auto bytes = [&](MemoryUse use) { return program.bytes[static_cast<size_t>(use)]; };
  MicrobatchCost cost;
  const RunTime forward = firstRun(program, timeline, "forward");
  const RunTime backward = firstRun(program, timeline, "backward");
  cost.forward = forward.all;
  cost.forwardWaits = forward.waits;
  cost.backward = backward.all;
  cost.backwardWaits = backward.waits;
  cost.update = firstRun(program, timeline, "update").all;
  cost.parameters = bytes(MemoryUse::kParameters);
  cost.optimizerState = bytes(MemoryUse::kOptimizerState);
  // At the program's peak there may be none.
  for (const auto& [place, used] : program.memory) {
    cost.gradients = std::max(cost.gradients, used[static_cast<size_t>(MemoryUse::kGradients)]);
    cost.stash = std::max(cost.stash, used[static_cast<size_t>(MemoryUse::kStash)]);
  }
  return cost;
}

}  // namespace

Evaluation evaluationOf(const Simulation& simulation) {
  Evaluation evaluation;
  evaluation.seconds = simulation.step.seconds;
  evaluation.mfu = simulation.mfu();
  evaluation.hfu = simulation.hfu();
  evaluation.bubble = simulation.step.bubble();
  evaluation.exposed = simulation.exposedCommunication();
  for (size_t i = 0; i < simulation.programs.size(); ++i) {
    const ProgramCost& cost = simulation.programs[i];
    const ProgramTimeline& timeline = simulation.step.programs[i];
    Evaluation::Program program;
    program.name = cost.profile.name;
    if (i < simulation.stages.size()) program.stages = simulation.stages[i];
    program.ranks = cost.ranks;
    program.computing = timeline.computing;
    program.communicating = timeline.communicating;
    program.idle = timeline.waiting;
    program.bytes.assign(cost.bytes.begin(), cost.bytes.end());
    evaluation.programs.push_back(std::move(program));
  }
  if (simulation.programs.size() == 1) {
    evaluation.microbatch =
        microbatchOf(simulation.programs.front(), simulation.step.programs.front());
    for (const SimulatedPart& part : simulation.parts) {
      evaluation.microbatch.parts.push_back(part.seconds);
    }
  }
  return evaluation;
}

StrategyEvaluator::StrategyEvaluator(const SimulationOptions& options, const Vocabulary& vocabulary)
    : options_(withTimes(options)) {
  constexpr int kMaxThreads = 8;
  const int threads = std::min(runtime::UsableCores(), kMaxThreads);
  for (int i = 0; i < threads; ++i) {
    models_.push_back(std::make_unique<SimulatedModel>(options_, vocabulary,
                                                       SimulatedModel::Diagnostics::kInStatus));
  }
  samplesOfThread_.resize(threads);
}

absl::StatusOr<StrategyEvaluator::ModelFacts> StrategyEvaluator::facts() {
  ModelFacts facts;
  ORIEL_ASSIGN_OR_RETURN(facts.samples, models_.front()->samples());
  ORIEL_ASSIGN_OR_RETURN(const Strategy strategy, plainStrategy());
  ORIEL_ASSIGN_OR_RETURN(facts.structure, models_.front()->structure(strategy));
  samplesOfThread_.front().insert(samplesOf(strategy));
  return facts;
}

absl::StatusOr<Strategy> StrategyEvaluator::plainStrategy() {
  const Recipe& recipe = options_.recipe;
  ORIEL_ASSIGN_OR_RETURN(const std::optional<int64_t> samples, models_.front()->samples());
  const bool isOne = recipe.isOneMicrobatch();
  const int64_t micro = samples.value_or(isOne ? recipe.globalBatch : recipe.microBatch);
  Strategy strategy;
  strategy.pipeline.emplace();
  strategy.pipeline->microbatches = std::max<int64_t>(1, recipe.globalBatch / micro);
  return strategy;
}

std::set<int64_t> StrategyEvaluator::paddable(const std::set<int64_t>& sizes) {
  std::set<int64_t> found;
  for (int64_t tp : sizes) {
    if (tp == 1) continue;
    const auto [known, isNew] = isPaddable_.try_emplace(tp, false);
    if (absl::StatusOr<Strategy> strategy = plainStrategy(); isNew && strategy.ok()) {
      strategy->mesh.tp = tp;
      known->second = models_.front()->isPaddable(*strategy).value_or(false);
    }
    if (known->second) found.insert(tp);
  }
  return found;
}

int64_t StrategyEvaluator::samplesOf(const Strategy& strategy) const {
  const int64_t microbatches = strategy.pipeline ? strategy.pipeline->microbatches.value_or(1) : 1;
  return options_.recipe.globalBatch / microbatches;
}

std::vector<std::vector<size_t>> StrategyEvaluator::workOf(
    const std::vector<Strategy>& strategies) const {
  std::vector<size_t> unknown;
  for (size_t i = 0; i < strategies.size(); ++i) {
    if (known_.count(strategies[i].text) == 0) unknown.push_back(i);
  }
  std::vector<std::vector<size_t>> work(models_.size());
  std::vector<std::set<int64_t>> samples = samplesOfThread_;
  const size_t most = (unknown.size() + work.size() - 1) / work.size();
  for (size_t i : unknown) {
    // The one with a model for it, of those that have not enough to do yet; else the idlest.
    const int64_t own = samplesOf(strategies[i]);
    size_t best = 0;
    const auto rank = [&](size_t thread) {
      const bool isFull = work[thread].size() >= most;
      return std::tuple(isFull, samples[thread].count(own) == 0, work[thread].size());
    };
    for (size_t thread = 1; thread < work.size(); ++thread) {
      if (rank(thread) < rank(best)) best = thread;
    }
    work[best].push_back(i);
    samples[best].insert(own);
  }
  return work;
}

std::vector<absl::StatusOr<Evaluation>> StrategyEvaluator::evaluate(
    const std::vector<Strategy>& strategies) {
  std::vector<absl::StatusOr<Evaluation>> found(strategies.size(),
                                                absl::UnknownError("not simulated"));
  const std::vector<std::vector<size_t>> work = workOf(strategies);
  for (size_t thread = 0; thread < work.size(); ++thread) {
    for (size_t i : work[thread]) samplesOfThread_[thread].insert(samplesOf(strategies[i]));
  }
  for (size_t i = 0; i < strategies.size(); ++i) {
    if (auto known = known_.find(strategies[i].text); known != known_.end())
      found[i] = known->second;
  }
  auto simulateOn = [&](size_t thread) {
    for (size_t i : work[thread]) {
      Strategy strategy = strategies[i];
      strategy.memory = options_.cluster.device.memory;
      absl::StatusOr<Simulation> simulation = models_[thread]->simulate(strategy);
      found[i] = simulation.ok() ? absl::StatusOr<Evaluation>(evaluationOf(*simulation))
                                 : simulation.status();
    }
  };
  std::vector<std::thread> threads;
  for (size_t thread = 1; thread < work.size(); ++thread) {
    if (!work[thread].empty()) threads.emplace_back(simulateOn, thread);
  }
  simulateOn(0);
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < strategies.size(); ++i) known_.try_emplace(strategies[i].text, found[i]);
  return found;
}

}  // namespace oriel::driver
