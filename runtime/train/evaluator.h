// Evaluates the parameters on a data set.
#ifndef ORIEL_RUNTIME_TRAIN_EVALUATOR_H_
#define ORIEL_RUNTIME_TRAIN_EVALUATOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/train/data/tar_shards.h"
#include "runtime/train/rank_context.h"

namespace oriel::runtime {

struct Evaluation {
  int64_t samples = 0;        // evaluated, each once
  int64_t tokens = 0;         // labels that count
  bool labelled = true;       // false: the loss is no mean over tokens, and the rest is 0
  double loss = 0;            // mean over those tokens; without labels, over the batches
  double token_accuracy = 0;  // share of them that the model's first choice gets right
  double exact_match = 0;     // share of labelled samples with all of them right
  bool interrupted = false;   // before the end; then the numbers are of a part
};

// Runs the plan's `eval` segments over all samples in their order; collective, every rank gets the
// same result. The ranks of the last pipeline stage have the loss and count. The last batch is
// filled up with a sample whose labels don't count; without labels it must be full
// (InvalidArgument). Writes, on rank 0, the logits of all samples to `logits_path` (f32 .npy,
// [samples, ...], or of as many rows for each sample as the model gives) unless empty.
absl::StatusOr<Evaluation> Evaluate(const RankContext& context,
                                    std::shared_ptr<const ShardIndex> data,
                                    const std::string& logits_path);

// What would keep Evaluate() from beginning, or from reading the first batch; asked before
// training.
absl::Status CheckEvaluation(const RankContext& context, std::shared_ptr<const ShardIndex> data,
                             bool has_logits);

// "eval: loss 0.1234, token accuracy 0.9876, exact match 0.9123, 1000 samples, 4000 tokens"
// Without tokens that count there is no loss, and no share of them: the text says so, and JSON has
// null.
std::string FormatEvaluation(const Evaluation& evaluation);
// {"eval_loss":..,"token_accuracy":..,"exact_match":..,"samples":..,"tokens":..,"step":..}
std::string EncodeEvaluation(const Evaluation& evaluation, int64_t step);

// As TensorBoard shows it: {"eval/loss", 0.1}, .., what there is.
std::vector<std::pair<std::string, double>> ScalarsOf(const Evaluation& evaluation);

// How one microbatch of predictions compares with its labels; both [samples, positions].
struct LabelCounts {
  int64_t tokens = 0;
  int64_t right_tokens = 0;
  int64_t labelled_samples = 0;
  int64_t exact_samples = 0;
};
// Positions before `first_position` and labels equal to `ignore_index` don't count.
LabelCounts CountLabels(const int64_t* labels, const int64_t* predictions, int64_t samples,
                        int64_t positions, int64_t first_position, int64_t ignore_index);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_EVALUATOR_H_
