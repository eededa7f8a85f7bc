// What a rank reads of each batch.
#ifndef ORIEL_RUNTIME_TRAIN_DATA_BATCH_LAYOUT_H_
#define ORIEL_RUNTIME_TRAIN_DATA_BATCH_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

struct BatchInput {
  std::string name;
  std::string member;     // of a sample, that fills it
  TensorSpec microbatch;  // of the rank's samples, which are the first dimension
  TensorSpec sample;      // what the data must hold of one sample
  bool used = true;       // by the rank's program; what it does not use is not read
  bool labels = false;
  bool image_count = false;  // the number of images that a sample brought, from no member
  bool sample_bits = false;  // random bits of a sample, from no member
  // Of an input of images: how many there may be of a sample, the rows that one takes, a row's
  // shape, and the input that counts them. `sample` has images * image_rows rows.
  int64_t images = 0;
  int64_t image_rows = 0;
  Shape image_row;
  std::string counted_by;
};

// A global batch is cut into microbatches, and those into the shares of data-parallel ranks (ranks
// that are parallel in another way read the same samples):
//
//   place of a sample = (microbatch * data_parallel + data_rank) * micro_batch + i
//
// so which samples a batch holds does not depend on how many ranks share it. Each grid may cut a
// microbatch into as many shares as it likes; one that uses no inputs has the whole microbatch.
struct BatchLayout {
  std::vector<BatchInput> inputs;
  int64_t micro_batch = 1;             // samples of a share of a microbatch
  int64_t microbatches = 1;            // per batch
  int64_t data_parallel = 1;           // shares of a microbatch
  int64_t data_rank = 0;               // this rank's; others may have the same
  bool first_copy = true;              // of the ranks with the same share it is the first
  std::vector<std::string> data_axes;  // atomic axes that cut a batch, outermost first
  int64_t ignore_index = -100;

  int64_t global_batch() const { return micro_batch * microbatches * data_parallel; }
  // The first place of this rank's slice of a microbatch.
  int64_t first_place(int64_t microbatch) const {
    return (microbatch * data_parallel + data_rank) * micro_batch;
  }
  // The input with the labels, used or not; null if the plan has none.
  const BatchInput* labels() const;
};

// The layout of one rank's training batches. InvalidArgument if the plan's numbers disagree.
absl::StatusOr<BatchLayout> TrainingLayout(const plan::Plan& plan, int64_t rank);
// The same inputs with one microbatch per batch, as evaluation runs them.
BatchLayout EvaluationLayout(BatchLayout training);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_DATA_BATCH_LAYOUT_H_
