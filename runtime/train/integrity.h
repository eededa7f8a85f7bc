// Whether files that training begins with are what was written, by checksums. Collective over the
// ranks of `context`: each reads an equal share of them, and if one finds damage it gets DataLoss,
// naming the file and what to do, and the others Aborted.
#ifndef ORIEL_RUNTIME_TRAIN_INTEGRITY_H_
#define ORIEL_RUNTIME_TRAIN_INTEGRITY_H_

#include <string>

#include "absl/status/status.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/rank_context.h"

namespace oriel::runtime {

// Opens a checkpoint that was closed, and checks its parameters and, `with_optimizer`, its
// optimizer states.
absl::Status OpenSoundCheckpoint(CheckpointReader& checkpoint, bool with_optimizer,
                                 const RankContext& context);
// Of the initial weights of the plan, beside it in `plan_folder`. Files without a checksum, which
// somebody made, pass.
absl::Status CheckInitialWeights(const std::string& plan_folder, const RankContext& context);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_INTEGRITY_H_
