#include "runtime/train/trainer.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/checkpoint/best_checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/checkpoint/checkpoint_writer.h"
#include "runtime/train/data/loader.h"
#include "runtime/train/event_file.h"
#include "runtime/train/gradient_dump.h"
#include "runtime/train/kernel_profile.h"
#include "runtime/train/learning_rate.h"
#include "runtime/train/metrics.h"
#include "runtime/train/progress.h"
#include "runtime/train/step_buffers.h"
#include "runtime/train/step_profile.h"

namespace oriel::runtime {
namespace {

using Clock = std::chrono::steady_clock;

class Trainer {
 public:
  Trainer(const RankContext& context, ModelState& state, const TrainerOptions& options)
      : context_(context),
        state_(state),
        options_(options),
        progress_line_(options.steps, options.eval_every, context.terminal) {}

  absl::Status Prepare(std::shared_ptr<const ShardIndex> data, const TrainingProgress* start);
  absl::StatusOr<TrainingOutcome> Run();

 private:
  void WarnOfLaterCheckpoints() const;
  DataPosition StartPosition(const TrainingProgress& start);
  absl::StatusOr<StepMetrics> Step(int64_t step);
  absl::Status RunSchedule(const Batch& batch, int64_t step, double rate);
  absl::Status BeforeUpdate(int64_t step, double rate);
  void Warn(const std::string& what);
  absl::Status Report(const StepMetrics& metrics);
  absl::Status CheckFinite(const StepMetrics& metrics);
  absl::Status Save();
  absl::StatusOr<bool> Evaluate(bool is_saved);
  absl::Status KeepIfBest(double loss, bool is_saved);
  bool IsSavePoint(int64_t step) const {
    return options_.save_every > 0 && step % options_.save_every == 0;
  }

  const RankContext& context_;
  ModelState& state_;
  const TrainerOptions& options_;
  Progress progress_line_;
  StepProfile profile_;

  TrainingProgress progress_;
  int64_t first_step_ = 1;
  BatchLayout layout_;
  std::unique_ptr<Loader> loader_;
  InputBuffers inputs_;
  std::optional<HostAccess> rate_, step_number_, grad_norm_;
  HostAccess loss_;
  std::optional<MetricsFile> metrics_;
  bool warned_ = false, warned_of_zero_ = false;
  std::string last_checkpoint_;
};

absl::Status Trainer::Prepare(std::shared_ptr<const ShardIndex> data,
                              const TrainingProgress* start) {
  Executor& executor = *context_.executor;
  ORIEL_ASSIGN_OR_RETURN(layout_, TrainingLayout(*context_.plan, context_.rank));
  ORIEL_ASSIGN_OR_RETURN(inputs_, InputBuffers::Bind(layout_, executor));
  ORIEL_ASSIGN_OR_RETURN(rate_, FindOptional(executor, plan::SCALAR, "learning_rate"));
  ORIEL_ASSIGN_OR_RETURN(step_number_, FindOptional(executor, plan::SCALAR, "step"));
  ORIEL_ASSIGN_OR_RETURN(grad_norm_, FindOptional(executor, plan::OUTPUT, "grad_norm"));
  ORIEL_ASSIGN_OR_RETURN(const BufferView loss, executor.Find(plan::OUTPUT, "loss"));
  loss_ = HostAccess(executor, loss);

  progress_.seed = options_.seed;
  progress_.shuffle = options_.shuffle;
  progress_.samples = data->size();
  progress_.global_batch = layout_.global_batch();
  if (start != nullptr) {
    progress_.step = start->step;
    progress_.position = StartPosition(*start);
    first_step_ = start->step + 1;
  }
  Loader::Options loader_options;
  loader_options.seed = options_.seed;
  loader_options.shuffle = options_.shuffle;
  loader_options.start = progress_.position;
  loader_options.batches = options_.steps - progress_.step;
  ORIEL_ASSIGN_OR_RETURN(loader_, Loader::Create(std::move(data), layout_, loader_options));
  if (context_.is_first() && !options_.metrics.empty()) {
    ORIEL_ASSIGN_OR_RETURN(
        metrics_, MetricsFile::Open(options_.metrics,
                                    start ? std::optional<int64_t>(start->step) : std::nullopt));
  }
  WarnOfLaterCheckpoints();
  if (!options_.save_dir.empty() && context_.is_first()) {
    const absl::Status forgotten = ForgetLaterBest(options_.save_dir, progress_.step);
    // Without --keep-best what is damaged there is in nobody's way.
    if (options_.keep_best) ORIEL_RETURN_IF_ERROR(forgotten);
  }
  return absl::OkStatus();
}

// `--resume` takes the highest step of a folder, whichever run it is from.
void Trainer::WarnOfLaterCheckpoints() const {
  if (!context_.is_first() || options_.save_dir.empty()) return;
  absl::StatusOr<std::string> old = FindCheckpoint(options_.save_dir);
  if (!old.ok() || StepOfCheckpoint(*old) <= progress_.step) return;
  std::fprintf(stderr,
               "oriel-run: warning: %s is of an earlier run, and --resume %s takes the highest "
               "step: remove it, or give this run another --save-dir\n",
               old->c_str(), options_.save_dir.c_str());
}

// A position counts batches of a data set. With other data or other batches it means nothing,
// and training goes on with a new epoch.
DataPosition Trainer::StartPosition(const TrainingProgress& start) {
  if (start.samples == progress_.samples && start.global_batch == progress_.global_batch &&
      start.seed == progress_.seed && start.shuffle == progress_.shuffle) {
    return start.position;
  }
  if (context_.is_first()) {
    std::vector<std::string> changes;
    const auto note = [&](const char* what, auto now, auto then) {
      if (now != then) changes.push_back(absl::StrCat(what, " ", now, ", not ", then));
    };
    note("samples", progress_.samples, start.samples);
    note("global batch", progress_.global_batch, start.global_batch);
    note("seed", progress_.seed, start.seed);
    note("shuffled", std::string(progress_.shuffle ? "yes" : "no"),
         std::string(start.shuffle ? "yes" : "no"));
    std::fprintf(stderr,
                 "oriel-run: the data is not what the checkpoint was trained on (%s); starting at "
                 "epoch %lld\n",
                 absl::StrJoin(changes, "; ").c_str(),
                 static_cast<long long>(start.position.epoch + 1));
  }
  return {start.position.epoch + 1, 0};
}

absl::StatusOr<TrainingOutcome> Trainer::Run() {
  TrainingOutcome outcome;
  if (options_.events != nullptr) ORIEL_RETURN_IF_ERROR(options_.events->StartAt(first_step_));
  while (progress_.step < options_.steps && !outcome.interrupted) {
    const int64_t step = progress_.step + 1;
    absl::StatusOr<StepMetrics> metrics = Step(step);
    if (!metrics.ok()) {
      progress_line_.Clear();
      return Annotate(metrics.status(), absl::StrCat("step ", step));
    }
    progress_.step = step;
    ORIEL_RETURN_IF_ERROR(Report(*metrics));
    ORIEL_RETURN_IF_ERROR(CheckFinite(*metrics));
    ORIEL_ASSIGN_OR_RETURN(outcome.interrupted, AnyInterrupted(context_));
    const bool last = step == options_.steps || outcome.interrupted;
    const bool save = last || IsSavePoint(step);
    if (save) ORIEL_RETURN_IF_ERROR(Save());
    if (last || options_.eval_every == 0 || step % options_.eval_every != 0) continue;
    ORIEL_ASSIGN_OR_RETURN(outcome.interrupted, Evaluate(save));
  }
  progress_line_.Clear();
  if (options_.profile && context_.is_first()) {
    std::fputs(profile_.Report().c_str(), stderr);
    ORIEL_ASSIGN_OR_RETURN(std::string kernels, ReportKernels(*context_.executor));
    std::fputs(kernels.c_str(), stderr);
  }
  outcome.step = progress_.step;
  outcome.checkpoint = last_checkpoint_;
  return outcome;
}

// True if interrupted.
absl::StatusOr<bool> Trainer::Evaluate(bool is_saved) {
  progress_line_.Clear();
  if (context_.trace != nullptr) context_.trace->BeginStep(-1);  // it is of none
  const Clock::time_point begin = Clock::now();
  const auto loss = options_.evaluate(progress_.step);
  if (!loss.ok()) return Annotate(loss.status(), absl::StrCat("step ", progress_.step));
  progress_line_.Evaluated(std::chrono::duration<double>(Clock::now() - begin).count());
  if (*loss) {
    ORIEL_RETURN_IF_ERROR(KeepIfBest(**loss, is_saved));
    return false;
  }
  if (!is_saved) ORIEL_RETURN_IF_ERROR(Save());
  return true;
}

absl::Status Trainer::KeepIfBest(double loss, bool is_saved) {
  if (!options_.keep_best) return absl::OkStatus();
  const BestCheckpoint found = {progress_.step, loss};
  // The first rank knows, and all of them save.
  bool is_best = false;
  if (context_.is_first()) {
    ORIEL_ASSIGN_OR_RETURN(is_best, IsBestCheckpoint(options_.save_dir, found));
  }
  ORIEL_ASSIGN_OR_RETURN(is_best, AnyRank(context_, is_best));
  if (!is_best) return absl::OkStatus();
  if (!is_saved) ORIEL_RETURN_IF_ERROR(Save());
  return context_.is_first() ? WriteBestCheckpoint(options_.save_dir, found) : absl::OkStatus();
}

absl::StatusOr<StepMetrics> Trainer::Step(int64_t step) {
  const Clock::time_point begin = Clock::now();
  if (context_.trace != nullptr) context_.trace->BeginStep(step);
  profile_.Start();
  ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Batch> batch, loader_->Next());
  profile_.Lap("data");
  StepMetrics metrics;
  metrics.step = step;
  metrics.learning_rate = LearningRateAt(context_.plan->training().learning_rate(), step);
  ORIEL_RETURN_IF_ERROR(RunSchedule(*batch, step, metrics.learning_rate));
  profile_.CountStep();
  progress_.position = loader_->After(batch->position);

  ORIEL_ASSIGN_OR_RETURN(metrics.loss, ReadNumber(loss_));
  if (grad_norm_) {
    ORIEL_ASSIGN_OR_RETURN(metrics.grad_norm, ReadNumber(*grad_norm_));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const BatchInput* labels = layout_.labels();
  const int64_t tokens_per_sample = labels == nullptr ? 1 : labels->sample.num_elements();
  metrics.step_ms = seconds * 1000;
  metrics.tokens_per_second =
      static_cast<double>(layout_.global_batch() * tokens_per_sample) / seconds;
  return metrics;
}

absl::Status Trainer::RunSchedule(const Batch& batch, int64_t step, double rate) {
  // The microbatch in the input buffers, which hold one, however many are in flight.
  int64_t filled = -1;
  for (const plan::ScheduleEntry& entry : context_.executor->program().schedule()) {
    const std::string kind(PlainKind(entry.segment()));
    if (kind == kUpdateSegment) {
      ORIEL_RETURN_IF_ERROR(BeforeUpdate(step, rate));
    } else if (entry.microbatch() != filled) {
      if (entry.microbatch() < 0 || entry.microbatch() >= layout_.microbatches) {
        return absl::InvalidArgumentError(absl::StrCat("the plan's schedule has microbatch ",
                                                       entry.microbatch(), " of ",
                                                       layout_.microbatches));
      }
      ORIEL_RETURN_IF_ERROR(inputs_.Fill(batch, entry.microbatch()));
      filled = entry.microbatch();
    }
    absl::Status status = context_.executor->Run(entry.segment(), entry.microbatch());
    // What a kernel refuses, it refuses for the data.
    if (absl::IsInvalidArgument(status) && kind != kUpdateSegment) {
      return AppendSamples(status, loader_->Describe(batch, entry.microbatch()));
    }
    ORIEL_RETURN_IF_ERROR(status);
    profile_.Lap(kind);
  }
  return absl::OkStatus();
}

absl::Status Trainer::BeforeUpdate(int64_t step, double rate) {
  if (rate_) ORIEL_RETURN_IF_ERROR(WriteNumber(*rate_, rate));
  if (step_number_) ORIEL_RETURN_IF_ERROR(WriteNumber(*step_number_, static_cast<double>(step)));
  if (step != first_step_ || options_.dump_gradients.empty()) return absl::OkStatus();
  return DumpGradients(*context_.plan, *context_.executor, context_.world, options_.dump_gradients);
}

void Trainer::Warn(const std::string& what) {
  progress_line_.Clear();
  std::fprintf(stderr, "oriel-run: warning: %s\n", what.c_str());
}

absl::Status Trainer::Report(const StepMetrics& metrics) {
  if (!context_.is_first()) return absl::OkStatus();
  progress_line_.Update(metrics);
  if (metrics.loss == 0 && metrics.grad_norm == 0. && layout_.labels() != nullptr &&
      !warned_of_zero_) {
    warned_of_zero_ = true;
    Warn(absl::StrCat("the loss of step ", metrics.step,
                      " is exactly 0, as of a batch of which no label counts: are all of them the "
                      "recipe's loss.ignore_index?"));
  }
  if (metrics_) ORIEL_RETURN_IF_ERROR(metrics_->Write(metrics));
  return options_.events == nullptr ? absl::OkStatus()
                                    : options_.events->Write(metrics.step, ScalarsOf(metrics));
}

// A NaN among the gradients is one among the parameters after the update, and so from then on. Of
// an infinite loss gradients may be finite.
absl::Status Trainer::CheckFinite(const StepMetrics& metrics) {
  const bool bad_norm = !std::isfinite(metrics.grad_norm.value_or(0));
  if (std::isfinite(metrics.loss) && !bad_norm) return absl::OkStatus();
  const std::string what = absl::StrCat(
      bad_norm && std::isfinite(metrics.loss) ? "the norm of the gradient" : "the loss",
      " of step ", metrics.step, " is not finite");
  constexpr char kRemedy[] = "--check-nan names the first op that makes what is not a number";
  if (options_.allow_nan || (!bad_norm && !std::isnan(metrics.loss))) {
    if (context_.is_first() && !warned_) Warn(absl::StrCat(what, "; ", kRemedy));
    warned_ = true;
    return absl::OkStatus();
  }
  progress_line_.Clear();
  // All ranks have the same numbers; the others wait until the first one's error ends them, too, so
  // that theirs does not come before it.
  if (!context_.is_first()) {
    ORIEL_RETURN_IF_ERROR(context_.world->Barrier());
    return absl::AbortedError(what);
  }
  return absl::FailedPreconditionError(absl::StrCat(
      what, ", and the parameters have its update: ",
      options_.save_dir.empty()  ? ""
      : last_checkpoint_.empty() ? "this run has written no checkpoint; "
                                 : absl::StrCat("the last checkpoint is ", last_checkpoint_, "; "),
      kRemedy, ", a lower learning rate or optimizer.clip_norm may help; --allow-nan goes on"));
}

absl::Status Trainer::Save() {
  if (options_.save_dir.empty()) return absl::OkStatus();
  const plan::Plan& plan = *context_.plan;
  const CheckpointModel model{plan.model_name(), plan.provenance().model_path(),
                              plan.provenance().model_sha256()};
  ORIEL_ASSIGN_OR_RETURN(last_checkpoint_, WriteCheckpoint(options_.save_dir, model, progress_,
                                                           state_.sources(), context_.world));
  if (options_.keep == 0 || !context_.is_first()) return absl::OkStatus();
  const absl::Status removed =
      RemoveOldCheckpoints(options_.save_dir, progress_.step, options_.keep);
  // The run is not lost for it.
  if (!removed.ok()) Warn(absl::StrCat("--keep: ", removed.message()));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingOutcome> Train(const RankContext& context, ModelState& state,
                                      std::shared_ptr<const ShardIndex> data,
                                      const TrainingProgress* start,
                                      const TrainerOptions& options) {
  Trainer trainer(context, state, options);
  ORIEL_RETURN_IF_ERROR(trainer.Prepare(std::move(data), start));
  return trainer.Run();
}

}  // namespace oriel::runtime
