// The training loop of one rank.
#ifndef ORIEL_RUNTIME_TRAIN_TRAINER_H_
#define ORIEL_RUNTIME_TRAIN_TRAINER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/train/checkpoint/checkpoint_index.h"
#include "runtime/train/data/tar_shards.h"
#include "runtime/train/model_state.h"
#include "runtime/train/rank_context.h"

namespace oriel::runtime {

class EventFile;

struct TrainerOptions {
  int64_t steps = 0;  // the last step
  uint64_t seed = 0;  // of the order of the data
  bool shuffle = true;
  std::string metrics;          // file, or empty
  EventFile* events = nullptr;  // gets them, too; null: none
  std::string save_dir;         // checkpoints: at the end, when interrupted,
  int64_t save_every = 0;       // and every so many steps (0: not)
  int64_t keep = 0;             // of the checkpoints there, so many of the latest; 0: all
  std::string dump_gradients;   // file for those of the first step, or empty
  bool profile = false;         // prints where the time went
  bool allow_nan = false;       // goes on when it has diverged
  // Called on every rank after every so many steps (0: never) but the last one: the loss, a NaN
  // where there is none; nothing if it was interrupted.
  int64_t eval_every = 0;
  std::function<absl::StatusOr<std::optional<double>>(int64_t step)> evaluate;
  bool keep_best = false;  // saves a checkpoint where that loss is the lowest so far
};

struct TrainingOutcome {
  int64_t step = 0;  // finished
  bool interrupted = false;
  std::string checkpoint;  // the last one written, if any
};

// Runs the steps behind `start` (null: from the beginning) on this rank; every rank of the world
// does so. Rank 0 writes metrics and progress, all ranks write checkpoints. After an interrupt, all
// ranks finish the same step and return. An error is this rank's; the caller aborts the others. A
// step whose loss is a NaN, or whose gradient's norm is not finite, is FailedPrecondition on rank 0
// and Aborted on the others, before a checkpoint is written.
absl::StatusOr<TrainingOutcome> Train(const RankContext& context, ModelState& state,
                                      std::shared_ptr<const ShardIndex> data,
                                      const TrainingProgress* start, const TrainerOptions& options);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_TRAINER_H_
