#include "runtime/exec/transfers.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

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

absl::Status Transfer::Connect(const std::function<LinkLane(int64_t)>& lane, std::string label) {
  label_ = std::move(label);
  for (size_t copy = 0; copy < memory_.size(); ++copy) {
    for (const Part& part : parts_) {
      ORIEL_ASSIGN_OR_RETURN(
          LinkMessage message,
          LinkMessage::Create(*backend_, lane(part.peer), Address(part, static_cast<int64_t>(copy)),
                              part.bytes));
      link_messages_.push_back(std::move(message));
    }
  }
  return absl::OkStatus();
}

std::vector<int64_t> Transfer::Peers() const {
  std::vector<int64_t> peers;
  for (const Part& part : parts_) peers.push_back(part.peer);
  return peers;
}

bool Transfer::IsPending(int64_t microbatch) const {
  const auto link = link_messages_.begin() + (IsLinked() ? CopyOf(microbatch) * parts_.size() : 0);
  if (IsLinked())
    return std::any_of(link, link + parts_.size(),
                       [](const LinkMessage& message) { return message.IsPending(); });
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

absl::Status Transfer::MakeReady(int64_t copy) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    ORIEL_RETURN_IF_ERROR(LinkMessageOf(i, copy).MakeReady());
  }
  return absl::OkStatus();
}

absl::Status Transfer::Put(int64_t microbatch) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    ORIEL_RETURN_IF_ERROR(LinkMessageOf(i, CopyOf(microbatch)).Put(label_));
  }
  return absl::OkStatus();
}

absl::Status Transfer::Send(Communicator& world, int64_t microbatch) {
  const int64_t copy = CopyOf(microbatch);
  if (IsLinked()) return MakeReady(copy);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    ORIEL_ASSIGN_OR_RETURN(MessageOf(i, copy),
                           world.Send(part.peer, channel_, Address(part, copy), part.bytes));
  }
  return absl::OkStatus();
}

absl::Status Transfer::Post(Communicator& world, int64_t microbatch) {
  const int64_t copy = CopyOf(microbatch);
  if (IsLinked()) return MakeReady(copy);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    ORIEL_ASSIGN_OR_RETURN(MessageOf(i, copy),
                           world.Receive(part.peer, channel_, Address(part, copy), part.bytes));
  }
  return absl::OkStatus();
}

absl::Status Transfer::WaitFor(size_t part, int64_t copy) {
  if (IsLinked()) {
    LinkMessage& message = LinkMessageOf(part, copy);
    return message.IsPending() ? message.Wait() : absl::OkStatus();
  }
  std::unique_ptr<Message>& message = MessageOf(part, copy);
  if (message != nullptr) ORIEL_RETURN_IF_ERROR(message->Wait());
  message.reset();
  return absl::OkStatus();
}

absl::Status Transfer::WaitUntilSent(int64_t microbatch) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    ORIEL_RETURN_IF_ERROR(WaitFor(i, CopyOf(microbatch)));
  }
  return absl::OkStatus();
}

absl::Status Transfer::WaitUntilReceived(int64_t microbatch) {
  const int64_t copy = CopyOf(microbatch);
  if (!parts_.empty() && !IsPending(microbatch)) {
    return absl::InternalError("the rank was not ready to receive it");
  }
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    ORIEL_RETURN_IF_ERROR(WaitFor(i, copy));
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
  if (!transfers.transfers_.empty() && backend.IsAsynchronous() && world->HasLinks()) {
    ORIEL_RETURN_IF_ERROR(transfers.Connect(rank, backend));
  }
  return transfers;
}

// Links in the order of the pairs of grids: every other pair of neighbours at first, so that the
// ranks of many stages don't wait for each other in a row.
absl::Status Transfers::Connect(int64_t rank, Backend& backend) {
  struct Key {
    int64_t odd, sender, receiver;
    bool operator<(const Key& other) const {
      return std::tie(odd, sender, receiver) < std::tie(other.odd, other.sender, other.receiver);
    }
  };
  const auto key = [this](int64_t sender, int64_t receiver) {
    return Key{std::min(GridIndexOf(*plan_, sender), GridIndexOf(*plan_, receiver)) % 2, sender,
               receiver};
  };
  std::map<Key, LinkLane> lanes;
  for (const auto& [place, transfer] : transfers_) {
    const bool sends = InstructionAt(place).has_send();
    for (const int64_t peer : transfer.Peers()) lanes[sends ? key(rank, peer) : key(peer, rank)];
  }
  std::vector<LinkEnds> ends;
  for (const auto& [each, lane] : lanes) ends.push_back({each.sender, each.receiver});
  ORIEL_ASSIGN_OR_RETURN(links_, world_->OpenLinks(ends));
  int stream = 0;  // the program's own come first
  for (const auto& segment : program_->segments()) {
    for (const auto& instruction : segment.instructions()) {
      stream = std::max(stream, instruction.collective().stream());
    }
  }
  auto link = links_.begin();
  for (auto& [each, lane] : lanes) {
    lane = {(link++)->get(), ++stream};
    ORIEL_RETURN_IF_ERROR(backend.Stream(stream).status());
  }
  for (auto& [place, transfer] : transfers_) {
    const bool sends = InstructionAt(place).has_send();
    ORIEL_RETURN_IF_ERROR(transfer.Connect(
        [&](int64_t peer) { return lanes.at(sends ? key(rank, peer) : key(peer, rank)); },
        absl::StrCat("segment ", program_->segments(place.first).name(), ", instruction ",
                     place.second, ", channel '", plan_->channels(transfer.channel()).name(),
                     "'")));
  }
  int program = 0;
  while (&plan_->programs(program) != program_) ++program;
  for (const bool eval : {false, true}) {
    ORIEL_ASSIGN_OR_RETURN(TransferOrder order, OrderTransfers(*plan_, eval));
    (eval ? eval_ : step_).order = std::move(order.programs[program]);
  }
  return absl::OkStatus();
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
  }
  ORIEL_RETURN_IF_ERROR(BeginWalk(segment, microbatch));
  if (in_step && position_ == 0) ORIEL_RETURN_IF_ERROR(PostWhatIsFree());
  ORIEL_RETURN_IF_ERROR(Pass());
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
  if (!in_step) {
    for (const Place& place : used.receives) ORIEL_RETURN_IF_ERROR(Post(place, microbatch));
  }
  return Pass();
}

absl::Status Transfers::AfterRun(int segment) {
  if (used_[segment].scheduled && !schedule_.empty()) {
    ++position_;
    ORIEL_RETURN_IF_ERROR(PostWhatIsFree());
    if (position_ == program_->schedule_size()) position_ = 0;
  }
  ORIEL_RETURN_IF_ERROR(Pass());
  if (walk_ == nullptr || ++walk_->run < walk_->order.runs.size()) return absl::OkStatus();
  walk_->run = 0;
  walk_->put = 0;
  return absl::OkStatus();
}

// The run that the order has next. Without links there is none.
absl::Status Transfers::BeginWalk(int segment, int64_t microbatch) {
  walk_ = nullptr;
  if (links_.empty()) return absl::OkStatus();
  const std::string& name = program_->segments(segment).name();
  LinkWalk& walk = used_[segment].scheduled ? step_ : eval_;
  const bool is_eval = SegmentKind(name) == "eval";
  if (!used_[segment].scheduled && !is_eval) {
    if (used_[segment].sends.empty() && used_[segment].receives.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "it sends or receives, but the schedule does not say when it runs");
  }
  const TransferOrder::Run& next = walk.order.runs[walk.run];
  if (next.segment != segment || next.microbatch != microbatch) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " of microbatch ", microbatch, " is not what runs next, but ",
                     program_->segments(next.segment).name(), " of microbatch ", next.microbatch));
  }
  walk_ = &walk;
  point_ = next.first_point;
  return absl::OkStatus();
}

// A point of the run: what the order has up to there is put on its links.
absl::Status Transfers::Pass() {
  if (walk_ == nullptr) return absl::OkStatus();
  for (const int end = walk_->order.put[point_++]; walk_->put < end; ++walk_->put) {
    const auto& [segment, instruction, microbatch] = walk_->order.messages[walk_->put];
    const Place place{segment, instruction};
    ORIEL_RETURN_IF_ERROR(AtPlace(transfers_.at(place).Put(microbatch), place));
  }
  return absl::OkStatus();
}

absl::Status Transfers::Send(Transfer& transfer, int64_t microbatch) {
  ORIEL_RETURN_IF_ERROR(transfer.Pack(microbatch));
  if (settle_) ORIEL_RETURN_IF_ERROR(settle_());
  ORIEL_RETURN_IF_ERROR(OnChannel(transfer.Send(*world_, microbatch), transfer));
  return Pass();
}

absl::Status Transfers::Receive(Transfer& transfer, int64_t microbatch) {
  ORIEL_RETURN_IF_ERROR(Pass());
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
