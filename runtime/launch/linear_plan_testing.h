// A plan made by hand for tests of the program: a linear classifier, with the real kernels.
//
//   inputs      x f32[micro, 4, 6], labels i64[micro, 4] of 5 classes, -100 ignored
//   parameters  weight f32[6, 5], trained by AdamW at a constant rate; bias f32[5], frozen
#ifndef ORIEL_RUNTIME_LAUNCH_LINEAR_PLAN_TESTING_H_
#define ORIEL_RUNTIME_LAUNCH_LINEAR_PLAN_TESTING_H_

#include <cstdint>
#include <string>

#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

plan::Plan LinearPlan(int64_t ranks, int64_t microbatches, int64_t micro_batch);
// The same in two pipeline stages, on grids of their own: one has the weights and makes the logits,
// the other the labels and the loss. `samples` of a microbatch, which both numbers of ranks divide.
plan::Plan TwoStageLinearPlan(int64_t model_ranks, int64_t loss_ranks, int64_t microbatches,
                              int64_t samples);
// Its initial weights, FOLDER/weights.safetensors.
void WriteLinearWeights(const std::string& folder);
// Shards of samples that the classifier can learn: feature 0..4 that is largest is the label.
void WriteLinearShards(const std::string& folder, int64_t samples, int64_t per_shard);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_LINEAR_PLAN_TESTING_H_
