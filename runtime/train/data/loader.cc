#include "runtime/train/data/loader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/train/convert.h"

namespace oriel::runtime {
namespace {

// Sets all labels of one sample to the value that the loss leaves out.
absl::Status MaskLabels(const BatchInput& input, int64_t ignore_index, char* target) {
  const int64_t count = input.sample.num_elements();
  std::vector<int64_t> masked(count, ignore_index);
  return ConvertElements(DType::kI64, masked.data(), input.sample.dtype, target, count);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Loader>> Loader::Create(std::shared_ptr<const ShardIndex> index,
                                                       BatchLayout layout, const Options& options) {
  BatchSampler sampler(
      {index->size(), layout.global_batch(), options.seed, options.shuffle, options.drop_last});
  if (sampler.batches_per_epoch() == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(index->folder(), ": its ", index->size(), " samples don't make one batch of ",
                     layout.global_batch(), " (batch.global of the recipe); members KEY.INPUT.npy ",
                     "are of one sample where KEY, up to the first dot, is the same"));
  }
  if (options.start.epoch < 0 || options.start.batch < 0 ||
      options.start.batch >= sampler.batches_per_epoch()) {
    return absl::InvalidArgumentError(absl::StrCat(index->folder(), ": there is no batch ",
                                                   options.start.batch, ", an epoch has ",
                                                   sampler.batches_per_epoch()));
  }
  std::unique_ptr<Loader> loader(new Loader(std::move(index), std::move(layout), options, sampler));
  loader->thread_ = std::thread([raw = loader.get()] { raw->ReadAhead(); });
  return loader;
}

Loader::Loader(std::shared_ptr<const ShardIndex> index, BatchLayout layout, const Options& options,
               const BatchSampler& sampler)
    : index_(std::move(index)),
      layout_(std::move(layout)),
      options_(options),
      sampler_(sampler),
      reader_(index_, layout_.inputs) {}

Loader::~Loader() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::unique_ptr<Batch>> Loader::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return ready_.has_value(); });
  if (!ready_->ok()) return ready_->status();  // stays, for later calls
  absl::StatusOr<std::unique_ptr<Batch>> batch = *std::move(ready_);
  ready_.reset();
  lock.unlock();
  changed_.notify_all();
  return batch;
}

std::string Loader::Describe(const Batch& batch, int64_t microbatch) const {
  constexpr size_t kShown = 16;
  const std::vector<int64_t>& samples = batch.samples[microbatch];
  std::string text;
  for (size_t i = 0; i < std::min(kShown, samples.size()); ++i) {
    const int64_t sample = samples[i] == BatchSampler::kPadding ? index_->size() - 1 : samples[i];
    absl::StrAppend(&text, i == 0 ? "" : "; ", i, ": ", index_->Describe(index_->sample(sample)));
  }
  return samples.size() > kShown ? text + "; .." : text;
}

void Loader::ReadAhead() {
  DataPosition position = options_.start;
  bool last = false;
  for (int64_t n = 0; !last; ++n) {
    absl::StatusOr<std::unique_ptr<Batch>> batch =
        options_.batches && n >= *options_.batches
            ? absl::StatusOr<std::unique_ptr<Batch>>(absl::OutOfRangeError("no more batches"))
            : ReadBatch(position);
    last = !batch.ok();
    position = sampler_.Next(position);
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || !ready_.has_value(); });
    if (stop_) return;
    ready_ = std::move(batch);
    lock.unlock();
    changed_.notify_all();
  }
}

absl::StatusOr<std::unique_ptr<Batch>> Loader::ReadBatch(const DataPosition& position) {
  const std::vector<int64_t> places = sampler_.Batch(position);
  auto batch = std::make_unique<Batch>();
  batch->position = position;
  batch->data.resize(layout_.microbatches);
  batch->samples.resize(layout_.microbatches);
  for (int64_t m = 0; m < layout_.microbatches; ++m) {
    ORIEL_RETURN_IF_ERROR(ReadMicrobatch(places, m, *batch));
  }
  return batch;
}

absl::Status Loader::ReadMicrobatch(const std::vector<int64_t>& places, int64_t microbatch,
                                    Batch& batch) {
  std::vector<std::vector<char>>& data = batch.data[microbatch];
  for (const BatchInput& input : layout_.inputs) {
    data.emplace_back(input.used ? input.microbatch.bytes() : 0);
  }
  for (int64_t i = 0; i < layout_.micro_batch; ++i) {
    const int64_t sample = places[layout_.first_place(microbatch) + i];
    batch.samples[microbatch].push_back(sample);
    std::vector<char*> targets;
    for (size_t j = 0; j < data.size(); ++j) {
      const BatchInput& input = layout_.inputs[j];
      targets.push_back(input.used ? data[j].data() + i * input.sample.bytes() : nullptr);
    }
    for (size_t j = 0; j < data.size(); ++j) {
      if (!layout_.inputs[j].sample_bits || !layout_.inputs[j].used) continue;
      const int64_t bits = options_.is_training
                               ? SampleBits(options_.seed, batch.position.epoch,
                                            batch.position.batch * layout_.global_batch() +
                                                layout_.first_place(microbatch) + i)
                               : kNoSampleBits;
      std::memcpy(targets[j], &bits, sizeof bits);
    }
    const bool padding = sample == BatchSampler::kPadding;
    ORIEL_RETURN_IF_ERROR(reader_.Read(padding ? index_->size() - 1 : sample, targets));
    if (!padding) continue;
    for (size_t j = 0; j < data.size(); ++j) {
      if (!layout_.inputs[j].labels || !layout_.inputs[j].used) continue;
      ORIEL_RETURN_IF_ERROR(MaskLabels(layout_.inputs[j], layout_.ignore_index, targets[j]));
    }
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
