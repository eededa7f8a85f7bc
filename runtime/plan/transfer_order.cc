#include "runtime/plan/transfer_order.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/transfer_outline.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

// Transfers and copies that are followed.
constexpr int64_t kMaxEvents = 30'000'000;
constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();  // behind all times

using Message = TransferOrder::Message;

struct RunEntry {
  int segment;
  int64_t microbatch;
};

// The runs of a program, and which channels it becomes ready to receive (once for each mention).
struct Stream {
  std::vector<RunEntry> runs;
  std::vector<int> posts_at_start;
  std::vector<std::vector<int>> posts_at_begin;  // of each run
  std::vector<std::vector<int>> posts_at_end;
  int update = 0;  // the first run that is not before it
};

// What goes over a channel, in order.
struct Traffic {
  std::vector<Message> sent;
  std::vector<Message> received;
  // Of the latter: whether its Send, or its post and its Receive, are before the update.
  std::vector<bool> sent_before, posted_before, received_before;
};

class TransferMachine {
 public:
  TransferMachine(const plan::Plan& plan, Problems& problems) : plan_(plan), problems_(problems) {}

  std::optional<TransferOrder> Run(bool eval) {
    program_of_grid_.assign(plan_.grids_size(), -1);
    for (int i = 0; i < plan_.programs_size(); ++i) {
      program_of_grid_[GridIndexOf(plan_, plan_.programs(i).first_rank())] = i;
      auto outline = OutlineTransfers(plan_, i, problems_);
      if (outline) outlines_.push_back(*std::move(outline));
    }
    if (static_cast<int>(outlines_.size()) < plan_.programs_size()) return std::nullopt;
    traffic_.assign(plan_.channels_size(), {});
    for (int i = 0; i < plan_.programs_size(); ++i) {
      streams_.push_back({eval ? EvalRuns(i) : StepRuns(i), {}, {}, {}, 0});
      for (const RunEntry& run : streams_[i].runs) {
        if (PlainKind(segment(i, run.segment).name()) == kUpdateSegment) break;
        ++streams_[i].update;
      }
      if (!AddTraffic(i, eval)) return std::nullopt;
    }
    if (!TrafficMatches() || !Simulate()) return std::nullopt;
    return Order();
  }

 private:
  const plan::Segment& segment(int program, int index) const {
    return plan_.programs(program).segments(index);
  }

  std::vector<RunEntry> StepRuns(int program) const {
    std::map<std::string, int> by_name;
    for (int i = 0; i < plan_.programs(program).segments_size(); ++i) {
      by_name[segment(program, i).name()] = i;
    }
    std::vector<RunEntry> runs;
    for (const auto& entry : plan_.programs(program).schedule()) {
      runs.push_back({by_name[entry.segment()], entry.microbatch()});
    }
    return runs;
  }

  std::vector<RunEntry> EvalRuns(int program) const {
    std::map<int64_t, int> by_stage;
    for (int i = 0; i < plan_.programs(program).segments_size(); ++i) {
      const std::string& name = segment(program, i).name();
      if (SegmentKind(name) == "eval") by_stage[SegmentStage(name).value_or(0)] = i;
    }
    std::vector<RunEntry> runs;
    for (const auto& [unused, index] : by_stage) runs.push_back({index, 0});
    return runs;
  }

  // False if a problem was found.
  bool AddTraffic(int program, bool eval) {
    const ProgramOutline& outline = outlines_[program];
    Stream& stream = streams_[program];
    stream.posts_at_begin.resize(stream.runs.size());
    stream.posts_at_end.resize(stream.runs.size());
    std::map<std::pair<int, int64_t>, int> last_use;  // of a ring's copy: which run
    std::map<int, int> last_post;                     // of a channel
    for (int run = 0; run < static_cast<int>(stream.runs.size()); ++run) {
      const auto& [index, microbatch] = stream.runs[run];
      const SegmentOutline& segment = outline.segments[index];
      events_ += segment.rings.size() + segment.transfers.size();
      if (events_ > kMaxEvents) {
        problems_.Add("program ", program, ": its schedule has too many transfers to be verified");
        return false;
      }
      for (const OutlinedTransfer& transfer : segment.transfers) {
        Traffic& traffic = traffic_[transfer.channel];
        (transfer.sends ? traffic.sent : traffic.received)
            .push_back({index, transfer.instruction, microbatch});
        (transfer.sends ? traffic.sent_before : traffic.received_before)
            .push_back(run < stream.update);
        if (transfer.sends) continue;
        if (eval) {
          traffic.posted_before.push_back(true);
          stream.posts_at_begin[run].push_back(transfer.channel);
          continue;
        }
        const auto used =
            last_use.find({transfer.ring, microbatch % outline.copies[transfer.ring]});
        const int post = used == last_use.end() ? -1 : used->second;
        const auto [last, first] = last_post.emplace(transfer.channel, post);
        if (post < last->second) {
          problems_.Add(
              InstructionPath(plan_, program, index, transfer.instruction), ": in microbatch ",
              microbatch, " '", plan_.channels(transfer.channel).name(),
              "' could be received before that of the microbatch before it in the schedule");
          return false;
        }
        last->second = post;
        traffic.posted_before.push_back(post < stream.update);
        (post < 0 ? stream.posts_at_start : stream.posts_at_end[post]).push_back(transfer.channel);
      }
      for (const int ring : segment.rings)
        last_use[{ring, microbatch % outline.copies[ring]}] = run;
    }
    return true;
  }

  bool TrafficMatches() {
    bool matches = true;
    for (int i = 0; i < plan_.channels_size(); ++i) {
      const std::vector<Message>& sent = traffic_[i].sent;
      const std::vector<Message>& received = traffic_[i].received;
      const std::string channel = absl::StrCat("channel '", plan_.channels(i).name(), "'");
      if (sent.size() != received.size()) {
        matches = false;
        problems_.Add(channel, " is sent ", sent.size(), " times and received ", received.size(),
                      " times");
        continue;
      }
      const auto first = std::mismatch(
          sent.begin(), sent.end(), received.begin(),
          [](const Message& a, const Message& b) { return a.microbatch == b.microbatch; });
      if (first.first == sent.end()) continue;
      matches = false;
      problems_.Add(channel, ": what is sent as number ", first.first - sent.begin(),
                    " is of microbatch ", first.first->microbatch,
                    ", but what is received is of microbatch ", first.second->microbatch);
    }
    return matches;
  }

  // A program on its way through its stream.
  struct Process {
    int run = 0;
    bool begun = false;
    size_t next = 0;  // of the segment's transfers
    // What was sent from a ring's copy and may not be done: channel and number.
    std::map<std::pair<int, int64_t>, std::vector<std::pair<int, size_t>>> pending;
    bool queued = false;
    // An instruction takes one unit of time, and so does what is between runs: two points of a
    // process never have the same time.
    int64_t clock = 0;
    int passed = 0;               // instructions of the run
    std::vector<int64_t> points;  // when each was passed
    std::vector<int> first_points;
    // What it waits for.
    int channel = -1;
    size_t number = 0;
    int instruction = -1;  // -1: before the run begins
  };

  // False if ranks would wait for ever.
  bool Simulate() {
    sent_.assign(plan_.channels_size(), {});
    received_.assign(plan_.channels_size(), 0);
    posted_.assign(plan_.channels_size(), {});
    processes_.assign(plan_.programs_size(), {});
    waited_before_.clear();
    for (int i = 0; i < plan_.programs_size(); ++i) {
      for (const int channel : streams_[i].posts_at_start) posted_[channel].push_back(0);
      Wake(i);
    }
    while (!queue_.empty()) {
      const int program = queue_.front();
      queue_.pop_front();
      processes_[program].queued = false;
      Advance(program);
    }
    for (int i = 0; i < plan_.programs_size(); ++i) {
      if (Finished(i)) continue;
      ReportDeadlock(i);
      return false;
    }
    return true;
  }

  bool Finished(int program) const {
    return processes_[program].run == static_cast<int>(streams_[program].runs.size());
  }

  void Wake(int program) {
    if (processes_[program].queued) return;
    processes_[program].queued = true;
    queue_.push_back(program);
  }
  int Sender(int channel) const { return program_of_grid_[plan_.channels(channel).source_grid()]; }
  int Receiver(int channel) const {
    return program_of_grid_[plan_.channels(channel).target_grid()];
  }
  void Post(int channel, int64_t time) {
    posted_[channel].push_back(time);
    Wake(Sender(channel));
  }
  // When both sides are there.
  int64_t MeetingTime(int channel, size_t number) const {
    return std::max(sent_[channel][number], posted_[channel][number]);
  }

  // As far as it can go.
  void Advance(int program) {
    Process& process = processes_[program];
    Stream& stream = streams_[program];
    const ProgramOutline& outline = outlines_[program];
    for (; !Finished(program); ++process.run, process.begun = false, process.next = 0) {
      const auto& [index, microbatch] = stream.runs[process.run];
      const SegmentOutline& segment = outline.segments[index];
      if (!process.begun) {
        for (const int ring : segment.rings) {
          const auto pending = process.pending.find({ring, microbatch % outline.copies[ring]});
          if (pending == process.pending.end()) continue;
          for (const auto& [channel, number] : pending->second) {
            if (posted_[channel].size() <= number) return Wait(process, channel, number, -1);
            process.clock = std::max(process.clock, MeetingTime(channel, number));
            if (process.run < stream.update) waited_before_.insert({channel, number});
          }
          process.pending.erase(pending);
        }
        process.first_points.push_back(static_cast<int>(process.points.size()));
        process.points.push_back(process.clock);
        process.points.push_back(++process.clock);
        for (const int channel : stream.posts_at_begin[process.run]) Post(channel, process.clock);
        process.begun = true;
        process.passed = 0;
      }
      for (; process.next < segment.transfers.size(); ++process.next) {
        const OutlinedTransfer& transfer = segment.transfers[process.next];
        const int channel = transfer.channel;
        if (!transfer.sends && sent_[channel].size() <= received_[channel]) {
          return Wait(process, channel, received_[channel], transfer.instruction);
        }
        process.clock += transfer.instruction + 1 - process.passed;
        process.passed = transfer.instruction + 1;
        if (transfer.sends) {
          process.pending[{transfer.ring, microbatch % outline.copies[transfer.ring]}].push_back(
              {channel, sent_[channel].size()});
          sent_[channel].push_back(process.clock);
          Wake(Receiver(channel));
        } else {
          process.clock = std::max(process.clock, MeetingTime(channel, received_[channel]++));
        }
        process.points.push_back(process.clock);
      }
      process.clock += this->segment(program, index).instructions_size() + 1 - process.passed;
      for (const int channel : stream.posts_at_end[process.run]) Post(channel, process.clock);
      process.points.push_back(process.clock++);
    }
  }

  static void Wait(Process& process, int channel, size_t number, int instruction) {
    process.channel = channel;
    process.number = number;
    process.instruction = instruction;
  }

  enum class Phase : uint8_t { kBefore, kBehind, kNone };
  // Before or behind the moment before the update at which ranks may meet: what a rank waits for
  // before, it has to get before. None: there is no such moment, for it depends on what is behind.
  Phase PhaseOf(int channel, size_t number) const {
    const Traffic& traffic = traffic_[channel];
    const bool needed =
        traffic.received_before[number] || waited_before_.count({channel, number}) > 0;
    if (!needed) return Phase::kBehind;
    return traffic.sent_before[number] && traffic.posted_before[number] ? Phase::kBefore
                                                                        : Phase::kNone;
  }

  // Of what was simulated. Messages that meet at the same time are in the order of channels, for
  // all programs alike.
  TransferOrder Order() const {
    using Time = std::pair<Phase, int64_t>;
    struct Meeting {
      Time time;
      int channel;
      int number;
      bool operator<(const Meeting& other) const {
        return std::tie(time, channel, number) < std::tie(other.time, other.channel, other.number);
      }
    };
    std::vector<Meeting> meetings;
    bool has_phases = true;
    for (int channel = 0; channel < plan_.channels_size(); ++channel) {
      for (size_t i = 0; i < sent_[channel].size(); ++i) {
        const Phase phase = PhaseOf(channel, i);
        has_phases = has_phases && phase != Phase::kNone;
        meetings.push_back({{phase, MeetingTime(channel, i)}, channel, static_cast<int>(i)});
      }
    }
    for (Meeting& meeting : meetings) {
      if (!has_phases) meeting.time.first = Phase::kBefore;
    }
    std::sort(meetings.begin(), meetings.end());
    TransferOrder order;
    order.programs.resize(plan_.programs_size());
    std::vector<std::vector<Time>> times(plan_.programs_size());  // of each program's messages
    for (const auto& [time, channel, number] : meetings) {
      const Traffic& traffic = traffic_[channel];
      order.programs[Sender(channel)].messages.push_back(traffic.sent[number]);
      times[Sender(channel)].push_back(time);
      order.programs[Receiver(channel)].messages.push_back(traffic.received[number]);
      times[Receiver(channel)].push_back(time);
    }
    for (int i = 0; i < plan_.programs_size(); ++i) {
      const Process& process = processes_[i];
      TransferOrder::Program& program = order.programs[i];
      for (size_t run = 0; run < process.first_points.size(); ++run) {
        const auto& [segment, microbatch] = streams_[i].runs[run];
        program.runs.push_back({segment, microbatch, process.first_points[run]});
      }
      const int update = streams_[i].update;
      const int update_point = update < static_cast<int>(process.first_points.size())
                                   ? process.first_points[update]
                                   : static_cast<int>(process.points.size());
      for (int point = 0; point < static_cast<int>(process.points.size()); ++point) {
        Time time{point < update_point || !has_phases ? Phase::kBefore : Phase::kBehind,
                  process.points[point]};
        // The last point before the update, when the ranks may meet.
        if (has_phases && point + 1 == update_point) time.second = kEnd;
        const auto behind = std::upper_bound(times[i].begin(), times[i].end(), time);
        program.put.push_back(static_cast<int>(behind - times[i].begin()));
      }
      if (!program.put.empty()) program.put.back() = static_cast<int>(program.messages.size());
    }
    return order;
  }

  // Whoever is not finished waits, and for one that is not either: the traffic matches.
  void ReportDeadlock(int program) {
    std::vector<int> path;
    while (std::find(path.begin(), path.end(), program) == path.end()) {
      path.push_back(program);
      const Process& process = processes_[program];
      program = process.instruction < 0 ? Receiver(process.channel) : Sender(process.channel);
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), program));
    std::vector<std::string> waits;
    for (const int each : path) waits.push_back(WaitText(each));
    problems_.Add("the ranks would wait for each other for ever: ", absl::StrJoin(waits, "; "));
  }

  // "rank 3", "ranks 4 to 7"
  std::string Ranks(int program) const {
    const int64_t first = plan_.programs(program).first_rank();
    const int64_t count = plan_.programs(program).rank_count();
    return count == 1 ? absl::StrCat("rank ", first)
                      : absl::StrCat("ranks ", first, " to ", first + count - 1);
  }

  std::string WaitText(int program) const {
    const Process& process = processes_[program];
    const auto& [index, microbatch] = streams_[program].runs[process.run];
    const std::string run =
        absl::StrCat(segment(program, index).name(), " of microbatch ", microbatch);
    const std::string& channel = plan_.channels(process.channel).name();
    if (process.instruction < 0) {
      return absl::StrCat(Ranks(program), ", before ", run, ", for ",
                          Ranks(Receiver(process.channel)), " to take '", channel,
                          "' of microbatch ",
                          traffic_[process.channel].sent[process.number].microbatch);
    }
    return absl::StrCat(Ranks(program), ", in ", run, ", instruction ", process.instruction,
                        " (receive), for '", channel, "' from ", Ranks(Sender(process.channel)));
  }

  const plan::Plan& plan_;
  Problems& problems_;
  std::vector<int> program_of_grid_;
  std::vector<ProgramOutline> outlines_;  // of each program
  std::vector<Stream> streams_;           // likewise
  std::vector<Traffic> traffic_;          // of each channel
  int64_t events_ = 0;

  std::vector<Process> processes_;
  std::deque<int> queue_;
  std::vector<std::vector<int64_t>> sent_, posted_;  // by channel: when
  std::vector<size_t> received_;                     // by channel: how many
  // Sends, by channel and number, that their ranks wait for before the update.
  std::set<std::pair<int, size_t>> waited_before_;
};

}  // namespace

std::optional<TransferOrder> OrderTransfers(const plan::Plan& plan, bool eval, Problems& problems) {
  return TransferMachine(plan, problems).Run(eval);
}

absl::StatusOr<TransferOrder> OrderTransfers(const plan::Plan& plan, bool eval) {
  Problems problems;
  std::optional<TransferOrder> order = OrderTransfers(plan, eval, problems);
  if (!order) return problems.ToStatus();
  return *std::move(order);
}

}  // namespace oriel::runtime
