#include "runtime/train/batch_layout.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

// The atomic axes over which a grid's ranks have different samples.
std::vector<std::string> DataAxes(const plan::Grid& grid) {
  std::vector<std::string> axes;
  for (const plan::MeshAxis& mesh : grid.mesh()) {
    if (!mesh.module().empty() || (mesh.name() != "dp" && mesh.name() != "fsdp")) continue;
    axes.insert(axes.end(), mesh.axes().begin(), mesh.axes().end());
  }
  return axes;
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
  BatchLayout layout;
  layout.micro_batch = training.micro_batch();
  layout.microbatches = training.microbatches();
  layout.ignore_index = training.ignore_index();
  const plan::Grid* grid = nullptr;
  for (const plan::Grid& candidate : plan.grids()) {
    if (GridLayout(candidate).Contains(rank)) grid = &candidate;
  }
  if (grid == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has no grid with rank ", rank));
  }
  std::vector<int64_t> group = GridLayout(*grid).Group(rank, DataAxes(*grid));
  layout.data_parallel = static_cast<int64_t>(group.size());
  layout.data_rank = std::find(group.begin(), group.end(), rank) - group.begin();
  if (layout.data_parallel != training.data_parallel() || layout.micro_batch < 1 ||
      layout.microbatches < 1 || layout.global_batch() != training.global_batch()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan's batch sizes disagree: global batch ", training.global_batch(),
                     ", ", training.microbatches(), " microbatches of ", training.micro_batch(),
                     " on ", training.data_parallel(), " data-parallel ranks (the grid has ",
                     layout.data_parallel, ")"));
  }
  for (const plan::Input& input : plan.inputs()) {
    BatchInput entry;
    entry.name = input.name();
    entry.member = input.member().empty() ? input.name() : input.member();
    entry.microbatch = FromPlan(input.microbatch());
    entry.labels = input.labels();
    entry.sample = entry.microbatch;
    Shape& shape = entry.sample.shape;
    if (shape.empty() || shape[0] % layout.micro_batch != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", entry.name, " is ", entry.microbatch.ToString(),
                       "; its first dimension should be a multiple of the microbatch of ",
                       layout.micro_batch, " samples"));
    }
    entry.image_count = input.image_count();
    if (input.has_images()) {
      entry.images = input.images().per_sample();
      entry.image_rows = input.images().rows();
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
