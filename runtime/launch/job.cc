#include "runtime/launch/job.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/plugins/load_plugins.h"
#include "runtime/base/cores.h"
#include "runtime/base/files.h"
#include "runtime/base/output_path.h"
#include "runtime/base/status.h"
#include "runtime/comm/link_delay.h"
#include "runtime/comm/tcp/environment.h"
#include "runtime/exec/executor.h"
#include "runtime/launch/check_kernels.h"
#include "runtime/launch/device.h"
#include "runtime/launch/stop_signal.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify.h"
#include "runtime/train/checkpoint/best_checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_writer.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/event_file.h"
#include "runtime/train/integrity.h"
#include "runtime/train/learning_rate.h"
#include "runtime/train/model_state.h"
#include "runtime/train/rank_context.h"
#include "runtime/train/save_folder.h"
#include "runtime/train/trace_file.h"
#include "runtime/train/trainer.h"

namespace oriel::runtime {
namespace {

absl::StatusOr<std::shared_ptr<const ShardIndex>> ReadShards(const std::string& folder) {
  ORIEL_ASSIGN_OR_RETURN(ShardIndex index, ShardIndex::Read(folder));
  return std::make_shared<const ShardIndex>(std::move(index));
}

// Says it on stderr, once per job.
void Say(const RankContext& context, const std::string& text) {
  if (context.is_first()) std::fprintf(stderr, "%s\n", text.c_str());
}

// How long a run waits for one that still saves into the same folder.
constexpr std::chrono::seconds kSaveFolderPatience{60};

// Where the files of a run go, before it begins: what they would hold can't be had again.
absl::Status CheckOutputs(const Job& job) {
  const RunOptions& options = job.options;
  std::vector<std::string> inputs = FilesOfPlan(job.plan, options.plan);
  if (job.checkpoint) {
    for (std::string& file : job.checkpoint->files()) inputs.push_back(std::move(file));
  }
  if (job.initial) {
    for (std::string& file : job.initial->files()) inputs.push_back(std::move(file));
  }
  if (job.trains()) ORIEL_RETURN_IF_ERROR(CheckOutputPath(options.dump_gradients, inputs));
  ORIEL_RETURN_IF_ERROR(CheckOutputPath(options.eval_logits, inputs));
  return CheckOutputPath(options.dump_parameters, inputs);
}

bool SavesCheckpoints(const Job& job) { return job.trains() && !job.options.save_dir.empty(); }

void SayWaiting(const std::string& text) { std::fprintf(stderr, "oriel-run: %s\n", text.c_str()); }

bool IsToStop() { return StopRequests() > 0; }

// Of rank 0, before it takes memory that another run may still have. Null without a folder.
absl::StatusOr<std::unique_ptr<SaveFolder>> TakeSaveFolder(const Job& job) {
  const RunOptions& options = job.options;
  if (!SavesCheckpoints(job)) return nullptr;
  ORIEL_ASSIGN_OR_RETURN(
      std::unique_ptr<SaveFolder> folder,
      SaveFolder::Take(options.save_dir, kSaveFolderPatience, SayWaiting, IsToStop));
  // Of a file in it, so that one learns whether it can be written to.
  ORIEL_RETURN_IF_ERROR(CheckOutputPath(JoinPath(options.save_dir, "index.json")));
  // Another run may have begun, and finished one, since a checkpoint was looked for.
  const std::string& from = options.auto_resume ? options.save_dir : options.resume;
  const absl::StatusOr<std::string> latest =
      from.empty() ? absl::NotFoundError("") : FindCheckpoint(from);
  if (job.checkpoint) ORIEL_RETURN_IF_ERROR(latest.status());
  if (latest.ok() && (!job.checkpoint || *latest != job.checkpoint->path())) {
    return absl::AbortedError(
        absl::StrCat(*latest, " was finished by another run after this one had ",
                     job.checkpoint ? absl::StrCat("opened ", job.checkpoint->path())
                                    : std::string("found none"),
                     ": start it again"));
  }
  return folder;
}

// Says if the last steps are to have a rate of 0: the schedule, which may end at 0, ends before
// them.
void SayIfRateIsZero(const Job& job, const RankContext& context, int64_t done) {
  const plan::LearningRate& schedule = job.plan.training().learning_rate();
  const int64_t first = std::max(done + 1, schedule.total_steps());
  if (job.steps <= first || LearningRateAt(schedule, first) != 0) return;
  Say(context,
      absl::StrCat("oriel-run: warning: from step ", first,
                   " on the learning rate is 0: the recipe's schedule ends at step ",
                   schedule.total_steps(), "; to go on, compile with more schedule.total_steps"));
}

// Of the checkpoint that the run goes on from.
int64_t StepsDone(const Job& job) {
  return job.checkpoint ? job.checkpoint->index().progress.step : 0;
}

// Opens the file of --tensorboard, once, on rank 0; null on others, and where none is asked for.
absl::StatusOr<EventFile*> OpenEvents(const Job& job, const RankContext& context,
                                      std::optional<EventFile>& events) {
  if (!context.is_first() || job.options.tensorboard.empty()) return nullptr;
  if (!events) {
    ORIEL_ASSIGN_OR_RETURN(events, EventFile::Create(job.options.tensorboard));
  }
  return &*events;
}

// The loss, a NaN if no label counts; nothing if interrupted. Writes the logits to a file of that
// name unless it is empty.
absl::StatusOr<std::optional<double>> EvaluateRank(const Job& job, const RankContext& context,
                                                   std::optional<EventFile>& events, int64_t step,
                                                   const std::string& logits) {
  ORIEL_ASSIGN_OR_RETURN(Evaluation evaluation, Evaluate(context, job.eval_data, logits));
  // Between steps there are several.
  const std::string place =
      job.trains() && step < job.steps ? absl::StrCat("step ", step, ", ") : "";
  std::optional<double> loss;
  if (evaluation.interrupted) {
    Say(context, absl::StrCat(place, "eval interrupted after ", evaluation.samples, " samples"));
    return loss;
  }
  Say(context, absl::StrCat(place, FormatEvaluation(evaluation)));
  if (context.is_first()) {
    std::printf("%s\n", EncodeEvaluation(evaluation, step).c_str());
    std::fflush(stdout);
  }
  ORIEL_ASSIGN_OR_RETURN(EventFile * file, OpenEvents(job, context, events));
  if (file != nullptr) ORIEL_RETURN_IF_ERROR(file->Write(step, ScalarsOf(evaluation)));
  const bool counts = !evaluation.labelled || evaluation.tokens > 0;
  loss = counts ? evaluation.loss : std::nan("");
  return loss;
}

// The checkpoint of the last step, if there is one, may be the best.
absl::Status NameBest(const Job& job, const RankContext& context, int64_t step, double loss) {
  const std::string& save_dir = job.options.save_dir;
  if (!job.options.keep_best || !job.trains() || !context.is_first()) return absl::OkStatus();
  ORIEL_ASSIGN_OR_RETURN(bool is_best, IsBestCheckpoint(save_dir, {step, loss}));
  // Nothing was left to train, perhaps, and what was resumed lies elsewhere.
  is_best &= FindCheckpoint(JoinPath(save_dir, CheckpointFolderName(step))).ok();
  if (is_best) ORIEL_RETURN_IF_ERROR(WriteBestCheckpoint(save_dir, {step, loss}));
  ORIEL_ASSIGN_OR_RETURN(const auto best, FindBestCheckpoint(save_dir, step));
  if (best) {
    Say(context, absl::StrCat("the best checkpoint is ",
                              JoinPath(save_dir, CheckpointFolderName(best->step)), ", eval loss ",
                              absl::StrFormat("%.4f", best->loss)));
  }
  return absl::OkStatus();
}

// True if interrupted.
absl::StatusOr<bool> TrainRank(const Job& job, const RankContext& context, ModelState& state,
                               std::optional<EventFile>& events) {
  const TrainingProgress* start = job.checkpoint ? &job.checkpoint->index().progress : nullptr;
  if (start != nullptr) {
    Say(context,
        absl::StrCat("resuming from ", job.checkpoint->path(), " (step ", start->step, ")"));
    if (start->step >= job.steps) {
      Say(context,
          absl::StrCat("nothing to train: the last step is ", job.steps, " (--steps K to go on)"));
      return false;
    }
  }
  SayIfRateIsZero(job, context, start != nullptr ? start->step : 0);
  TrainerOptions options;
  options.steps = job.steps;
  options.seed = job.seed;
  options.shuffle = !job.options.no_shuffle;
  options.metrics = job.options.metrics;
  ORIEL_ASSIGN_OR_RETURN(options.events, OpenEvents(job, context, events));
  options.save_dir = job.options.save_dir;
  options.save_every = job.options.save_every;
  options.keep = job.options.keep;
  options.eval_every = job.options.eval_every;
  options.keep_best = job.options.keep_best;
  options.evaluate = [&](int64_t step) {
    return EvaluateRank(job, context, events, step, /*logits=*/"");
  };
  options.dump_gradients = job.options.dump_gradients;
  options.profile = job.options.profile;
  options.allow_nan = job.options.allow_nan || !job.options.replace_compute.empty();
  if (!job.options.replace_compute.empty()) {
    Say(context,
        "segments sleep instead of computing (--replace-compute): losses mean nothing, and no "
        "checkpoint is written");
  }
  std::optional<TraceFile> trace;
  if (context.trace != nullptr) {
    ORIEL_ASSIGN_OR_RETURN(
        trace, TraceFile::Open(job.options.trace, job.plan, context.rank, context.world));
  }
  ORIEL_ASSIGN_OR_RETURN(TrainingOutcome outcome,
                         Train(context, state, job.train_data, start, options));
  if (trace) {
    ORIEL_RETURN_IF_ERROR(trace->Write(context.executor->program(), context.trace->slices()));
  }
  std::string text = absl::StrCat(
      outcome.interrupted ? "interrupted after step " : "trained to step ", outcome.step);
  if (!outcome.checkpoint.empty()) {
    absl::StrAppend(&text, "; checkpoint ", outcome.checkpoint);
    if (outcome.interrupted) {
      absl::StrAppend(&text, "; go on with --resume ", job.options.save_dir);
    }
  } else if (outcome.interrupted) {
    absl::StrAppend(&text, "; no checkpoint (--save-dir was not given)");
  }
  Say(context, text);
  return outcome.interrupted;
}

// The steps of the timeline, if one is written: by default the first of the run.
std::optional<TraceRecorder> MakeRecorder(const Job& job) {
  constexpr int64_t kSteps = 3;
  if (job.options.trace.empty() || !job.trains()) return std::nullopt;
  const int64_t done = StepsDone(job);
  const StepRange steps = job.options.trace_steps.value_or(StepRange{done + 1, done + kSteps});
  return TraceRecorder(steps.first, steps.last);
}

void SayIfOtherModelFile(const Job& job, const RankContext& context,
                         const CheckpointReader& checkpoint) {
  const std::string other = checkpoint.OtherModelFile(job.plan);
  if (!other.empty()) Say(context, absl::StrCat("oriel-run: warning: ", other));
}

// "begins with weights of DIR: 7 of 9 parameters; not there, and as the plan begins: a, b"
std::string DescribeWeights(const WeightsTaken& taken, const std::string& path) {
  const int64_t missing = static_cast<int64_t>(taken.missing.size());
  std::string text = absl::StrCat("begins with weights of ", path, ": ", taken.taken, " of ",
                                  taken.taken + missing, " parameters");
  if (missing > 0) {
    absl::StrAppend(&text, "; not there, and as the plan begins: ", SomeOf(taken.missing));
  }
  if (!taken.unused.empty()) {
    absl::StrAppend(&text, "; there, but not in the plan: ", SomeOf(taken.unused));
  }
  return text;
}

// A run in bf16 has what it leaves frozen in bf16, without a master.
void SayIfRounded(const WeightsTaken& taken, const RankContext& context) {
  if (taken.rounded.empty()) return;
  Say(context,
      absl::StrCat("oriel-run: warning: the checkpoint has ", taken.rounded.size(),
                   " of them in fewer bits than the plan: they begin rounded: ",
                   SomeOf(taken.rounded), "; a run in `precision: f32` saves them as they are"));
}

absl::StatusOr<bool> RunWithExecutor(const Job& job, const RankContext& context, int threads) {
  if (job.eval_data != nullptr) {
    ORIEL_RETURN_IF_ERROR(
        CheckEvaluation(context, job.eval_data, !job.options.eval_logits.empty()));
  }
  if (!job.options.data.empty() && !job.trains()) {
    Say(context, "nothing to train: 0 steps (--steps K to train)");
  }
  if (job.checkpoint && job.seed != job.plan.training().seed() && !job.options.seed) {
    Say(context,
        absl::StrCat("the order of the data goes on with the checkpoint's seed, ", job.seed,
                     "; --seed ", job.plan.training().seed(), " for the plan's"));
  }
  ORIEL_ASSIGN_OR_RETURN(ModelState state,
                         ModelState::Bind(job.plan, context.rank, *context.executor));
  int64_t step = 0;
  if (job.checkpoint) {
    CheckpointReader checkpoint = *job.checkpoint;
    ORIEL_RETURN_IF_ERROR(
        OpenSoundCheckpoint(checkpoint, /*with_optimizer=*/job.trains(), context));
    ORIEL_RETURN_IF_ERROR(state.Restore(checkpoint, /*with_optimizer=*/job.trains()));
    SayIfOtherModelFile(job, context, checkpoint);
    step = checkpoint.index().progress.step;
  } else {
    ORIEL_RETURN_IF_ERROR(CheckInitialWeights(job.plan_folder, context));
    ORIEL_RETURN_IF_ERROR(state.Initialize(job.plan_folder, threads));
  }
  if (job.initial) {
    CheckpointReader initial = *job.initial;
    ORIEL_RETURN_IF_ERROR(OpenSoundCheckpoint(initial, /*with_optimizer=*/false, context));
    ORIEL_ASSIGN_OR_RETURN(const WeightsTaken taken, state.TakeWeights(initial));
    Say(context, DescribeWeights(taken, initial.path()));
    SayIfRounded(taken, context);
    if (taken.missing.empty() && taken.unused.empty()) {
      SayIfOtherModelFile(job, context, initial);
    }
  }
  std::optional<EventFile> events;
  bool interrupted = false;
  if (job.trains()) {
    ORIEL_ASSIGN_OR_RETURN(interrupted, TrainRank(job, context, state, events));
    step = std::max(step, job.steps);
  }
  if (job.eval_data != nullptr && !interrupted) {
    ORIEL_ASSIGN_OR_RETURN(const std::optional<double> loss,
                           EvaluateRank(job, context, events, step, job.options.eval_logits));
    interrupted = !loss;
    if (loss) ORIEL_RETURN_IF_ERROR(NameBest(job, context, step, *loss));
  }
  if (!job.options.dump_parameters.empty()) {
    ORIEL_RETURN_IF_ERROR(state.DumpParameters(job.options.dump_parameters, context.world));
  }
  return interrupted;
}

absl::Status CheckTracedSteps(const Job& job) {
  const std::optional<StepRange>& traced = job.options.trace_steps;
  const int64_t first = StepsDone(job) + 1;
  if (!traced || !job.trains() || first > job.steps) return absl::OkStatus();
  if (traced->first <= job.steps && traced->last >= first) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--trace-steps ", traced->first, "-", traced->last,
                                                 ": this run trains the steps ", first, " to ",
                                                 job.steps));
}

absl::Status OpenCheckpoints(Job& job) {
  RunOptions& options = job.options;
  // A run that still saves there may finish the one to go on from.
  if (SavesCheckpoints(job) && (options.auto_resume || !options.resume.empty())) {
    ORIEL_RETURN_IF_ERROR(
        SaveFolder::AwaitOthers(options.save_dir, kSaveFolderPatience, SayWaiting, IsToStop));
  }
  if (options.auto_resume) {
    const absl::StatusOr<std::string> latest = FindCheckpoint(options.save_dir);
    if (!latest.ok() && !absl::IsNotFound(latest.status())) return latest.status();
    if (latest.ok()) options.resume = options.save_dir;
  }
  if (!options.resume.empty()) {
    ORIEL_ASSIGN_OR_RETURN(job.checkpoint, CheckpointReader::Open(options.resume));
    if (!options.seed) job.seed = job.checkpoint->index().progress.seed;
  } else if (!options.init_from.empty()) {
    ORIEL_ASSIGN_OR_RETURN(job.initial, CheckpointReader::Open(options.init_from));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Job> PrepareJob(const RunOptions& options) {
  Job job;
  job.options = options;
  ORIEL_RETURN_IF_ERROR(kernels::LoadPlugins(options.plugins, "oriel-run"));
  ORIEL_ASSIGN_OR_RETURN(job.plan, ReadPlan(options.plan));
  ORIEL_RETURN_IF_ERROR(Annotate(VerifyPlan(job.plan), options.plan));
  ORIEL_RETURN_IF_ERROR(Annotate(CheckDevice(job.plan, options.device), options.plan));
  ORIEL_RETURN_IF_ERROR(Annotate(CheckKernels(job.plan), options.plan));
  job.plan_folder = FolderOf(options.plan);
  job.steps = options.steps.value_or(job.plan.training().steps());
  job.seed = options.seed.value_or(job.plan.training().seed());
  if (!options.data.empty() && job.steps > 0) {
    ORIEL_ASSIGN_OR_RETURN(job.train_data, ReadShards(options.data));
  }
  if (!options.eval.empty()) {
    ORIEL_ASSIGN_OR_RETURN(job.eval_data, ReadShards(options.eval));
  }
  ORIEL_RETURN_IF_ERROR(OpenCheckpoints(job));
  ORIEL_RETURN_IF_ERROR(CheckTracedSteps(job));
  // Each rank opens them while it reads: what --keep removes later is not to take room any more.
  if (job.checkpoint) job.checkpoint->Close();
  if (job.initial) job.initial->Close();
  return job;
}

absl::Status CheckWorld(const plan::Plan& plan, const std::string& path, int64_t ranks,
                        const std::string& how) {
  const int64_t world = plan.world_size();
  if (ranks == world) return absl::OkStatus();
  const std::string remedy = how == kWorldSizeVariable
                                 ? absl::StrCat("start ", world, " with ", how, "=", world)
                                 : absl::StrCat("use -n ", world);
  return absl::InvalidArgumentError(absl::StrCat(
      path, " is for ", world, world == 1 ? " rank" : " ranks", ", but ", how, " asks for ", ranks,
      "; ", remedy, ", or compile the model for this many: oriel compile --world ", ranks,
      " (or another --mesh)"));
}

absl::StatusOr<bool> RunRank(const Job& job, int64_t rank, Communicator* world,
                             const RankOptions& options) {
  std::unique_ptr<Communicator> delayed;
  if (world != nullptr && job.options.link_delay) {
    delayed = DelayCommunication(*world, *job.options.link_delay);
    world = delayed.get();
  }
  std::unique_ptr<SaveFolder> folder;  // held to the end
  if (rank == 0) {
    ORIEL_RETURN_IF_ERROR(CheckOutputs(job));
    ORIEL_ASSIGN_OR_RETURN(folder, TakeSaveFolder(job));
  }
  ExecutorOptions executor_options;
  const int64_t local_rank = options.local_rank ? *options.local_rank : LocalRank(rank);
  ORIEL_ASSIGN_OR_RETURN(executor_options.backend, OpenDevice(job.plan, local_rank));
  // The executor's, where its buffers are on a device; what else ranks say goes over `world`.
  std::unique_ptr<Communicator> of_device;
  std::optional<int64_t> free;
  const plan::Program* program = ProgramOfRank(job.plan, rank);
  const auto explained = [&](const absl::Status& status) {
    return free && program != nullptr ? ExplainDeviceMemory(status, *program, *free) : status;
  };
  if (executor_options.backend != nullptr) {
    Backend& device = *executor_options.backend;
    ORIEL_ASSIGN_OR_RETURN(free, device.FreeBytes());
    if (free && program != nullptr) ORIEL_RETURN_IF_ERROR(CheckDeviceMemory(*program, *free));
    if (world != nullptr) {
      absl::StatusOr<std::unique_ptr<Communicator>> opened = device.OpenCommunicator(*world);
      if (!opened.ok()) return explained(opened.status());
      of_device = *std::move(opened);
    }
  }
  executor_options.num_threads = options.threads;
  executor_options.profile = job.options.profile;
  executor_options.check_nan = job.options.check_nan;
  executor_options.record = !job.options.no_graphs;
  executor_options.poison_dead_memory = job.options.poison_dead_memory;
  executor_options.replace_compute = job.options.replace_compute;
  std::optional<TraceRecorder> recorder = MakeRecorder(job);
  executor_options.trace = recorder ? &*recorder : nullptr;
  absl::StatusOr<std::unique_ptr<Executor>> created =
      Executor::Create(job.plan, rank, of_device ? of_device.get() : world, executor_options);
  if (!created.ok()) return explained(created.status());
  const std::unique_ptr<Executor> executor = *std::move(created);
  // Ranks that share a device: what sets libraries up may wait for all of it, which would spoil
  // what another rank records meanwhile.
  if (executor_options.backend != nullptr && world != nullptr) {
    ORIEL_RETURN_IF_ERROR(world->Barrier());
  }
  RankContext context;
  context.plan = &job.plan;
  context.rank = rank;
  context.world = world;
  context.executor = executor.get();
  context.trace = executor_options.trace;
  context.interrupted = [] { return StopRequests() > 0; };
  context.terminal = options.terminal;
  absl::StatusOr<bool> interrupted = RunWithExecutor(job, context, options.threads);
  if (!interrupted.ok()) interrupted = explained(interrupted.status());
  if (!interrupted.ok() && options.on_error) options.on_error(interrupted.status());
  return interrupted;
}

int ThreadsPerRank(const RunOptions& options, int64_t local_ranks) {
  if (options.threads > 0) return static_cast<int>(std::min<int64_t>(options.threads, 1024));
  return static_cast<int>(std::max<int64_t>(1, UsableCores() / std::max<int64_t>(1, local_ranks)));
}

}  // namespace oriel::runtime
