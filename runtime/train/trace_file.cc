#include "runtime/train/trace_file.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/json_util.h"

namespace oriel::runtime {
namespace {

using Json = nlohmann::ordered_json;

// No channel of a plan has it, and all messages of the steps are done.
constexpr int64_t kTag = kMaxTags - 1;

// What processes that read the same steady clock have in common: the machine, since it was booted.
std::string HostName() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (std::getline(file, id)) return id;
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string RunName(const std::string& segment, int64_t microbatch) {
  return segment == kUpdateSegment ? segment : absl::StrCat(segment, " m", microbatch);
}

// Of a collective, or of the wait for one.
const plan::Collective& CollectiveOf(const plan::Segment& segment, int index) {
  const plan::Instruction& instruction = segment.instructions(index);
  return instruction.has_wait() ? segment.instructions(instruction.wait().collective()).collective()
                                : instruction.collective();
}

// "all_reduce a0 a1", "all_reduce a0 of 3"
std::string CollectiveTitle(const plan::Collective& collective) {
  const int tensors = collective.operands_size();
  return absl::StrCat(CollectiveName(collective.kind()), " ", absl::StrJoin(collective.axes(), " "),
                      tensors > 1 ? absl::StrCat(" of ", tensors) : "");
}

// Name and category.
std::pair<std::string, std::string> Title(const plan::Plan& plan, const plan::Program& program,
                                          const TraceSlice& slice) {
  const plan::Segment& segment = program.segments(slice.segment);
  switch (slice.kind) {
    case TraceSlice::Kind::kSegment:
      return {RunName(segment.name(), slice.microbatch), "segment"};
    case TraceSlice::Kind::kReceive:
      return {absl::StrCat("wait ", plan.channels(slice.channel).name()), "receive"};
    case TraceSlice::Kind::kSent:
      return {absl::StrCat("wait until sent ", plan.channels(slice.channel).name()), "send"};
    case TraceSlice::Kind::kWait:
      return {absl::StrCat("wait ", CollectiveTitle(CollectiveOf(segment, slice.instruction))),
              "collective"};
    case TraceSlice::Kind::kStarted:
      return {CollectiveTitle(CollectiveOf(segment, slice.instruction)), "stream"};
    case TraceSlice::Kind::kCollective:
      break;
  }
  return {CollectiveTitle(CollectiveOf(segment, slice.instruction)), "collective"};
}

Json Metadata(const char* name, int64_t thread, Json arguments) {
  return {{"ph", "M"}, {"pid", 0}, {"tid", thread}, {"name", name}, {"args", std::move(arguments)}};
}

double Microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

absl::Status Wait(absl::StatusOr<std::unique_ptr<Message>> message) {
  return message.ok() ? (*message)->Wait() : message.status();
}

}  // namespace

std::string EncodeTrace(const plan::Plan& plan, const plan::Program& program,
                        const TraceClock& clock, const std::vector<TraceSlice>& slices) {
  std::vector<TraceSlice> sorted = slices;  // what holds others before these
  std::stable_sort(sorted.begin(), sorted.end(), [](const TraceSlice& a, const TraceSlice& b) {
    return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
  });
  Json events = Json::array();
  for (const TraceSlice& slice : sorted) {
    const auto [name, category] = Title(plan, program, slice);
    const plan::Segment& segment = program.segments(slice.segment);
    Json arguments = {
        {"segment", segment.name()}, {"microbatch", slice.microbatch}, {"step", slice.step}};
    if (slice.instruction >= 0) {
      const std::string& location = segment.instructions(slice.instruction).location();
      arguments["instruction"] = slice.instruction;
      if (!location.empty()) arguments["location"] = location;
    }
    const int lane = slice.kind == TraceSlice::Kind::kStarted
                         ? CollectiveOf(segment, slice.instruction).stream()
                         : 0;
    events.push_back({{"name", name},
                      {"cat", category},
                      {"lane", lane},
                      {"begin", slice.begin},
                      {"end", slice.end},
                      {"args", std::move(arguments)}});
  }
  const Json trace = {{"host", clock.host}, {"start", clock.start}, {"events", std::move(events)}};
  // Names are those of model files, which may hold any bytes.
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<std::string> FormatTrace(const std::vector<std::string>& ranks) {
  const absl::Status bad = absl::InvalidArgumentError("what a rank sent is not its timeline");
  std::vector<Json> traces;
  std::map<std::string, int64_t> starts;  // by host
  for (const std::string& text : ranks) {
    std::optional<Json> trace = ParseJsonObject<Json>(text.data(), text.data() + text.size());
    if (!trace || !trace->contains("host") || !trace->contains("start") ||
        !trace->contains("events")) {
      return bad;
    }
    const auto start = (*trace)["start"].get<int64_t>();
    const auto [first, is_new] = starts.emplace((*trace)["host"].get<std::string>(), start);
    first->second = std::min(first->second, start);
    traces.push_back(*std::move(trace));
  }
  // Each rank has a thread of its number, and one for each stream, which is shown behind it.
  const auto ranks_count = static_cast<int64_t>(traces.size());
  std::vector<std::set<int64_t>> lanes(traces.size(), {0});
  int64_t most = 0;
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    for (const Json& event : traces[rank]["events"]) {
      lanes[rank].insert(event["lane"].get<int64_t>());
    }
    most = std::max(most, *lanes[rank].rbegin());
  }
  Json events = Json::array({Metadata("process_name", 0, {{"name", "oriel-run"}})});
  for (size_t rank = 0; rank < traces.size(); ++rank) {
    for (const int64_t lane : lanes[rank]) {
      const int64_t thread = static_cast<int64_t>(rank) + lane * ranks_count;
      const std::string name =
          absl::StrCat("rank ", rank, lane > 0 ? absl::StrCat(" stream ", lane) : "");
      const int64_t place = static_cast<int64_t>(rank) * (most + 1) + lane;
      events.push_back(Metadata("thread_name", thread, {{"name", name}}));
      events.push_back(Metadata("thread_sort_index", thread, {{"sort_index", place}}));
    }
    const int64_t start = starts[traces[rank]["host"].get<std::string>()];
    for (Json& event : traces[rank]["events"]) {
      const auto begin = event["begin"].get<int64_t>(), end = event["end"].get<int64_t>();
      Json arguments = {{"rank", rank}};
      arguments.update(event["args"]);
      events.push_back(
          {{"ph", "X"},
           {"pid", 0},
           {"tid", static_cast<int64_t>(rank) + event["lane"].get<int64_t>() * ranks_count},
           {"name", event["name"]},
           {"cat", event["cat"]},
           {"ts", Microseconds(begin - start)},
           {"dur", Microseconds(end - begin)},
           {"args", std::move(arguments)}});
    }
  }
  // A line for each event.
  std::vector<std::string> lines;
  lines.reserve(events.size());
  for (const Json& event : events) lines.push_back(event.dump());
  return absl::StrCat("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n",
                      absl::StrJoin(lines, ",\n"), "\n]}\n");
}

absl::StatusOr<TraceFile> TraceFile::Open(const std::string& path, const plan::Plan& plan,
                                          int64_t rank, Communicator* world) {
  TraceFile trace;
  trace.plan_ = &plan;
  trace.rank_ = rank;
  trace.world_ = world;
  if (rank == 0) {
    ORIEL_ASSIGN_OR_RETURN(trace.file_, AtomicFile::Create(path));
  }
  trace.clock_.host = HostName();
  if (world != nullptr) ORIEL_RETURN_IF_ERROR(world->Barrier());
  trace.clock_.start = TraceNow();
  return trace;
}

absl::Status TraceFile::Write(const plan::Program& program, const std::vector<TraceSlice>& slices) {
  ORIEL_ASSIGN_OR_RETURN(const std::vector<std::string> ranks,
                         Gather(EncodeTrace(*plan_, program, clock_, slices)));
  if (file_ == nullptr) return absl::OkStatus();
  ORIEL_ASSIGN_OR_RETURN(const std::string text, FormatTrace(ranks));
  ORIEL_RETURN_IF_ERROR(file_->Append(text.data(), static_cast<int64_t>(text.size())));
  return file_->Commit();
}

// On rank 0 of all ranks; elsewhere nothing.
absl::StatusOr<std::vector<std::string>> TraceFile::Gather(std::string mine) const {
  std::vector<std::string> ranks;
  auto size = static_cast<int64_t>(mine.size());
  if (rank_ > 0) {
    ORIEL_RETURN_IF_ERROR(Wait(world_->Send(0, kTag, &size, sizeof size)));
    ORIEL_RETURN_IF_ERROR(Wait(world_->Send(0, kTag, mine.data(), size)));
    return ranks;
  }
  ranks.push_back(std::move(mine));
  for (int64_t rank = 1; rank < plan_->world_size(); ++rank) {
    ORIEL_RETURN_IF_ERROR(Wait(world_->Receive(rank, kTag, &size, sizeof size)));
    std::string& text = ranks.emplace_back();
    text.resize(size);
    ORIEL_RETURN_IF_ERROR(Wait(world_->Receive(rank, kTag, text.data(), size)));
  }
  return ranks;
}

}  // namespace oriel::runtime
