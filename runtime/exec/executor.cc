#include "runtime/exec/executor.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/backend/host/host_backend.h"
#include "runtime/base/status.h"
#include "runtime/exec/dead_memory.h"
#include "runtime/exec/groups.h"
#include "runtime/exec/nan_check.h"
#include "runtime/exec/prepare.h"
#include "runtime/exec/replaced_compute.h"
#include "runtime/exec/step_runner.h"
#include "runtime/exec/steps.h"
#include "runtime/exec/transfers.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

using Clock = std::chrono::steady_clock;

class PlanExecutor final : public Executor {
 public:
  PlanExecutor(const plan::Plan& plan, const plan::Program& program, int64_t rank,
               const ExecutorOptions& options)
      : plan_(plan),
        program_(program),
        rank_(rank),
        options_(options),
        backend_(options.backend != nullptr ? options.backend : MakeHostBackend()),
        asynchronous_(backend_->IsAsynchronous()),
        runner_(*backend_, transfers_, [this] { return Settle(); }) {}

  // Collective, like Executor::Create.
  absl::Status Init(const plan::Plan& plan, Communicator* world) {
    world_ = world;
    ORIEL_RETURN_IF_ERROR(backend_->MakeCurrent());
    ORIEL_ASSIGN_OR_RETURN(arena_, backend_->Allocate(program_.arena_bytes()));
    if (options_.check_nan) nan_check_.emplace(program_, *backend_, Base());
    if (options_.poison_dead_memory) {
      dead_memory_ = DeadMemory(program_);
      for (const ByteRange& bytes : dead_memory_.AtStart()) ORIEL_RETURN_IF_ERROR(Poison(bytes));
    }
    for (const auto& buffer : program_.buffers()) {
      if (buffer.kind() == plan::CONSTANT) {
        ORIEL_RETURN_IF_ERROR(
            backend_->Upload(Address(buffer), buffer.data().data(), Bytes(buffer)));
      }
    }
    for (int i = 0; i < program_.buffers_size(); ++i) {
      const auto& buffer = program_.buffers(i);
      if (buffer.kind() == plan::TEMPORARY || buffer.kind() == plan::STASH ||
          buffer.kind() == plan::TRANSFER) {
        continue;
      }
      by_role_.emplace(Role(buffer.kind(), buffer.ref(), buffer.slot()), i);
    }
    ORIEL_ASSIGN_OR_RETURN(groups_, CommunicationGroups::Create(plan, program_, rank_, world));
    ORIEL_ASSIGN_OR_RETURN(transfers_, Transfers::Create(
                                           plan, program_, rank_, world, *backend_,
                                           [this] { return Settle(); }, Base(), options_.trace));
    ORIEL_RETURN_IF_ERROR(Prepare());
    if (!streams_.empty()) {
      ORIEL_RETURN_IF_ERROR(Annotate(world->CheckConcurrent(),
                                     "the plan communicates while it computes; compile it without "
                                     "overlap, or use another MPI"));
    }
    return absl::OkStatus();
  }

  absl::Status Run(std::string_view name, int64_t microbatch) override {
    PreparedSegment* segment = FindSegment(name);
    if (segment == nullptr) return NoSegment(name);
    const int index = static_cast<int>(segment - segments_.data());
    if (asynchronous_) {
      ORIEL_RETURN_IF_ERROR(late_error_);
      ORIEL_RETURN_IF_ERROR(RunError(index, backend_->MakeCurrent()));
    }
    if (microbatch < 0) {
      return RunError(
          index, absl::InvalidArgumentError(absl::StrCat("there is no microbatch ", microbatch)));
    }
    for (const auto& [unused, stream] : streams_) {
      if (!stream->IsBusy()) continue;
      return RunError(index, absl::FailedPreconditionError(
                                 "collectives of a run that has failed are on their way"));
    }
    const TraceSpan span(options_.trace, Slice(TraceSlice::Kind::kSegment, index, microbatch));
    ORIEL_RETURN_IF_ERROR(RunError(index, transfers_.BeforeRun(index, microbatch)));
    for (const CopyPointer& pointer : segment->copy_pointers) pointer.Follow(microbatch);
    ORIEL_RETURN_IF_ERROR(RunSteps(*segment, index, microbatch));
    ORIEL_RETURN_IF_ERROR(RunError(index, transfers_.AfterRun(index)));
    return IsTraced() ? Settle() : absl::OkStatus();  // the slice is as long as the run
  }

  absl::StatusOr<BufferView> Find(plan::BufferKind kind, std::string_view ref,
                                  std::string_view slot) const override {
    const auto found = by_role_.find(Role(kind, std::string(ref), std::string(slot)));
    if (found == by_role_.end()) {
      return absl::NotFoundError(absl::StrCat("rank ", rank_, " has no ", KindName(kind), " '",
                                              std::string(ref), "'",
                                              slot.empty() ? "" : " of slot ", std::string(slot)));
    }
    const auto& buffer = program_.buffers(found->second);
    return BufferView{FromPlan(buffer.local()), Address(buffer)};
  }

  void* HostMemory(const BufferView& view) const override {
    return backend_->name() == "host" ? view.data : nullptr;
  }

  absl::Status Read(const BufferView& view, int64_t offset, void* target,
                    int64_t bytes) const override {
    if (asynchronous_) {
      ORIEL_RETURN_IF_ERROR(late_error_);
      ORIEL_RETURN_IF_ERROR(backend_->MakeCurrent());
      ORIEL_RETURN_IF_ERROR(Settle());
    }
    return backend_->Download(target, static_cast<const char*>(view.data) + offset, bytes);
  }

  absl::Status Write(const BufferView& view, int64_t offset, const void* source,
                     int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(backend_->MakeCurrent());
    return backend_->Upload(static_cast<char*>(view.data) + offset, source, bytes);
  }

  absl::Status Fill(const BufferView& view, const kernels::KernelSpec& spec) override {
    if (!asynchronous_) return Executor::Fill(view, spec);
    ORIEL_RETURN_IF_ERROR(backend_->MakeCurrent());
    ORIEL_ASSIGN_OR_RETURN(void* const stream, backend_->Stream(0));
    ORIEL_ASSIGN_OR_RETURN(const kernels::KernelFn kernel, backend_->Prepare(spec, /*launch=*/-1));
    void* result = view.data;
    return kernel({nullptr, &result, stream});
  }

  absl::StatusOr<SegmentProfile> Profile(std::string_view name) const override {
    if (!options_.profile) {
      return absl::FailedPreconditionError(
          "the executor was made without ExecutorOptions::profile");
    }
    for (const PreparedSegment& segment : segments_) {
      if (segment.segment->name() == name) return segment.profile;
    }
    return NoSegment(name);
  }

  const plan::Program& program() const override { return program_; }

 private:
  using Role = std::tuple<plan::BufferKind, std::string, std::string>;

  char* Base() const { return static_cast<char*>(arena_.get()); }
  void* Address(const plan::Buffer& buffer) const { return Base() + buffer.offset(); }
  static int64_t Bytes(const plan::Buffer& buffer) { return FromPlan(buffer.local()).bytes(); }

  PreparedSegment* FindSegment(std::string_view name) {
    for (PreparedSegment& segment : segments_) {
      if (segment.segment->name() == name) return &segment;
    }
    return nullptr;
  }

  absl::Status NoSegment(std::string_view name) const {
    return absl::NotFoundError(
        absl::StrCat("rank ", rank_, ": the plan has no segment '", std::string(name), "'"));
  }

  // Steps point into their segments, which stay where they are.
  absl::Status Prepare() {
    segments_.resize(program_.segments_size());
    SegmentPreparer preparer({plan_, program_, Base(), options_.num_threads, *backend_, groups_,
                              transfers_, runner_, streams_});
    const bool records = options_.record && asynchronous_ && !options_.profile &&
                         !options_.poison_dead_memory && !options_.check_nan;
    for (int i = 0; i < program_.segments_size(); ++i) {
      int instruction = 0;
      PreparedSegment& segment = segments_[i];
      const absl::Status status = preparer.Prepare(i, segment, &instruction);
      if (!status.ok()) return InstructionError(program_.segments(i), instruction, status);
      PrepareSleep(options_, segment);
      if (records && !segment.sleep) segment.parts = PartsToRecord(segment);
    }
    return absl::OkStatus();
  }

  bool IsTraced() const { return options_.trace != nullptr && options_.trace->on(); }

  absl::Status RunSteps(PreparedSegment& segment, int index, int64_t microbatch) {
    if (options_.profile) ++segment.profile.runs;
    Clock::duration left = segment.sleep.value_or(Clock::duration(0));
    const std::vector<DeadBytes>& dead = dead_memory_.In(index, microbatch);
    size_t poisoned = 0;
    ORIEL_RETURN_IF_ERROR(PoisonBehind(DeadBytes::kBeforeRun, dead, poisoned));
    // Waiting for a device after each step would make it idle between them.
    const bool on_device = options_.profile && asynchronous_ && !segment.sleep;
    if (on_device) ORIEL_RETURN_IF_ERROR(segment.clock.Begin(*backend_, segment.steps.size()));
    size_t part = IsTraced() ? segment.parts.size() : 0;
    for (size_t i = 0; i < segment.steps.size(); ++i) {
      if (part < segment.parts.size() && segment.parts[part].begin == i) {
        ORIEL_RETURN_IF_ERROR(RunPart(segment, segment.parts[part], microbatch));
        i = segment.parts[part++].end - 1;
        transfers_.Progress();
        continue;
      }
      const Step& step = segment.steps[i];
      if (segment.sleep) {
        Sleep(segment.sleep_before[i]);
        left -= segment.sleep_before[i];
        if (IsComputing(step.kind)) continue;
      }
      Clock::time_point begin;
      if (options_.profile && !on_device) begin = Clock::now();
      absl::Status status = TraceStep(step, index, static_cast<int>(i), microbatch);
      if (status.ok() && nan_check_) status = CheckNan(segment, i, microbatch);
      if (!status.ok()) return StepError(segment, i, status);
      if (on_device) {
        ORIEL_RETURN_IF_ERROR(segment.clock.Mark(*backend_, i));
      } else if (options_.profile) {
        ORIEL_RETURN_IF_ERROR(Settle());
        const auto taken =
            std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
        AddRun(i, taken.count(), segment.profile);
      }
      ORIEL_RETURN_IF_ERROR(PoisonBehind(static_cast<int>(i), dead, poisoned));
      transfers_.Progress();
    }
    Sleep(left);
    if (!on_device) return absl::OkStatus();
    ORIEL_RETURN_IF_ERROR(Settle());
    return segment.clock.AddTo(*backend_, segment.profile);
  }

  // Steps that are recorded: for the first time as they are, then as a recording.
  absl::Status RunPart(PreparedSegment& segment, RecordedPart& part, int64_t microbatch) {
    if (!part.has_run) {
      part.has_run = true;
      return RunPlain(segment, part, microbatch);
    }
    RecordedPart::Recording& recording = part.recordings[microbatch % segment.copy_cycle];
    if (recording.steps == nullptr) {
      ORIEL_RETURN_IF_ERROR(RecordError(part, backend_->BeginRecording()));
      const absl::Status status = RunPlain(segment, part, microbatch);
      absl::StatusOr<std::unique_ptr<Backend::Recording>> recorded = backend_->EndRecording();
      if (world_ != nullptr) recording.calls = world_->EndRecording();
      ORIEL_RETURN_IF_ERROR(status);
      if (!recorded.ok()) return RecordError(part, recorded.status());
      recording.steps = *std::move(recorded);
    }
    ORIEL_RETURN_IF_ERROR(RecordError(part, backend_->Replay(*recording.steps)));
    if (world_ == nullptr) return absl::OkStatus();
    // Its collectives are to end in time, as others are.
    ORIEL_ASSIGN_OR_RETURN(void* const stream, backend_->Stream(0));
    return RecordError(part, world_->Watch(recording.calls, stream, part.label));
  }

  absl::Status RunPlain(const PreparedSegment& segment, const RecordedPart& part,
                        int64_t microbatch) {
    for (size_t i = part.begin; i < part.end; ++i) {
      const absl::Status status = runner_.Run(segment.steps[i], microbatch);
      if (!status.ok()) return StepError(segment, i, status);
    }
    return absl::OkStatus();
  }

  // Behind a step: what it has made, or, of a kWait, what its collective has.
  absl::Status CheckNan(const PreparedSegment& segment, size_t index, int64_t microbatch) {
    const Step& step = segment.steps[index];
    if (step.task != nullptr && step.started < 0) return absl::OkStatus();  // it is on its way
    ORIEL_RETURN_IF_ERROR(Settle());
    const int done = step.started < 0 ? static_cast<int>(index) : step.started;
    return nan_check_->After(segment.segment->instructions(done), microbatch);
  }

  // Waits for the device. What has gone wrong there stays the error of all that follows.
  absl::Status Settle() const {
    if (!asynchronous_ || !late_error_.ok()) return late_error_;
    int64_t launch = -1;
    const absl::Status status = backend_->Synchronize(&launch);
    if (status.ok()) {
      if (world_ == nullptr) return absl::OkStatus();
      late_error_ = Annotate(world_->Check(), absl::StrCat("rank ", rank_));
      if (!late_error_.ok()) DropRecordings();
      return late_error_;
    }
    DropRecordings();
    if (launch >= 0) {
      const LaunchNumber number = LaunchNumber::FromInt(launch);
      late_error_ = InstructionError(program_.segments(number.segment), number.instruction, status);
    } else {
      late_error_ = Annotate(status, absl::StrCat("rank ", rank_,
                                                  ": the device has failed (--check-nan waits for "
                                                  "each launch, and so names the one)"));
    }
    return late_error_;
  }

  // Behind an error nothing is replayed, and NCCL's abort waits until the graphs are gone that hold
  // calls of a communicator.
  void DropRecordings() const {
    for (PreparedSegment& segment : segments_) segment.parts.clear();
  }

  absl::Status Poison(const ByteRange& bytes) {
    return backend_->Fill(Base() + bytes.begin, 0xff, bytes.end - bytes.begin);
  }

  // What is dead behind an instruction. `next` is how many of `dead` have been filled.
  absl::Status PoisonBehind(int instruction, const std::vector<DeadBytes>& dead, size_t& next) {
    for (; next < dead.size() && dead[next].instruction <= instruction; ++next) {
      ORIEL_RETURN_IF_ERROR(Poison(dead[next].bytes));
    }
    return absl::OkStatus();
  }

  // Messages go on meanwhile, as they do between kernels.
  void Sleep(Clock::duration duration) {
    constexpr std::chrono::milliseconds kSlice(1);
    const Clock::time_point end = Clock::now() + duration;
    for (Clock::time_point now = Clock::now(); now < end; now = Clock::now()) {
      std::this_thread::sleep_for(std::min<Clock::duration>(kSlice, end - now));
      transfers_.Progress();
    }
  }

  TraceSlice Slice(TraceSlice::Kind kind, int segment, int64_t microbatch,
                   int instruction = -1) const {
    TraceSlice slice;
    slice.kind = kind;
    slice.segment = segment;
    slice.microbatch = microbatch;
    slice.instruction = instruction;
    return slice;
  }

  // Runs it, and records it if it may wait for other ranks.
  absl::Status TraceStep(const Step& step, int segment, int instruction, int64_t microbatch) {
    TraceSlice slice = Slice(TraceSlice::Kind::kCollective, segment, microbatch, instruction);
    if (step.kind == Step::Kind::kReceive) {
      slice.kind = TraceSlice::Kind::kReceive;
      slice.channel = step.transfer->channel();
    } else if (step.kind == Step::Kind::kWait && step.task != nullptr) {
      slice.kind = TraceSlice::Kind::kWait;
    } else if (step.group == nullptr) {
      return runner_.Run(step, microbatch);
    }
    if (options_.trace == nullptr || (step.stream != nullptr && step.started < 0)) {
      return runner_.Run(step, microbatch);
    }
    {
      const TraceSpan span(options_.trace, slice);
      ORIEL_RETURN_IF_ERROR(runner_.Run(step, microbatch));
    }
    if (step.task != nullptr && options_.trace->on()) {
      slice.kind = TraceSlice::Kind::kStarted;
      slice.instruction = step.started;
      slice.begin = step.task->begin();
      slice.end = step.task->end();
      options_.trace->Add(slice);
    }
    return absl::OkStatus();
  }

  // What goes wrong before or behind the instructions.
  absl::Status RunError(int segment, const absl::Status& status) const {
    if (status.ok()) return status;
    ORIEL_RETURN_IF_ERROR(late_error_);  // it says where it comes from
    return Annotate(status,
                    absl::StrCat("rank ", rank_, ", segment ", program_.segments(segment).name()));
  }

  // Of a step that fails: that of a kWait is its collective's.
  absl::Status StepError(const PreparedSegment& segment, size_t index,
                         const absl::Status& status) const {
    ORIEL_RETURN_IF_ERROR(late_error_);
    const int started = segment.steps[index].started;
    return InstructionError(*segment.segment, started < 0 ? static_cast<int>(index) : started,
                            status);
  }

  absl::Status RecordError(const RecordedPart& part, const absl::Status& status) const {
    if (status.ok()) return status;
    return Annotate(status, absl::StrCat("rank ", rank_, ", ", part.label));
  }

  absl::Status InstructionError(const plan::Segment& segment, int index,
                                const absl::Status& status) const {
    const auto& instruction = segment.instructions(index);
    std::string message =
        absl::StrCat("rank ", rank_, ", segment ", segment.name(), ", instruction ", index, " (",
                     InstructionName(instruction), "): ", status.message());
    if (!instruction.location().empty()) {
      absl::StrAppend(&message, " [from onnx node ", instruction.location(), "]");
    }
    return WithMessage(status, message);
  }

  const plan::Plan& plan_;
  const plan::Program& program_;
  const int64_t rank_;
  const ExecutorOptions options_;
  const std::shared_ptr<Backend> backend_;
  const bool asynchronous_;
  Communicator* world_ = nullptr;
  mutable absl::Status late_error_;  // the first that the device has reported
  DeviceMemory arena_;
  CommunicationGroups groups_;
  Transfers transfers_;
  StepRunner runner_;
  mutable std::vector<PreparedSegment> segments_;  // recordings go with an error
  std::map<Role, int> by_role_;
  std::optional<NanCheck> nan_check_;
  DeadMemory dead_memory_;        // nothing, unless it is filled
  CommunicationStreams streams_;  // destroyed first: their threads use the rest
};

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const plan::Plan& plan, int64_t rank,
                                                           Communicator* world,
                                                           const ExecutorOptions& options) {
  const int64_t world_size = world == nullptr ? 1 : world->size();
  if (world_size != plan.world_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the plan is for ", plan.world_size(), " ranks, but there are ", world_size));
  }
  if (world != nullptr && world->rank() != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", rank, " has the communicator of rank ", world->rank()));
  }
  ORIEL_RETURN_IF_ERROR(CheckReplacements(plan, options));
  for (const auto& program : plan.programs()) {
    if (rank < program.first_rank() || rank - program.first_rank() >= program.rank_count()) {
      continue;
    }
    auto executor = std::make_unique<PlanExecutor>(plan, program, rank, options);
    if (absl::Status status = executor->Init(plan, world); !status.ok()) {
      const std::string who = absl::StrCat("rank ", rank);
      // An instruction's error has the rank already.
      return status.message().substr(0, who.size()) == who ? status : Annotate(status, who);
    }
    return executor;
  }
  return absl::InvalidArgumentError(absl::StrCat("the plan has no program for rank ", rank));
}

}  // namespace oriel::runtime
