#include "runtime/launch/same_job.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"
#include "runtime/train/checkpoint/checkpoint_index.h"

namespace oriel::runtime {
namespace {

// What all ranks must have alike, what it is called, and what to do where it differs.
struct Item {
  const char* name;
  uint64_t hash;
  const char* remedy;
};

// The names of samples, in order: what they hold is read later.
uint64_t HashOf(const ShardIndex* data) {
  if (data == nullptr) return 0;
  uint64_t hash = kFnv1aStart;
  for (int64_t i = 0; i < data->size(); ++i) hash = Fnv1a("\n", Fnv1a(data->sample(i).key, hash));
  return hash;
}

// Of what was read from such a text.
uint64_t HashOf(const absl::StatusOr<std::string>& text) { return text.ok() ? Fnv1a(*text) : 0; }

// By step and names, types and sizes of what it holds.
uint64_t HashOf(const std::optional<CheckpointReader>& checkpoint) {
  return checkpoint ? HashOf(EncodeCheckpointIndex(checkpoint->index())) : 0;
}

std::vector<Item> ItemsOf(const Job& job) {
  const RunOptions& o = job.options;
  std::string options =
      absl::StrCat(job.steps, " ", o.no_shuffle, " ", o.save_every, " ", o.eval_every, " ",
                   o.keep_best, " ", o.save_dir.empty(), " ", o.eval_logits.empty(), " ",
                   o.dump_gradients.empty(), " ", o.dump_parameters.empty(), " ", o.trace.empty(),
                   " ", o.check_nan, " ", o.profile, " ", o.allow_nan);
  if (o.trace_steps) {
    absl::StrAppend(&options, " ", o.trace_steps->first, "-", o.trace_steps->last);
  }
  for (const auto& [segment, milliseconds] : o.replace_compute) {
    absl::StrAppend(&options, " ", segment, "=", milliseconds);
  }
  constexpr char kCopy[] = "copy that of rank 0 to its machine";
  constexpr char kOptions[] = "start all ranks with the same options";
  // The seed may be the checkpoint's.
  return {{"plan", HashOf(EncodePlan(job.plan)), kCopy},
          {"checkpoint", HashOf(job.checkpoint),
           o.auto_resume ? "--save-dir must be one folder that all ranks see" : kCopy},
          {"checkpoint of --init-from", HashOf(job.initial), kCopy},
          {"training data", HashOf(job.train_data.get()), kCopy},
          {"evaluation data", HashOf(job.eval_data.get()), kCopy},
          {"--seed", Fnv1a(absl::StrCat(job.seed)), kOptions},
          {"options", Fnv1a(options), kOptions}};
}

}  // namespace

absl::Status CheckSameJob(const Job& job, Communicator& world) {
  if (world.size() == 1) return absl::OkStatus();
  const std::vector<Item> items = ItemsOf(job);
  // The largest of all is rank 0's.
  std::vector<int64_t> first;
  for (const Item& item : items) {
    const auto number = static_cast<int64_t>(item.hash >> 1);
    first.push_back(world.rank() == 0 ? number : std::numeric_limits<int64_t>::min());
  }
  const ReduceBuffer buffer{first.data(), first.data(), static_cast<int64_t>(first.size()),
                            DType::kI64};
  ORIEL_RETURN_IF_ERROR(world.AllReduce(Reduction::kMax, absl::MakeConstSpan(&buffer, 1)));
  for (size_t i = 0; i < items.size(); ++i) {
    if (static_cast<int64_t>(items[i].hash >> 1) == first[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("the ", items[i].name, " of rank ", world.rank(),
                                                   " is not that of rank 0; ", items[i].remedy));
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
