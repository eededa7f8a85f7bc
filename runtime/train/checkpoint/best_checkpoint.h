// Which checkpoint of a folder had the lowest loss in an evaluation: `best.json` beside them,
//   {"step": 1200, "eval_loss": 1.25}
#ifndef ORIEL_RUNTIME_TRAIN_CHECKPOINT_BEST_CHECKPOINT_H_
#define ORIEL_RUNTIME_TRAIN_CHECKPOINT_BEST_CHECKPOINT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

struct BestCheckpoint {
  int64_t step = 0;
  double loss = 0;
};

// The one of a folder. None without such a file, and where the checkpoint is not there or of a step
// above `last_step`: it is of another run then. InvalidArgument for a file that says no such thing.
absl::StatusOr<std::optional<BestCheckpoint>> FindBestCheckpoint(const std::string& save_dir,
                                                                 int64_t last_step);

// The file appears complete or not at all; its folder must be there.
absl::Status WriteBestCheckpoint(const std::string& save_dir, const BestCheckpoint& best);

// Removes the file of a run that came to later steps than the one which begins behind `last_step`.
absl::Status ForgetLaterBest(const std::string& save_dir, int64_t last_step);

// Whether `found` is better than the best of the folder so far. One without a finite loss never is.
absl::StatusOr<bool> IsBestCheckpoint(const std::string& save_dir, const BestCheckpoint& found);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CHECKPOINT_BEST_CHECKPOINT_H_
