#include "runtime/train/data/batch_layout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/data_axes.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"

namespace oriel::runtime {
namespace {

// Sets which share of a batch the rank reads.
absl::Status SetShare(const plan::Grid& grid, const plan::Program& program, int64_t rank,
                      BatchLayout* layout) {
  ORIEL_ASSIGN_OR_RETURN(layout->data_axes, DataAxes(program));
  int64_t shares = 1;
  for (const plan::AtomicAxis& axis : grid.axes()) {
    const auto& axes = layout->data_axes;
    if (std::find(axes.begin(), axes.end(), axis.name()) != axes.end()) shares *= axis.size();
  }
  plan::Sharding sharding;
  sharding.add_dims()->mutable_axes()->Add(layout->data_axes.begin(), layout->data_axes.end());
  absl::StatusOr<TensorLayout> cut = TensorLayout::Create(grid, sharding, {shares});
  if (!cut.ok()) return Annotate(cut.status(), "inputs");
  layout->data_parallel = shares;
  layout->data_rank = cut->BoxOf(rank).start[0];
  layout->first_copy = cut->Owns(rank);
  return absl::OkStatus();
}

}  // namespace

const BatchInput* BatchLayout::labels() const {
  for (const BatchInput& input : inputs) {
    if (input.labels) return &input;
  }
  return nullptr;
}

absl::StatusOr<BatchLayout> TrainingLayout(const plan::Plan& plan, int64_t rank) {
  const plan::Training& training = plan.training();
  const plan::Grid* grid = GridOfRank(plan, rank);
  const plan::Program* program = ProgramOfRank(plan, rank);
  if (grid == nullptr || program == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has no grid with rank ", rank));
  }
  BatchLayout layout;
  layout.microbatches = training.microbatches();
  layout.ignore_index = training.ignore_index();
  ORIEL_RETURN_IF_ERROR(SetShare(*grid, *program, rank, &layout));
  const int64_t samples = training.micro_batch() * training.data_parallel();
  layout.micro_batch = samples / layout.data_parallel;
  if (samples % layout.data_parallel != 0 || layout.micro_batch < 1 || layout.microbatches < 1 ||
      layout.global_batch() != training.global_batch()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the plan's batch sizes disagree: global batch ", training.global_batch(), ", ",
        training.microbatches(), " microbatches of ", training.micro_batch(), " on ",
        training.data_parallel(), " data-parallel ranks (the inputs are split over ",
        layout.data_parallel, ")"));
  }
  std::set<std::string> used;
  for (const plan::Buffer& buffer : program->buffers()) {
    if (buffer.kind() == plan::INPUT) used.insert(buffer.ref());
  }
  std::string only_count;
  for (const plan::Input& input : plan.inputs()) {
    if (input.image_count()) only_count = input.name();
  }
  for (const plan::Input& input : plan.inputs()) {
    BatchInput entry;
    entry.name = input.name();
    entry.used = used.count(input.name()) > 0;
    entry.member = input.member().empty() ? input.name() : input.member();
    entry.microbatch = FromPlan(input.microbatch());
    if (entry.microbatch.shape.empty() || entry.microbatch.shape[0] % samples != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", entry.name, " is ", entry.microbatch.ToString(),
          "; its first dimension should be a multiple of the microbatch's ", samples, " samples"));
    }
    entry.microbatch.shape[0] /= layout.data_parallel;
    entry.labels = input.labels();
    entry.sample = entry.microbatch;
    Shape& shape = entry.sample.shape;
    entry.image_count = input.image_count();
    entry.sample_bits = input.sample_bits();
    if (input.has_images()) {
      entry.images = input.images().per_sample();
      entry.image_rows = input.images().rows();
      entry.counted_by = input.images().count().empty() ? only_count : input.images().count();
      // [samples * rows, ..], or [samples, rows, ..].
      const bool joined = shape[0] == layout.micro_batch * entry.images * entry.image_rows;
      entry.image_row.assign(shape.begin() + (joined ? 1 : 2), shape.end());
    }
    // Several rows per sample (crops of an image, say) keep their dimension.
    shape[0] /= layout.micro_batch;
    if (shape[0] == 1) shape.erase(shape.begin());
    layout.inputs.push_back(std::move(entry));
  }
  return layout;
}

BatchLayout EvaluationLayout(BatchLayout training) {
  training.microbatches = 1;
  return training;
}

}  // namespace oriel::runtime
