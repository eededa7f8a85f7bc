#include "runtime/exec/prepare.h"

#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "runtime/base/status.h"
#include "runtime/exec/device_stream.h"
#include "runtime/exec/kernel_spec.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

// Recordings of more sets of copies would take more memory than they save time.
constexpr int64_t kMaxCopyCycle = 64;

// Remembers a pointer if it is into a buffer of several copies.
void Follow(const plan::Buffer& buffer, void*& pointer, PreparedSegment& prepared) {
  if (CopiesOf(buffer) == 1) return;
  prepared.copy_pointers.push_back({&pointer, static_cast<char*>(pointer), &buffer});
  if (prepared.copy_cycle > kMaxCopyCycle) return;  // a product of more might not be a number
  prepared.copy_cycle = std::lcm(prepared.copy_cycle, CopiesOf(buffer));
}
void Follow(const plan::Buffer& buffer, const void*& pointer, PreparedSegment& prepared) {
  Follow(buffer, *const_cast<void**>(&pointer), prepared);
}

// Room for all that the steps point into.
void Reserve(const plan::Segment& segment, PreparedSegment& prepared) {
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
}

// For the messages of a communicator, which knows its rank.
std::string LocationName(const plan::Segment& segment, int instruction) {
  const auto& made = segment.instructions(instruction);
  std::string name = absl::StrCat("segment ", segment.name(), ", instruction ", instruction, " (",
                                  InstructionName(made), ")");
  if (!made.location().empty()) absl::StrAppend(&name, " from onnx node ", made.location());
  return name;
}

bool IsCollective(Step::Kind kind) {
  return kind == Step::Kind::kAllReduce || kind == Step::Kind::kAllGather ||
         kind == Step::Kind::kReduceScatter || kind == Step::Kind::kAllToAll;
}

}  // namespace

absl::Status SegmentPreparer::Prepare(int index, PreparedSegment& prepared, int* instruction) {
  const plan::Segment& segment = e_.program.segments(index);
  prepared.segment = &segment;
  prepared.steps.resize(segment.instructions_size());
  prepared.profile.nanoseconds.resize(segment.instructions_size());
  prepared.profile.least_nanoseconds.resize(segment.instructions_size());
  Reserve(segment, prepared);
  for (int i = 0; i < segment.instructions_size(); ++i) {
    *instruction = i;
    Step& step = prepared.steps[i];
    ORIEL_RETURN_IF_ERROR(Prepare(segment.instructions(i), {index, i}, prepared, step));
    if (step.kind == Step::Kind::kSend || step.kind == Step::Kind::kReceive) {
      step.transfer = e_.transfers.Find(index, i);
    }
  }
  return PrepareStreams(prepared);
}

// What is started becomes a task of its stream.
absl::Status SegmentPreparer::PrepareStreams(PreparedSegment& prepared) {
  for (int i = 0; i < prepared.segment->instructions_size(); ++i) {
    Step& step = prepared.steps[i];
    const auto& instruction = prepared.segment->instructions(i);
    const int number = instruction.collective().stream();
    if (number > 0 && step.group != nullptr) {
      ORIEL_ASSIGN_OR_RETURN(step.stream, StreamOf(number, *step.group));
      ORIEL_ASSIGN_OR_RETURN(step.task, step.stream->Add(step.group, [runner = &e_.runner, &step] {
        return runner->RunStarted(step);
      }));
      if (e_.backend.IsAsynchronous() && !step.group->IsAsynchronous()) {
        ORIEL_ASSIGN_OR_RETURN(auto ready, e_.backend.MakeEvent());
        step.ready = ready.get();
        prepared.events.push_back(std::move(ready));
      }
    }
    if (step.kind != Step::Kind::kWait) continue;
    step.started = instruction.wait().collective();
    Step& start = prepared.steps[step.started];
    step.stream = start.stream;
    step.task = start.task;
    step.ready = start.ready;
    step.at_once = start.at_once = step.started + 1 == i;
  }
  return absl::OkStatus();
}

absl::StatusOr<CommunicationStream*> SegmentPreparer::StreamOf(int number,
                                                               const Communicator& group) {
  std::unique_ptr<CommunicationStream>& stream = e_.streams[number];
  if (stream == nullptr && e_.backend.IsAsynchronous() && group.IsAsynchronous()) {
    ORIEL_ASSIGN_OR_RETURN(stream, DeviceStream::Create(e_.backend, number));
  } else if (stream == nullptr) {
    stream = std::make_unique<ThreadStream>();
  }
  return stream.get();
}

absl::Status SegmentPreparer::Prepare(const plan::Instruction& instruction, LaunchNumber number,
                                      PreparedSegment& prepared, Step& step) {
  switch (instruction.kind_case()) {
    case plan::Instruction::kLaunch:
      return PrepareLaunch(instruction.launch(), number, prepared, step);
    case plan::Instruction::kCollective:
      ORIEL_RETURN_IF_ERROR(PrepareCollective(instruction.collective(), prepared, step));
      if (step.group != nullptr && step.group->IsAsynchronous()) {
        step.label = LocationName(*prepared.segment, number.instruction);
      }
      return absl::OkStatus();
    case plan::Instruction::kCopy:
      PrepareCopy(instruction.copy(), prepared, step);
      return absl::OkStatus();
    case plan::Instruction::kSlice:
      PrepareSlice(instruction.slice(), prepared, step);
      return absl::OkStatus();
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

absl::Status SegmentPreparer::PrepareLaunch(const plan::Launch& launch, LaunchNumber number,
                                            PreparedSegment& prepared, Step& step) {
  step.kind = Step::Kind::kLaunch;
  ORIEL_ASSIGN_OR_RETURN(
      step.kernel, e_.backend.Prepare(MakeKernelSpec(e_.plan, e_.program, launch, e_.num_threads),
                                      number.ToInt()));
  ORIEL_ASSIGN_OR_RETURN(step.args.stream, e_.backend.Stream(0));
  step.args.operands = prepared.operands.data() + prepared.operands.size();
  for (const int index : launch.operands()) {
    prepared.operands.push_back(Address(e_.program.buffers(index)));
    Follow(e_.program.buffers(index), prepared.operands.back(), prepared);
  }
  step.args.results = prepared.results.data() + prepared.results.size();
  for (const int index : launch.results()) {
    prepared.results.push_back(Address(e_.program.buffers(index)));
    Follow(e_.program.buffers(index), prepared.results.back(), prepared);
  }
  return absl::OkStatus();
}

absl::Status SegmentPreparer::PrepareCollective(const plan::Collective& collective,
                                                PreparedSegment& prepared, Step& step) {
  step.group = e_.groups.Find(collective);
  step.reduction =
      collective.reduction() == plan::Collective::MAX ? Reduction::kMax : Reduction::kSum;
  if (collective.kind() != plan::Collective::ALL_REDUCE) {
    return PreparePieces(collective, prepared, step);
  }
  step.kind = Step::Kind::kAllReduce;
  const size_t first = prepared.reduce_buffers.size();
  for (int i = 0; i < collective.operands_size(); ++i) {
    const auto& operand = e_.program.buffers(collective.operands(i));
    const auto& result = e_.program.buffers(collective.results(i));
    const TensorSpec spec = FromPlan(operand.local());
    prepared.reduce_buffers.push_back(
        {Address(operand), Address(result), spec.num_elements(), spec.dtype});
    Follow(operand, prepared.reduce_buffers.back().source, prepared);
    Follow(result, prepared.reduce_buffers.back().target, prepared);
  }
  step.buffers = absl::MakeConstSpan(prepared.reduce_buffers).subspan(first);
  return absl::OkStatus();
}

// A collective other than all-reduce.
absl::Status SegmentPreparer::PreparePieces(const plan::Collective& collective,
                                            PreparedSegment& prepared, Step& step) {
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
    const auto& operand = e_.program.buffers(collective.operands(i));
    const auto& result = e_.program.buffers(collective.results(i));
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

void SegmentPreparer::PrepareCopy(const plan::Copy& copy, PreparedSegment& prepared, Step& step) {
  const auto& source = e_.program.buffers(copy.source());
  const auto& target = e_.program.buffers(copy.target());
  step.kind = Step::Kind::kCopy;
  step.source = Address(source);
  step.target = Address(target);
  step.bytes = FromPlan(source.local()).bytes();
  Follow(source, step.source, prepared);
  Follow(target, step.target, prepared);
}

void SegmentPreparer::PrepareSlice(const plan::Slice& slice, PreparedSegment& prepared,
                                   Step& step) {
  const auto& source = e_.program.buffers(slice.source());
  const auto& target = e_.program.buffers(slice.target());
  const TensorSpec spec = FromPlan(source.local());
  const GridLayout::Piece piece = e_.groups.PieceOf(slice.axes());
  step.kind = Step::Kind::kSlice;
  step.piece = PieceOf(Address(source), BlocksOf(spec.shape, slice.dim(), piece.count), piece.count,
                       piece.index, DTypeBytes(spec.dtype));
  step.target = Address(target);
  step.bytes = FromPlan(target.local()).bytes();
  step.source = step.piece.data;
  Follow(source, step.source, prepared);
  Follow(target, step.target, prepared);
}

std::vector<RecordedPart> PartsToRecord(const PreparedSegment& prepared) {
  // A single step costs no less as a recording.
  constexpr size_t kMinSteps = 2;
  if (prepared.copy_cycle > kMaxCopyCycle) return {};

  const std::vector<Step>& steps = prepared.steps;
  std::vector<bool> records(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    const Communicator* group =
        step.kind == Step::Kind::kWait ? steps[step.started].group : step.group;
    records[i] = step.kind != Step::Kind::kSend && step.kind != Step::Kind::kReceive &&
                 (group == nullptr || group->IsAsynchronous());
  }
  const auto parts = [&] {
    std::vector<RecordedPart> made;
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!records[i]) continue;
      if (i == 0 || !records[i - 1]) made.push_back({i, i, false, {}, {}});
      made.back().end = i + 1;
    }
    return made;
  };
  // What is started is waited for in the same recording, else no such collective is recorded: one
  // that is replayed would not be ordered with one that is on its way.
  std::vector<int> part_of(steps.size(), -1);
  const std::vector<RecordedPart> whole = parts();
  for (size_t part = 0; part < whole.size(); ++part) {
    for (size_t i = whole[part].begin; i < whole[part].end; ++i)
      part_of[i] = static_cast<int>(part);
  }
  bool straddles = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != Step::Kind::kWait) continue;
    straddles = straddles || part_of[i] != part_of[steps[i].started];
  }
  for (size_t i = 0; i < steps.size() && straddles; ++i) {
    const bool waits = steps[i].kind == Step::Kind::kWait;
    if (waits || (IsCollective(steps[i].kind) && steps[i].stream != nullptr)) records[i] = false;
  }
  std::vector<RecordedPart> made;
  for (RecordedPart& part : parts()) {
    if (part.end - part.begin < kMinSteps) continue;
    part.recordings.resize(prepared.copy_cycle);
    part.label = absl::StrCat("segment ", prepared.segment->name(), ", instructions ", part.begin,
                              " to ", part.end - 1, " as a recording");
    made.push_back(std::move(part));
  }
  return made;
}

}  // namespace oriel::runtime
