#include "runtime/exec/executor.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/backend/host/host_backend.h"
#include "runtime/base/status.h"
#include "runtime/comm/blocks.h"
#include "runtime/exec/dead_memory.h"
#include "runtime/exec/groups.h"
#include "runtime/exec/kernel_spec.h"
#include "runtime/exec/streams.h"
#include "runtime/exec/transfers.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMaxMilliseconds = 1e9;

// An instruction with everything looked up: running one allocates and searches nothing.
struct Step {
  enum class Kind : uint8_t {
    kLaunch,
    kAllReduce,
    kAllGather,
    kReduceScatter,
    kAllToAll,
    kSlice,
    kCopy,
    kSend,
    kReceive,
    kWait,
  };
  Kind kind = Kind::kCopy;
  // kLaunch
  kernels::KernelFn kernel;
  kernels::KernelArgs args = {nullptr, nullptr};
  // Collectives; a null group is this rank alone
  Communicator* group = nullptr;
  Reduction reduction = Reduction::kSum;
  absl::Span<const ReduceBuffer> buffers;  // kAllReduce
  absl::Span<const PieceBuffer> pieces;    // other collectives
  // kSlice, kCopy
  const void* source = nullptr;
  void* target = nullptr;
  int64_t bytes = 0;                   // of the target
  ConstPiece piece = {nullptr, 0, 0};  // kSlice: how it lies in the source, where `source` is
  Transfer* transfer = nullptr;        // kSend, kReceive
  // Of a collective that is started, and of its kWait; null where the group is this rank alone, for
  // which starting it is doing it.
  CommunicationStream* stream = nullptr;
  CommunicationStream::Task* task = nullptr;
  bool at_once = false;  // the wait is right behind the start, and does both
  int started = -1;      // kWait: the step that it ends
};

// A pointer into a buffer of several copies, as the current microbatch needs it.
struct CopyPointer {
  void** place;
  char* first;  // what it is for the first copy
  const plan::Buffer* buffer;

  void Follow(int64_t microbatch) const {
    *place = first + (OffsetOf(*buffer, microbatch) - buffer->offset());
  }
};

struct PreparedSegment {
  const plan::Segment* segment = nullptr;
  std::vector<Step> steps;
  std::vector<CopyPointer> copy_pointers;  // into what follows, and into steps
  // Instead of computing (ExecutorOptions::replace_compute): how long all together, and before each
  // step; as much as is left behind the last one.
  std::optional<Clock::duration> sleep;
  std::vector<Clock::duration> sleep_before;
  // What the steps point into. Never resized once filled.
  std::vector<const void*> operands;
  std::vector<void*> results;
  std::vector<ReduceBuffer> reduce_buffers;
  std::vector<PieceBuffer> piece_buffers;
  SegmentProfile profile;
};

// Whether replaced computing leaves it out.
bool IsComputing(Step::Kind kind) {
  return kind == Step::Kind::kLaunch || kind == Step::Kind::kSlice || kind == Step::Kind::kCopy;
}

// Milliseconds that replace the computing of a segment, if any.
std::optional<double> Replacement(const ExecutorOptions& options, const std::string& segment) {
  auto found = options.replace_compute.find(segment);
  for (const std::string_view kind : {SegmentKind(segment), PlainKind(segment)}) {
    if (found == options.replace_compute.end()) {
      found = options.replace_compute.find(std::string(kind));
    }
  }
  if (found == options.replace_compute.end()) return std::nullopt;
  return found->second;
}

absl::Status CheckReplacements(const plan::Plan& plan, const ExecutorOptions& options) {
  for (const auto& [name, milliseconds] : options.replace_compute) {
    bool known = false;
    for (const auto& program : plan.programs()) {
      for (const auto& segment : program.segments()) {
        known = known || segment.name() == name || SegmentKind(segment.name()) == name ||
                PlainKind(segment.name()) == name;
      }
    }
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan has no segment '", name, "' whose computing could be replaced"));
    }
    if (!(milliseconds >= 0) || milliseconds > kMaxMilliseconds) {
      return absl::InvalidArgumentError(
          absl::StrCat("the computing of ", name, " can't be replaced by ", milliseconds, " ms"));
    }
  }
  return absl::OkStatus();
}

class PlanExecutor final : public Executor {
 public:
  PlanExecutor(const plan::Program& program, int64_t rank, const ExecutorOptions& options)
      : program_(program), rank_(rank), options_(options), backend_(MakeHostBackend()) {}

  // Collective, like Executor::Create.
  absl::Status Init(const plan::Plan& plan, Communicator* world) {
    ORIEL_ASSIGN_OR_RETURN(arena_, backend_->Allocate(program_.arena_bytes()));
    if (options_.poison_dead_memory) {
      dead_memory_ = DeadMemory(program_);
      for (const ByteRange& bytes : dead_memory_.AtStart()) ORIEL_RETURN_IF_ERROR(Poison(bytes));
    }
    for (const auto& buffer : program_.buffers()) {
      if (buffer.kind() == plan::CONSTANT) {
        ORIEL_RETURN_IF_ERROR(backend_->Copy(Address(buffer), buffer.data().data(), Bytes(buffer)));
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
    ORIEL_ASSIGN_OR_RETURN(transfers_, Transfers::Create(plan, program_, rank_, world, *backend_,
                                                         Base(), options_.trace));
    segments_.resize(program_.segments_size());
    for (int i = 0; i < program_.segments_size(); ++i) {
      ORIEL_RETURN_IF_ERROR(Prepare(i, segments_[i]));
    }
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
    return RunError(index, transfers_.AfterRun(index));
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
    return backend_->Copy(target, static_cast<const char*>(view.data) + offset, bytes);
  }

  absl::Status Write(const BufferView& view, int64_t offset, const void* source,
                     int64_t bytes) override {
    return backend_->Copy(static_cast<char*>(view.data) + offset, source, bytes);
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

  absl::Status Prepare(int index, PreparedSegment& prepared) {
    const plan::Segment& segment = program_.segments(index);
    prepared.segment = &segment;
    prepared.steps.resize(segment.instructions_size());
    prepared.profile.nanoseconds.resize(segment.instructions_size());
    size_t operands = 0;
    size_t results = 0;
    size_t collected = 0;
    for (const auto& instruction : segment.instructions()) {
      operands += instruction.launch().operands_size();
      results += instruction.launch().results_size();
      collected += instruction.collective().operands_size();
    }
    prepared.operands.reserve(operands);
    prepared.results.reserve(results);
    prepared.reduce_buffers.reserve(collected);
    prepared.piece_buffers.reserve(collected);
    for (int i = 0; i < segment.instructions_size(); ++i) {
      Step& step = prepared.steps[i];
      const absl::Status status = Prepare(segment.instructions(i), prepared, step);
      if (!status.ok()) return InstructionError(segment, i, status);
      if (step.kind == Step::Kind::kSend || step.kind == Step::Kind::kReceive) {
        step.transfer = transfers_.Find(index, i);
      }
    }
    PrepareStreams(segment, prepared);
    if (const std::optional<double> milliseconds = Replacement(options_, segment.name())) {
      PrepareSleep(*milliseconds, prepared);
    }
    return absl::OkStatus();
  }

  // What is started becomes a task of its stream.
  void PrepareStreams(const plan::Segment& segment, PreparedSegment& prepared) {
    for (int i = 0; i < segment.instructions_size(); ++i) {
      Step& step = prepared.steps[i];
      const auto& instruction = segment.instructions(i);
      const int stream = instruction.collective().stream();
      if (stream > 0 && step.group != nullptr) {
        std::unique_ptr<CommunicationStream>& owner = streams_[stream];
        if (owner == nullptr) owner = std::make_unique<CommunicationStream>();
        step.stream = owner.get();
        step.task = owner->Add(step.group, [this, &step] { return Communicate(step); });
      }
      if (step.kind != Step::Kind::kWait) continue;
      step.started = instruction.wait().collective();
      Step& start = prepared.steps[step.started];
      step.stream = start.stream;
      step.task = start.task;
      step.at_once = start.at_once = step.started + 1 == i;
    }
  }

  // The rank sleeps before it first sends. Where it starts collectives, what each launch would take
  // is slept before whatever communicates behind it, so that they run meanwhile.
  static void PrepareSleep(double milliseconds, PreparedSegment& prepared) {
    const auto whole = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double, std::milli>(milliseconds));
    const std::vector<Step>& steps = prepared.steps;
    prepared.sleep = whole;
    prepared.sleep_before.assign(steps.size(), Clock::duration(0));
    const bool starts = std::any_of(steps.begin(), steps.end(), [](const Step& step) {
      return step.stream != nullptr && !step.at_once;
    });
    const int64_t launches = std::count_if(steps.begin(), steps.end(), [](const Step& step) {
      return step.kind == Step::Kind::kLaunch;
    });
    if (starts && launches == 0) return;
    int64_t passed = 0, slept = 0;  // launches
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind == Step::Kind::kLaunch) ++passed;
      if (steps[i].kind == Step::Kind::kSend && !starts) {
        prepared.sleep_before[i] = whole;
        return;
      }
      if (!starts || IsComputing(steps[i].kind)) continue;
      prepared.sleep_before[i] = whole * passed / launches - whole * slept / launches;
      slept = passed;
    }
  }

  // Remembers a pointer if it is into a buffer of several copies.
  static void Follow(const plan::Buffer& buffer, void*& pointer, PreparedSegment& prepared) {
    if (CopiesOf(buffer) == 1) return;
    prepared.copy_pointers.push_back({&pointer, static_cast<char*>(pointer), &buffer});
  }
  static void Follow(const plan::Buffer& buffer, const void*& pointer, PreparedSegment& prepared) {
    Follow(buffer, *const_cast<void**>(&pointer), prepared);
  }

  absl::Status Prepare(const plan::Instruction& instruction, PreparedSegment& prepared,
                       Step& step) {
    switch (instruction.kind_case()) {
      case plan::Instruction::kLaunch: {
        const auto& launch = instruction.launch();
        step.kind = Step::Kind::kLaunch;
        ORIEL_ASSIGN_OR_RETURN(
            step.kernel, backend_->Prepare(MakeKernelSpec(program_, launch, options_.num_threads)));
        step.args.operands = prepared.operands.data() + prepared.operands.size();
        for (const int index : launch.operands()) {
          prepared.operands.push_back(Address(program_.buffers(index)));
          Follow(program_.buffers(index), prepared.operands.back(), prepared);
        }
        step.args.results = prepared.results.data() + prepared.results.size();
        for (const int index : launch.results()) {
          prepared.results.push_back(Address(program_.buffers(index)));
          Follow(program_.buffers(index), prepared.results.back(), prepared);
        }
        return absl::OkStatus();
      }
      case plan::Instruction::kCollective: {
        const auto& collective = instruction.collective();
        step.group = groups_.Find(collective);
        step.reduction =
            collective.reduction() == plan::Collective::MAX ? Reduction::kMax : Reduction::kSum;
        if (collective.kind() != plan::Collective::ALL_REDUCE)
          return PreparePieces(collective, prepared, step);
        step.kind = Step::Kind::kAllReduce;
        const size_t first = prepared.reduce_buffers.size();
        for (int i = 0; i < collective.operands_size(); ++i) {
          const auto& operand = program_.buffers(collective.operands(i));
          const auto& result = program_.buffers(collective.results(i));
          const TensorSpec spec = FromPlan(operand.local());
          prepared.reduce_buffers.push_back(
              {Address(operand), Address(result), spec.num_elements(), spec.dtype});
          Follow(operand, prepared.reduce_buffers.back().source, prepared);
          Follow(result, prepared.reduce_buffers.back().target, prepared);
        }
        step.buffers = absl::MakeConstSpan(prepared.reduce_buffers).subspan(first);
        return absl::OkStatus();
      }
      case plan::Instruction::kCopy: {
        const auto& source = program_.buffers(instruction.copy().source());
        const auto& target = program_.buffers(instruction.copy().target());
        step.kind = Step::Kind::kCopy;
        step.source = Address(source);
        step.target = Address(target);
        step.bytes = Bytes(source);
        Follow(source, step.source, prepared);
        Follow(target, step.target, prepared);
        return absl::OkStatus();
      }
      case plan::Instruction::kSlice: {
        const auto& slice = instruction.slice();
        const auto& source = program_.buffers(slice.source());
        const auto& target = program_.buffers(slice.target());
        const TensorSpec spec = FromPlan(source.local());
        const GridLayout::Piece piece = groups_.PieceOf(slice.axes());
        step.kind = Step::Kind::kSlice;
        step.piece = PieceOf(Address(source), BlocksOf(spec.shape, slice.dim(), piece.count),
                             piece.count, piece.index, DTypeBytes(spec.dtype));
        step.target = Address(target);
        step.bytes = Bytes(target);
        step.source = step.piece.data;
        Follow(source, step.source, prepared);
        Follow(target, step.target, prepared);
        return absl::OkStatus();
      }
      case plan::Instruction::kSend:
        step.kind = Step::Kind::kSend;
        return absl::OkStatus();
      case plan::Instruction::kReceive:
        step.kind = Step::Kind::kReceive;
        return absl::OkStatus();
      case plan::Instruction::kWait:
        step.kind = Step::Kind::kWait;
        return absl::OkStatus();
      case plan::Instruction::KIND_NOT_SET:
        break;
    }
    return absl::UnimplementedError("an instruction that this version does not know");
  }

  // A collective other than all-reduce.
  absl::Status PreparePieces(const plan::Collective& collective, PreparedSegment& prepared,
                             Step& step) {
    switch (collective.kind()) {
      case plan::Collective::ALL_GATHER:
        step.kind = Step::Kind::kAllGather;
        break;
      case plan::Collective::REDUCE_SCATTER:
        step.kind = Step::Kind::kReduceScatter;
        break;
      case plan::Collective::ALL_TO_ALL:
        step.kind = Step::Kind::kAllToAll;
        break;
      default:
        return absl::UnimplementedError("a collective that this version does not know");
    }
    const int64_t ranks = step.group == nullptr ? 1 : step.group->size();
    const size_t first = prepared.piece_buffers.size();
    for (int i = 0; i < collective.operands_size(); ++i) {
      const auto& operand = program_.buffers(collective.operands(i));
      const auto& result = program_.buffers(collective.results(i));
      PieceBuffer piece{Address(operand), Address(result), FromPlan(operand.local()).dtype, {}, {}};
      if (Cuts(collective.kind())) {
        piece.source_blocks = BlocksOf(operand.local().shape(), collective.split_dims(i), ranks);
      }
      if (Joins(collective.kind())) {
        piece.target_blocks = BlocksOf(result.local().shape(), collective.concat_dims(i), ranks);
      }
      prepared.piece_buffers.push_back(piece);
      Follow(operand, prepared.piece_buffers.back().source, prepared);
      Follow(result, prepared.piece_buffers.back().target, prepared);
    }
    step.pieces = absl::MakeConstSpan(prepared.piece_buffers).subspan(first);
    return absl::OkStatus();
  }

  absl::Status RunSteps(PreparedSegment& segment, int index, int64_t microbatch) {
    if (options_.profile) ++segment.profile.runs;
    Clock::duration left = segment.sleep.value_or(Clock::duration(0));
    const std::vector<DeadBytes>& dead = dead_memory_.In(index, microbatch);
    size_t poisoned = 0;
    ORIEL_RETURN_IF_ERROR(PoisonBehind(DeadBytes::kBeforeRun, dead, poisoned));
    for (size_t i = 0; i < segment.steps.size(); ++i) {
      const Step& step = segment.steps[i];
      if (segment.sleep) {
        Sleep(segment.sleep_before[i]);
        left -= segment.sleep_before[i];
        if (IsComputing(step.kind)) continue;
      }
      Clock::time_point begin;
      if (options_.profile) begin = Clock::now();
      absl::Status status = TraceStep(step, index, static_cast<int>(i), microbatch);
      if (!status.ok()) {
        const int failed = step.started < 0 ? static_cast<int>(i) : step.started;
        return InstructionError(*segment.segment, failed, status);
      }
      if (options_.profile) {
        segment.profile.nanoseconds[i] +=
            std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
      }
      ORIEL_RETURN_IF_ERROR(PoisonBehind(static_cast<int>(i), dead, poisoned));
      transfers_.Progress();
    }
    Sleep(left);
    return absl::OkStatus();
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
      return RunStep(step, microbatch);
    }
    if (options_.trace == nullptr || (step.stream != nullptr && step.started < 0)) {
      return RunStep(step, microbatch);
    }
    {
      const TraceSpan span(options_.trace, slice);
      ORIEL_RETURN_IF_ERROR(RunStep(step, microbatch));
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

  absl::Status RunStep(const Step& step, int64_t microbatch) {
    switch (step.kind) {
      case Step::Kind::kLaunch:
        return step.kernel(step.args);
      case Step::Kind::kAllReduce:
      case Step::Kind::kAllGather:
      case Step::Kind::kReduceScatter:
      case Step::Kind::kAllToAll:
        if (step.stream == nullptr) return Communicate(step);
        return step.at_once ? absl::OkStatus() : step.stream->Start(*step.task);
      case Step::Kind::kWait:
        if (step.stream == nullptr) return absl::OkStatus();
        return step.at_once ? step.stream->Run(*step.task) : step.stream->Wait(*step.task);
      case Step::Kind::kSlice:
        if (step.bytes == 0) return absl::OkStatus();
        return backend_->CopyRuns(step.target, step.source, step.piece.run, step.piece.stride,
                                  step.bytes / step.piece.run);
      case Step::Kind::kCopy:
        return Move(step.target, step.source, step.bytes);
      case Step::Kind::kSend:
        return transfers_.Send(*step.transfer, microbatch);
      case Step::Kind::kReceive:
        return transfers_.Receive(*step.transfer, microbatch);
    }
    return absl::OkStatus();
  }

  // A collective, to its end. Of a stream: in its thread, which uses the group and nothing else of
  // the executor that changes.
  absl::Status Communicate(const Step& step) {
    switch (step.kind) {
      case Step::Kind::kAllReduce:
        if (step.group != nullptr) return step.group->AllReduce(step.reduction, step.buffers);
        for (const ReduceBuffer& buffer : step.buffers) {
          ORIEL_RETURN_IF_ERROR(
              Move(buffer.target, buffer.source, buffer.count * DTypeBytes(buffer.dtype)));
        }
        return absl::OkStatus();
      case Step::Kind::kAllGather:
        if (step.group == nullptr) return MoveAll(step.pieces);
        return step.group->AllGather(step.pieces);
      case Step::Kind::kReduceScatter:
        if (step.group == nullptr) return MoveAll(step.pieces);
        return step.group->ReduceScatter(step.reduction, step.pieces);
      case Step::Kind::kAllToAll:
        if (step.group == nullptr) return MoveAll(step.pieces);
        return step.group->AllToAll(step.pieces);
      default:
        return absl::OkStatus();
    }
  }

  absl::Status Move(void* target, const void* source, int64_t bytes) {
    if (target == source) return absl::OkStatus();
    return backend_->Copy(target, source, bytes);
  }

  // A collective of this rank alone: each tensor is one piece.
  absl::Status MoveAll(absl::Span<const PieceBuffer> pieces) {
    for (const PieceBuffer& piece : pieces) {
      const Blocks& blocks =
          piece.source_blocks.inner > 0 ? piece.source_blocks : piece.target_blocks;
      ORIEL_RETURN_IF_ERROR(
          Move(piece.target, piece.source, blocks.num_elements() * DTypeBytes(piece.dtype)));
    }
    return absl::OkStatus();
  }

  // What goes wrong before or behind the instructions.
  absl::Status RunError(int segment, const absl::Status& status) const {
    if (status.ok()) return status;
    return Annotate(status,
                    absl::StrCat("rank ", rank_, ", segment ", program_.segments(segment).name()));
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
    return absl::Status(status.code(), message);
  }

  const plan::Program& program_;
  const int64_t rank_;
  const ExecutorOptions options_;
  const std::unique_ptr<Backend> backend_;
  DeviceMemory arena_;
  CommunicationGroups groups_;
  Transfers transfers_;
  std::vector<PreparedSegment> segments_;
  std::map<Role, int> by_role_;
  DeadMemory dead_memory_;  // nothing, unless it is filled
  // By number. Destroyed first: their threads use the rest.
  std::map<int, std::unique_ptr<CommunicationStream>> streams_;
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
    auto executor = std::make_unique<PlanExecutor>(program, rank, options);
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
