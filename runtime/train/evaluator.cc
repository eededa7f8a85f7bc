#include "runtime/train/evaluator.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"
#include "runtime/train/convert.h"
#include "runtime/train/data/loader.h"
#include "runtime/train/data/npy.h"
#include "runtime/train/json_util.h"
#include "runtime/train/piece_gatherer.h"
#include "runtime/train/step_buffers.h"

namespace oriel::runtime {
namespace {

// What a rank adds to the sums over all; doubles, so that one all-reduce adds them all (counts stay
// exact). Of ranks with the same samples the first counts them.
struct Sums {
  double loss = 0, tokens = 0;  // as the segment has them
  double labelled_tokens = 0, right_tokens = 0, labelled_samples = 0, exact_samples = 0,
         samples = 0;
};

// An output of the program that runs the last stage.
struct Output {
  const plan::Buffer* buffer;
  TensorLayout layout;
  HostAccess access;  // this rank's; of nothing on ranks of other programs
};

const plan::Buffer* FindOutputBuffer(const plan::Program& program, const std::string& name) {
  for (const plan::Buffer& buffer : program.buffers()) {
    if (buffer.kind() == plan::OUTPUT && buffer.ref() == name) return &buffer;
  }
  return nullptr;
}

// Of the program that has the loss: others may have a count, too, from `update`.
absl::StatusOr<Output> FindOutput(const RankContext& context, const std::string& name) {
  for (const plan::Program& program : context.plan->programs()) {
    const plan::Buffer* buffer = FindOutputBuffer(program, name);
    const plan::Grid* grid = GridOfRank(*context.plan, program.first_rank());
    if (FindOutputBuffer(program, "loss_sum") == nullptr || buffer == nullptr || grid == nullptr) {
      continue;
    }
    absl::StatusOr<TensorLayout> layout = TensorLayout::Create(
        *grid, buffer->sharding(), {buffer->global_shape().begin(), buffer->global_shape().end()});
    if (!layout.ok()) return Annotate(layout.status(), name);
    Output output{buffer, *std::move(layout), {}};
    if (output.layout.Contains(context.rank)) {
      ORIEL_ASSIGN_OR_RETURN(BufferView view, context.executor->Find(plan::OUTPUT, name));
      output.access = HostAccess(*context.executor, view);
    }
    return output;
  }
  return absl::NotFoundError(absl::StrCat("the plan outputs no ", name));
}

// The segments that evaluate a batch, in the order of their stages.
std::vector<std::string> EvalSegments(const plan::Program& program) {
  std::vector<std::string> names;
  for (const plan::Segment& segment : program.segments()) {
    if (SegmentKind(segment.name()) == "eval") names.push_back(segment.name());
  }
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return SegmentStage(a).value_or(0) < SegmentStage(b).value_or(0);
  });
  return names;
}

class Evaluator {
 public:
  explicit Evaluator(const RankContext& context) : context_(context) {}

  // Finds what a batch needs; what is wrong with plan, data and options.
  absl::Status Check(const ShardIndex& data, bool has_logits);
  // And that the first batch can be read.
  absl::Status CheckFirstBatch(std::shared_ptr<const ShardIndex> data, bool has_logits);
  absl::Status Prepare(std::shared_ptr<const ShardIndex> data, const std::string& logits_path);
  absl::StatusOr<Evaluation> Run();

 private:
  absl::StatusOr<std::unique_ptr<Loader>> MakeLoader(std::shared_ptr<const ShardIndex> data,
                                                     int64_t batches) const;
  absl::Status Count(const Batch& batch);
  absl::Status PreparePredictions();
  absl::Status FindLogits();
  TensorSpec LogitsOfBatch() const {
    return {FromPlan(logits_->buffer->local()).dtype, logits_->layout.global()};
  }
  absl::Status PrepareLogits(const std::string& path);
  absl::Status GatherLogits(const Batch& batch);

  const RankContext& context_;
  BatchLayout layout_;
  int64_t batches_ = 0;
  int64_t samples_ = 0;
  std::unique_ptr<Loader> loader_;
  InputBuffers inputs_;
  std::vector<std::string> segments_;
  std::optional<Output> loss_sum_, token_count_, predictions_, logits_;
  std::optional<PieceGatherer> gatherer_;
  std::optional<NpyWriter> writer_;
  std::vector<char> gathered_;           // of a batch, on the rank that writes them
  std::vector<char> predicted_, piece_;  // the rank's own, where a device has them
  Sums sums_;
};

absl::Status Evaluator::Check(const ShardIndex& data, bool has_logits) {
  const auto& programs = context_.plan->programs();
  if (std::all_of(programs.begin(), programs.end(),
                  [](const plan::Program& program) { return EvalSegments(program).empty(); })) {
    return absl::FailedPreconditionError("the plan has no eval segment");
  }
  segments_ = EvalSegments(context_.executor->program());
  ORIEL_ASSIGN_OR_RETURN(BatchLayout training, TrainingLayout(*context_.plan, context_.rank));
  layout_ = EvaluationLayout(std::move(training));
  ORIEL_ASSIGN_OR_RETURN(inputs_, InputBuffers::Bind(layout_, *context_.executor));
  ORIEL_ASSIGN_OR_RETURN(loss_sum_, FindOutput(context_, "loss_sum"));
  ORIEL_ASSIGN_OR_RETURN(token_count_, FindOutput(context_, "token_count"));
  if (layout_.labels() != nullptr) ORIEL_RETURN_IF_ERROR(PreparePredictions());
  samples_ = data.size();
  const int64_t batch = layout_.global_batch();
  if (layout_.labels() == nullptr && samples_ % batch != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan has no labels, so it evaluates whole batches of ", batch,
                     " samples; the data has ", samples_));
  }
  return has_logits ? FindLogits() : absl::OkStatus();
}

absl::Status Evaluator::CheckFirstBatch(std::shared_ptr<const ShardIndex> data, bool has_logits) {
  ORIEL_RETURN_IF_ERROR(Check(*data, has_logits));
  ORIEL_ASSIGN_OR_RETURN(const std::unique_ptr<Loader> loader, MakeLoader(std::move(data), 1));
  return loader->Next().status();
}

absl::Status Evaluator::Prepare(std::shared_ptr<const ShardIndex> data,
                                const std::string& logits_path) {
  ORIEL_RETURN_IF_ERROR(Check(*data, !logits_path.empty()));
  batches_ = (samples_ + layout_.global_batch() - 1) / layout_.global_batch();
  if (logits_) ORIEL_RETURN_IF_ERROR(PrepareLogits(logits_path));
  ORIEL_ASSIGN_OR_RETURN(loader_, MakeLoader(std::move(data), batches_));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Loader>> Evaluator::MakeLoader(
    std::shared_ptr<const ShardIndex> data, int64_t batches) const {
  Loader::Options options;
  options.shuffle = false;
  options.drop_last = false;
  options.is_training = false;
  options.batches = batches;
  return Loader::Create(std::move(data), layout_, options);
}

absl::Status Evaluator::PreparePredictions() {
  ORIEL_ASSIGN_OR_RETURN(predictions_, FindOutput(context_, "predictions"));
  if (!predictions_->access.exists()) return absl::OkStatus();
  const BatchInput& labels = *layout_.labels();
  const TensorSpec spec = FromPlan(predictions_->buffer->local());
  if (!labels.used || spec.shape != labels.microbatch.shape || spec.dtype != DType::kI64) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan's predictions are ", spec.ToString(), ", the labels beside them ",
                     labels.used ? labels.microbatch.ToString() : "not there"));
  }
  return absl::OkStatus();
}

absl::Status Evaluator::FindLogits() {
  absl::StatusOr<Output> logits = FindOutput(context_, "logits");
  if (absl::IsNotFound(logits.status())) {
    return absl::FailedPreconditionError(
        "the plan never holds logits (oriel compile --fuse-loss): compile it without, for "
        "--eval-logits");
  }
  ORIEL_ASSIGN_OR_RETURN(logits_, std::move(logits));
  const TensorSpec all = LogitsOfBatch();
  if (all.shape.empty() || all.shape[0] % layout_.global_batch() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--eval-logits: what the plan's loss is computed from, ", all.ToString(),
                     ", does not have samples as its first dimension"));
  }
  return absl::OkStatus();
}

absl::Status Evaluator::PrepareLogits(const std::string& path) {
  ORIEL_ASSIGN_OR_RETURN(gatherer_, PieceGatherer::Create(*context_.plan, context_.world));
  if (!context_.is_first()) return absl::OkStatus();
  TensorSpec all = LogitsOfBatch();
  gathered_.resize(all.bytes());
  all.shape[0] *= samples_;
  all.shape[0] /= layout_.global_batch();
  ORIEL_ASSIGN_OR_RETURN(writer_, NpyWriter::Create(path, all));
  return absl::OkStatus();
}

absl::StatusOr<Evaluation> Evaluator::Run() {
  Evaluation result;
  for (int64_t i = 0; i < batches_ && !result.interrupted; ++i) {
    ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Batch> batch, loader_->Next());
    ORIEL_RETURN_IF_ERROR(inputs_.Fill(*batch, 0));
    for (const std::string& segment : segments_) {
      absl::Status status = context_.executor->Run(segment);
      if (absl::IsInvalidArgument(status)) {
        return AppendSamples(status, loader_->Describe(*batch, 0));
      }
      ORIEL_RETURN_IF_ERROR(status);
    }
    if (loss_sum_->access.exists()) ORIEL_RETURN_IF_ERROR(Count(*batch));
    if (logits_) ORIEL_RETURN_IF_ERROR(GatherLogits(*batch));
    ORIEL_ASSIGN_OR_RETURN(result.interrupted, AnyInterrupted(context_));
  }
  if (context_.world != nullptr) {
    const ReduceBuffer buffer{&sums_, &sums_, sizeof(Sums) / sizeof(double), DType::kF64};
    ORIEL_RETURN_IF_ERROR(
        context_.world->AllReduce(Reduction::kSum, absl::MakeConstSpan(&buffer, 1)));
  }
  if (predictions_ && sums_.tokens != sums_.labelled_tokens) {
    return absl::InternalError(absl::StrCat("the eval segment counted ", sums_.tokens,
                                            " labelled tokens, the host ", sums_.labelled_tokens));
  }
  if (writer_ && !result.interrupted) ORIEL_RETURN_IF_ERROR(writer_->Finish());
  result.labelled = predictions_.has_value();
  result.samples = static_cast<int64_t>(sums_.samples);
  result.tokens = static_cast<int64_t>(sums_.tokens);
  auto share = [](double part, double whole) { return whole > 0 ? part / whole : 0.0; };
  result.loss = share(sums_.loss, sums_.tokens);
  result.token_accuracy = share(sums_.right_tokens, sums_.tokens);
  result.exact_match = share(sums_.exact_samples, sums_.labelled_samples);
  return result;
}

absl::Status Evaluator::Count(const Batch& batch) {
  for (const auto& [output, sum] :
       {std::pair{&*loss_sum_, &sums_.loss}, {&*token_count_, &sums_.tokens}}) {
    ORIEL_ASSIGN_OR_RETURN(const double number, ReadNumber(output->access));
    // It is the same on all ranks, or a pending sum.
    if (output->layout.Contributes(context_.rank)) *sum += number;
  }
  if (!layout_.first_copy) return absl::OkStatus();
  for (int64_t sample : batch.samples[0]) sums_.samples += sample != BatchSampler::kPadding;
  if (!predictions_) return absl::OkStatus();
  const BatchInput& input = *layout_.labels();
  const TensorSpec& spec = input.microbatch;
  std::vector<int64_t> labels(spec.num_elements());
  const size_t place = &input - layout_.inputs.data();
  ORIEL_RETURN_IF_ERROR(ConvertElements(spec.dtype, batch.data[0][place].data(), DType::kI64,
                                        labels.data(), spec.num_elements()));
  const int64_t positions = spec.num_elements() / layout_.micro_batch;
  ORIEL_ASSIGN_OR_RETURN(const void* predicted, predictions_->access.Map(predicted_));
  const auto* predictions = static_cast<const int64_t*>(predicted);
  const LabelCounts counts =
      CountLabels(labels.data(), predictions, layout_.micro_batch, positions,
                  context_.plan->training().label_shift(), layout_.ignore_index);
  sums_.labelled_tokens += static_cast<double>(counts.tokens);
  sums_.right_tokens += static_cast<double>(counts.right_tokens);
  sums_.labelled_samples += static_cast<double>(counts.labelled_samples);
  sums_.exact_samples += static_cast<double>(counts.exact_samples);
  return absl::OkStatus();
}

absl::Status Evaluator::GatherLogits(const Batch& batch) {
  const TensorSpec all = LogitsOfBatch();
  const void* piece = nullptr;
  if (logits_->access.exists()) {
    ORIEL_ASSIGN_OR_RETURN(piece, logits_->access.Map(piece_));
  }
  ORIEL_RETURN_IF_ERROR(gatherer_->Gather(logits_->layout, all.dtype, piece, gathered_.data()));
  if (!writer_) return absl::OkStatus();
  const int64_t first = batch.position.batch * layout_.global_batch();
  const int64_t valid = std::min(layout_.global_batch(), samples_ - first);
  return writer_->Append(gathered_.data(), valid * (all.bytes() / layout_.global_batch()));
}

}  // namespace

LabelCounts CountLabels(const int64_t* labels, const int64_t* predictions, int64_t samples,
                        int64_t positions, int64_t first_position, int64_t ignore_index) {
  LabelCounts counts;
  for (int64_t i = 0; i < samples; ++i) {
    int64_t tokens = 0, right = 0;
    for (int64_t j = i * positions + first_position; j < (i + 1) * positions; ++j) {
      if (labels[j] == ignore_index) continue;
      ++tokens;
      right += labels[j] == predictions[j];
    }
    counts.tokens += tokens;
    counts.right_tokens += right;
    counts.labelled_samples += tokens > 0;
    counts.exact_samples += tokens > 0 && tokens == right;
  }
  return counts;
}

absl::StatusOr<Evaluation> Evaluate(const RankContext& context,
                                    std::shared_ptr<const ShardIndex> data,
                                    const std::string& logits_path) {
  Evaluator evaluator(context);
  absl::Status status = evaluator.Prepare(std::move(data), logits_path);
  if (!status.ok()) return Annotate(status, "eval");
  absl::StatusOr<Evaluation> result = evaluator.Run();
  if (!result.ok()) return Annotate(result.status(), "eval");
  return result;
}

absl::Status CheckEvaluation(const RankContext& context, std::shared_ptr<const ShardIndex> data,
                             bool has_logits) {
  return Annotate(Evaluator(context).CheckFirstBatch(std::move(data), has_logits), "eval");
}

std::string FormatEvaluation(const Evaluation& evaluation) {
  if (!evaluation.labelled) {
    return absl::StrFormat("eval: loss %.4f per batch, %d samples", evaluation.loss,
                           evaluation.samples);
  }
  if (evaluation.tokens == 0) {
    return absl::StrFormat("eval: no label of the %d samples counts, so there is no loss",
                           evaluation.samples);
  }
  return absl::StrFormat(
      "eval: loss %.4f, token accuracy %.4f, exact match %.4f, %d samples, %d tokens",
      evaluation.loss, evaluation.token_accuracy, evaluation.exact_match, evaluation.samples,
      evaluation.tokens);
}

std::vector<std::pair<std::string, double>> ScalarsOf(const Evaluation& evaluation) {
  if (!evaluation.labelled) return {{"eval/loss", evaluation.loss}};
  if (evaluation.tokens == 0) return {};
  return {{"eval/loss", evaluation.loss},
          {"eval/token_accuracy", evaluation.token_accuracy},
          {"eval/exact_match", evaluation.exact_match}};
}

std::string EncodeEvaluation(const Evaluation& evaluation, int64_t step) {
  nlohmann::ordered_json json = {
      {"eval_loss", evaluation.loss},  {"token_accuracy", nullptr}, {"exact_match", nullptr},
      {"samples", evaluation.samples}, {"tokens", nullptr},         {"step", step}};
  if (evaluation.labelled) json["tokens"] = evaluation.tokens;
  if (evaluation.labelled && evaluation.tokens > 0) {
    json["token_accuracy"] = evaluation.token_accuracy;
    json["exact_match"] = evaluation.exact_match;
  } else if (evaluation.labelled) {
    json["eval_loss"] = nullptr;
  }
  return json.dump();
}

}  // namespace oriel::runtime
