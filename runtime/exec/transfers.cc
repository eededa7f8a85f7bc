#include "runtime/exec/transfers.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/access.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kAlignment = 64;

int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Transfer::Transfer(const plan::Buffer& buffer, const Box& local,
                   const std::vector<TransferPart>& parts, int channel, char* arena,
                   Backend& backend)
    : channel_(channel),
      element_bytes_(DTypeBytes(FromPlan(buffer.local()).dtype)),
      backend_(&backend) {
  for (int64_t copy = 0; copy < CopiesOf(buffer); ++copy) {
    memory_.push_back(arena + OffsetOf(buffer, copy));
  }
  for (const TransferPart& transfer_part : parts) {
    const BoxRuns runs(local, transfer_part.box);
    Part part{transfer_part.peer, transfer_part.box.num_elements() * element_bytes_, 0, {}};
    if (runs.count() == 1) {
      part.offset = runs[0].a * element_bytes_;
    } else {
      part.runs = runs;
      part.offset = staging_stride_;
      staging_stride_ += Align(part.bytes);
    }
    parts_.push_back(std::move(part));
  }
  messages_.resize(memory_.size() * parts_.size());
}

bool Transfer::IsPending(int64_t microbatch) const {
  const auto first = messages_.begin() + CopyOf(microbatch) * parts_.size();
  return std::any_of(first, first + parts_.size(),
                     [](const std::unique_ptr<Message>& message) { return message != nullptr; });
}

absl::Status Transfer::Pack(int64_t microbatch) {
  const int64_t copy = CopyOf(microbatch);
  for (const Part& part : parts_) {
    char* address = Address(part, copy);
    for (int64_t run = 0; part.runs && run < part.runs->count(); ++run) {
      const auto [from, to] = (*part.runs)[run];
      ORIEL_RETURN_IF_ERROR(backend_->Copy(address + to * element_bytes_,
                                           memory_[copy] + from * element_bytes_,
                                           part.runs->length() * element_bytes_));
    }
  }
  return absl::OkStatus();
}

absl::Status Transfer::Send(Communicator& world, int64_t microbatch) {
  const int64_t copy = CopyOf(microbatch);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    ORIEL_ASSIGN_OR_RETURN(MessageOf(i, copy),
                           world.Send(part.peer, channel_, Address(part, copy), part.bytes));
  }
  return absl::OkStatus();
}

absl::Status Transfer::Post(Communicator& world, int64_t microbatch) {
  const int64_t copy = CopyOf(microbatch);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    ORIEL_ASSIGN_OR_RETURN(MessageOf(i, copy),
                           world.Receive(part.peer, channel_, Address(part, copy), part.bytes));
  }
  return absl::OkStatus();
}

absl::Status Transfer::WaitUntilSent(int64_t microbatch) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    std::unique_ptr<Message>& message = MessageOf(i, CopyOf(microbatch));
    if (message != nullptr) ORIEL_RETURN_IF_ERROR(message->Wait());
    message.reset();
  }
  return absl::OkStatus();
}

absl::Status Transfer::WaitUntilReceived(int64_t microbatch) {
  const int64_t copy = CopyOf(microbatch);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    std::unique_ptr<Message>& message = MessageOf(i, copy);
    if (message == nullptr) return absl::InternalError("the rank was not ready to receive it");
    ORIEL_RETURN_IF_ERROR(message->Wait());
    message.reset();
    for (int64_t run = 0; part.runs && run < part.runs->count(); ++run) {
      const auto [to, from] = (*part.runs)[run];
      ORIEL_RETURN_IF_ERROR(backend_->Copy(memory_[copy] + to * element_bytes_,
                                           Address(part, copy) + from * element_bytes_,
                                           part.runs->length() * element_bytes_));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Transfers> Transfers::Create(const plan::Plan& plan, const plan::Program& program,
                                            int64_t rank, Communicator* world, Backend& backend,
                                            std::function<absl::Status()> settle, char* arena,
                                            TraceRecorder* trace) {
  Transfers transfers;
  transfers.plan_ = &plan;
  transfers.program_ = &program;
  transfers.world_ = world;
  transfers.trace_ = trace;
  if (backend.IsAsynchronous() && world != nullptr) {
    if (world->IsAsynchronous()) {
      ORIEL_ASSIGN_OR_RETURN(void* const stream, backend.Stream(0));
      world->SetStream(stream);
    } else {
      transfers.settle_ = std::move(settle);
    }
  }
  transfers.used_.resize(program.segments_size());
  std::map<int, TransferLayout> layouts;  // by channel
  for (int i = 0; i < program.segments_size(); ++i) {
    const plan::Segment& segment = program.segments(i);
    for (int j = 0; j < segment.instructions_size(); ++j) {
      const plan::Instruction& instruction = segment.instructions(j);
      if (!instruction.has_send() && !instruction.has_receive()) continue;
      const Place place{i, j};
      const int channel = transfers.ChannelAt(place);
      auto layout = layouts.find(channel);
      if (layout == layouts.end()) {
        ORIEL_ASSIGN_OR_RETURN(TransferLayout made,
                               TransferLayout::Create(plan, plan.channels(channel)));
        layout = layouts.emplace(channel, std::move(made)).first;
      }
      transfers.Add(place, layout->second, rank, arena, backend);
    }
  }
  if (!transfers.transfers_.empty() && world == nullptr) {
    return absl::InvalidArgumentError(
        "the program sends or receives, but there is no communicator");
  }
  int64_t bytes = 0;
  for (const auto& [place, transfer] : transfers.transfers_) bytes += transfer.staging_bytes();
  if (bytes > 0) {
    ORIEL_ASSIGN_OR_RETURN(transfers.staging_, backend.Allocate(bytes));
  }
  char* staging = static_cast<char*>(transfers.staging_.get());
  for (auto& [place, transfer] : transfers.transfers_) {
    transfer.set_staging(staging);
    staging += transfer.staging_bytes();
  }
  transfers.Outline();
  transfers.schedule_ = ReceiveSchedule(program);
  return transfers;
}

void Transfers::Add(Place place, const TransferLayout& layout, int64_t rank, char* arena,
                    Backend& backend) {
  const plan::Instruction& instruction = InstructionAt(place);
  const bool sends = instruction.has_send();
  const plan::Buffer& buffer =
      program_->buffers(sends ? instruction.send().buffer() : instruction.receive().buffer());
  const Box local = (sends ? layout.source() : layout.target()).BoxOf(rank);
  transfers_.emplace(place,
                     Transfer(buffer, local, sends ? layout.SentBy(rank) : layout.ReceivedBy(rank),
                              ChannelAt(place), arena, backend));
}

const plan::Instruction& Transfers::InstructionAt(Place place) const {
  return program_->segments(place.first).instructions(place.second);
}

int Transfers::ChannelAt(Place place) const {
  const plan::Instruction& instruction = InstructionAt(place);
  return instruction.has_send() ? instruction.send().channel() : instruction.receive().channel();
}

// What each segment has to do with the transfers.
void Transfers::Outline() {
  std::set<std::string> scheduled;
  for (const auto& entry : program_->schedule()) scheduled.insert(entry.segment());
  for (int i = 0; i < program_->segments_size(); ++i) {
    const plan::Segment& segment = program_->segments(i);
    std::set<int64_t> memory;  // where the buffers that it uses begin; views share it
    for (const auto& instruction : segment.instructions()) {
      const Access access = AccessOf(instruction);
      for (const int buffer : access.reads) memory.insert(program_->buffers(buffer).offset());
      for (const int buffer : access.writes) memory.insert(program_->buffers(buffer).offset());
    }
    used_[i].scheduled = scheduled.count(segment.name()) > 0;
    for (const auto& [place, transfer] : transfers_) {
      const plan::Instruction& instruction = InstructionAt(place);
      if (instruction.has_send()) {
        const plan::Buffer& sent = program_->buffers(instruction.send().buffer());
        if (memory.count(sent.offset()) > 0) used_[i].sends.push_back(place);
      } else if (place.first == i) {
        used_[i].receives.push_back(place);
      }
    }
  }
}

absl::Status Transfers::BeforeRun(int segment, int64_t microbatch) {
  const Used& used = used_[segment];
  const bool in_step = used.scheduled && !schedule_.empty();
  if (in_step) {
    ORIEL_RETURN_IF_ERROR(CheckSchedule(segment, microbatch));
    if (position_ == 0) ORIEL_RETURN_IF_ERROR(PostWhatIsFree());
  }
  for (const Place& place : used.sends) {
    Transfer& transfer = transfers_.at(place);
    if (!transfer.IsPending(microbatch)) continue;
    TraceSlice slice;
    slice.kind = TraceSlice::Kind::kSent;
    slice.segment = segment;
    slice.microbatch = microbatch;
    slice.channel = transfer.channel();
    TraceSpan span(trace_, slice);
    ORIEL_RETURN_IF_ERROR(AtPlace(transfer.WaitUntilSent(microbatch), place));
  }
  if (in_step) return absl::OkStatus();
  for (const Place& place : used.receives) ORIEL_RETURN_IF_ERROR(Post(place, microbatch));
  return absl::OkStatus();
}

absl::Status Transfers::AfterRun(int segment) {
  if (!used_[segment].scheduled || schedule_.empty()) return absl::OkStatus();
  ++position_;
  ORIEL_RETURN_IF_ERROR(PostWhatIsFree());
  if (position_ == program_->schedule_size()) position_ = 0;
  return absl::OkStatus();
}

absl::Status Transfers::Send(Transfer& transfer, int64_t microbatch) {
  ORIEL_RETURN_IF_ERROR(transfer.Pack(microbatch));
  if (settle_) ORIEL_RETURN_IF_ERROR(settle_());
  return OnChannel(transfer.Send(*world_, microbatch), transfer);
}

absl::Status Transfers::Receive(Transfer& transfer, int64_t microbatch) {
  return OnChannel(transfer.WaitUntilReceived(microbatch), transfer);
}

absl::Status Transfers::CheckSchedule(int segment, int64_t microbatch) const {
  const plan::ScheduleEntry& next = program_->schedule(position_);
  const std::string& name = program_->segments(segment).name();
  if (next.segment() == name && next.microbatch() == microbatch) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("microbatch ", microbatch, " is not next in the schedule, but ", next.segment(),
                   " of microbatch ", next.microbatch()));
}

absl::Status Transfers::Post(Place place, int64_t microbatch) {
  if (settle_) ORIEL_RETURN_IF_ERROR(settle_());  // the memory may be in use
  return AtPlace(transfers_.at(place).Post(*world_, microbatch), place);
}

absl::Status Transfers::PostWhatIsFree() {
  for (const ScheduledReceive& receive : schedule_[position_]) {
    ORIEL_RETURN_IF_ERROR(Post({receive.segment, receive.instruction}, receive.microbatch));
  }
  return absl::OkStatus();
}

// Of a message that is not of the instruction that runs.
absl::Status Transfers::AtPlace(const absl::Status& status, Place place) const {
  if (status.ok()) return status;
  return Annotate(status, absl::StrCat("channel '", plan_->channels(ChannelAt(place)).name(), "' (",
                                       InstructionName(InstructionAt(place)), " of segment ",
                                       program_->segments(place.first).name(), ", instruction ",
                                       place.second, ")"));
}

absl::Status Transfers::OnChannel(const absl::Status& status, const Transfer& transfer) const {
  if (status.ok()) return status;
  return Annotate(status,
                  absl::StrCat("channel '", plan_->channels(transfer.channel()).name(), "'"));
}

}  // namespace oriel::runtime
