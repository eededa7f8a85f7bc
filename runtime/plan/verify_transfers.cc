// What is sent between grids arrives where and when it should, and no rank waits for ever.
//
// Deadlock freedom is shown by one run of a machine that has a process for each program. A process
// goes through its schedule and
//
//  - before a run begins, waits until what it sent from the copies that the run uses is done;
//  - at a Send starts to send, and goes on. A send is done at the earliest when its receive is
//    posted, and that is when it counts as done here: so none of them needs a buffer in between;
//  - at a Receive waits until it has been sent. Receives are posted when their copies are free: at
//    the start of the step, or at the end of the last run before that used the copy.
//
// A process never has a choice, and what one waits for, nothing that another does takes away: once
// it may go on it may for good. In such a machine (a marked graph) every order of events ends in
// the same state, so one run that comes to its end proves that all do, whatever their timing.
//
// A process stands for all ranks of its grid. They run the same instructions, so a run of the
// machine is one of the ranks, in which those of a grid go on together: there a collective finds
// its whole group at the same place (its other conditions are checked in verify_collectives.cc), on
// a communication stream too, which needs nothing of other grids, so that no wait for one is held
// up; a receive finds all its parts sent once the whole other grid has sent, and a send all its
// receivers. Again every other order ends like this one.
//
// At the end of the step all receives have been posted, so every send is done or will be without
// anyone's help: steps, and runs of eval between them, can follow each other. In eval a receive may
// be posted late, when its segment begins; posts that are earlier let others only go on sooner.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>

#include "absl/strings/str_join.h"
#include "runtime/plan/access.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

// Transfers and copies that are followed.
constexpr int64_t kMaxEvents = 30'000'000;

struct Transfer {
  bool sends;
  int instruction;
  int channel;
  int ring;
};

// The part of a segment that has to do with other grids.
struct Outline {
  std::vector<int> rings;  // that it uses
  std::vector<Transfer> transfers;
};

struct Run {
  int segment;
  int64_t microbatch;
};

struct ProgramOutline {
  std::vector<int64_t> copies;  // of each ring
  std::vector<Outline> segments;
};

// The runs of a program, and which channels it becomes ready to receive (once for each mention).
struct Stream {
  std::vector<Run> runs;
  std::vector<int> posts_at_start;
  std::vector<std::vector<int>> posts_at_begin;  // of each run
  std::vector<std::vector<int>> posts_at_end;
};

// What goes over a channel: the microbatches, in order.
struct Traffic {
  std::vector<int64_t> sent;
  std::vector<int64_t> received;
};

class OutlineBuilder {
 public:
  OutlineBuilder(const plan::Plan& plan, int index, Problems& problems)
      : plan_(plan), index_(index), program_(plan.programs(index)), problems_(problems) {}

  // None if a problem was found.
  std::optional<ProgramOutline> Build() {
    std::map<Key, int> rings;
    ProgramOutline outline;
    for (const plan::Buffer& buffer : program_.buffers()) {
      if (buffer.kind() != plan::TRANSFER) continue;
      if (rings.emplace(KeyOf(buffer), outline.copies.size()).second) {
        outline.copies.push_back(CopiesOf(buffer));
      }
    }
    // Others in the same memory are views.
    for (const plan::Buffer& buffer : program_.buffers()) {
      const auto found = rings.find(KeyOf(buffer));
      ring_of_.push_back(found == rings.end() ? -1 : found->second);
    }
    uses_.resize(outline.copies.size());
    for (int i = 0; i < program_.segments_size(); ++i) {
      outline.segments.push_back(OutlineOf(i));
    }
    return valid_ ? std::optional(std::move(outline)) : std::nullopt;
  }

 private:
  using Key = std::pair<std::vector<int64_t>, int64_t>;  // offsets of the copies, bytes of one
  struct Use {
    bool sent = false;
    bool received = false;
  };

  static Key KeyOf(const plan::Buffer& buffer) {
    std::vector<int64_t> offsets = {buffer.offset()};
    offsets.insert(offsets.end(), buffer.copy_offsets().begin(), buffer.copy_offsets().end());
    return {std::move(offsets), *CheckedBytes(buffer.local())};
  }

  template <typename... Parts>
  void Refuse(int segment, int instruction, const Parts&... parts) {
    problems_.Add(InstructionPath(plan_, index_, segment, instruction), parts...);
    valid_ = false;
  }

  std::string Name(int buffer) const { return BufferName(program_.buffers(buffer)); }

  Outline OutlineOf(int segment) {
    Outline outline;
    std::set<int> used, sent;
    for (int i = 0; i < program_.segments(segment).instructions_size(); ++i) {
      const plan::Instruction& instruction = program_.segments(segment).instructions(i);
      const Access access = AccessOf(instruction);
      // Its data may come at any time before.
      for (const int write : access.writes) {
        const int ring = ring_of_[write];
        if (ring >= 0 && sent.count(ring) > 0) {
          Refuse(segment, i, " writes ", Name(write), ", which is being sent");
        }
        if (ring >= 0 && instruction.has_receive() && used.count(ring) > 0) {
          Refuse(segment, i, " receives ", Name(write), ", which the segment has used before");
        }
      }
      for (const auto* accessed : {&access.reads, &access.writes}) {
        for (const int buffer : *accessed) {
          if (ring_of_[buffer] >= 0) used.insert(ring_of_[buffer]);
        }
      }
      if (instruction.has_send()) {
        const int buffer = instruction.send().buffer();
        sent.insert(ring_of_[buffer]);
        Mark(segment, i, buffer, &Use::sent);
        outline.transfers.push_back({true, i, instruction.send().channel(), ring_of_[buffer]});
      }
      if (instruction.has_receive()) {
        const int buffer = instruction.receive().buffer();
        Mark(segment, i, buffer, &Use::received);
        outline.transfers.push_back({false, i, instruction.receive().channel(), ring_of_[buffer]});
      }
    }
    outline.rings.assign(used.begin(), used.end());
    return outline;
  }

  // A rank gets ready to receive into a copy without a look at what it sends from there.
  void Mark(int segment, int instruction, int buffer, bool Use::*how) {
    Use& use = uses_[ring_of_[buffer]];
    use.*how = true;
    if (use.sent && use.received) {
      Refuse(segment, instruction, ": ", Name(buffer), " is both received and sent");
    }
  }

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  Problems& problems_;
  bool valid_ = true;
  std::vector<int> ring_of_;  // by buffer; -1: nothing that is transferred
  std::vector<Use> uses_;     // by ring
};

class TransferVerifier {
 public:
  TransferVerifier(const plan::Plan& plan, Problems& problems) : plan_(plan), problems_(problems) {}

  void Verify() {
    program_of_grid_.assign(plan_.grids_size(), -1);
    for (int i = 0; i < plan_.programs_size(); ++i) {
      program_of_grid_[GridIndexOf(plan_, plan_.programs(i).first_rank())] = i;
      auto outline = OutlineBuilder(plan_, i, problems_).Build();
      if (outline) outlines_.push_back(*std::move(outline));
    }
    if (static_cast<int>(outlines_.size()) < plan_.programs_size()) return;
    for (const bool eval : {false, true}) {
      streams_.clear();
      traffic_.assign(plan_.channels_size(), {});
      bool valid = true;
      for (int i = 0; i < plan_.programs_size(); ++i) {
        streams_.push_back({eval ? EvalRuns(i) : StepRuns(i), {}, {}, {}});
        valid = valid && AddTraffic(i, eval);
      }
      if (valid && TrafficMatches()) Simulate();
    }
  }

 private:
  const plan::Segment& segment(int program, int index) const {
    return plan_.programs(program).segments(index);
  }

  std::vector<Run> StepRuns(int program) const {
    std::map<std::string, int> by_name;
    for (int i = 0; i < plan_.programs(program).segments_size(); ++i) {
      by_name[segment(program, i).name()] = i;
    }
    std::vector<Run> runs;
    for (const auto& entry : plan_.programs(program).schedule()) {
      runs.push_back({by_name[entry.segment()], entry.microbatch()});
    }
    return runs;
  }

  std::vector<Run> EvalRuns(int program) const {
    std::map<int64_t, int> by_stage;
    for (int i = 0; i < plan_.programs(program).segments_size(); ++i) {
      const std::string& name = segment(program, i).name();
      if (SegmentKind(name) == "eval") by_stage[SegmentStage(name).value_or(0)] = i;
    }
    std::vector<Run> runs;
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
      const Outline& segment = outline.segments[index];
      events_ += segment.rings.size() + segment.transfers.size();
      if (events_ > kMaxEvents) {
        problems_.Add("program ", program, ": its schedule has too many transfers to be verified");
        return false;
      }
      for (const Transfer& transfer : segment.transfers) {
        Traffic& traffic = traffic_[transfer.channel];
        (transfer.sends ? traffic.sent : traffic.received).push_back(microbatch);
        if (transfer.sends) continue;
        if (eval) {
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
      const auto& [sent, received] = traffic_[i];
      if (sent == received) continue;
      matches = false;
      const std::string channel = absl::StrCat("channel '", plan_.channels(i).name(), "'");
      if (sent.size() != received.size()) {
        problems_.Add(channel, " is sent ", sent.size(), " times and received ", received.size(),
                      " times");
        continue;
      }
      const auto first = std::mismatch(sent.begin(), sent.end(), received.begin());
      problems_.Add(channel, ": what is sent as number ", first.first - sent.begin(),
                    " is of microbatch ", *first.first, ", but what is received is of microbatch ",
                    *first.second);
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
    // What it waits for.
    int channel = -1;
    size_t number = 0;
    int instruction = -1;  // -1: before the run begins
  };

  void Simulate() {
    sent_.assign(plan_.channels_size(), 0);
    received_.assign(plan_.channels_size(), 0);
    posted_.assign(plan_.channels_size(), 0);
    processes_.assign(plan_.programs_size(), {});
    for (int i = 0; i < plan_.programs_size(); ++i) {
      for (const int channel : streams_[i].posts_at_start) ++posted_[channel];
      Wake(i);
    }
    while (!queue_.empty()) {
      const int program = queue_.front();
      queue_.pop_front();
      processes_[program].queued = false;
      Advance(program);
    }
    for (int i = 0; i < plan_.programs_size(); ++i) {
      if (!Finished(i)) return ReportDeadlock(i);
    }
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
  void Post(int channel) {
    ++posted_[channel];
    Wake(Sender(channel));
  }

  // As far as it can go.
  void Advance(int program) {
    Process& process = processes_[program];
    Stream& stream = streams_[program];
    const ProgramOutline& outline = outlines_[program];
    for (; !Finished(program); ++process.run, process.begun = false, process.next = 0) {
      const auto& [index, microbatch] = stream.runs[process.run];
      const Outline& segment = outline.segments[index];
      if (!process.begun) {
        for (const int ring : segment.rings) {
          const auto pending = process.pending.find({ring, microbatch % outline.copies[ring]});
          if (pending == process.pending.end()) continue;
          for (const auto& [channel, number] : pending->second) {
            if (posted_[channel] <= number) return Wait(process, channel, number, -1);
          }
          process.pending.erase(pending);
        }
        for (const int channel : stream.posts_at_begin[process.run]) Post(channel);
        process.begun = true;
      }
      for (; process.next < segment.transfers.size(); ++process.next) {
        const Transfer& transfer = segment.transfers[process.next];
        if (transfer.sends) {
          process.pending[{transfer.ring, microbatch % outline.copies[transfer.ring]}].push_back(
              {transfer.channel, sent_[transfer.channel]++});
          Wake(Receiver(transfer.channel));
        } else if (sent_[transfer.channel] <= received_[transfer.channel]) {
          return Wait(process, transfer.channel, received_[transfer.channel], transfer.instruction);
        } else {
          ++received_[transfer.channel];
        }
      }
      for (const int channel : stream.posts_at_end[process.run]) Post(channel);
    }
  }

  static void Wait(Process& process, int channel, size_t number, int instruction) {
    process.channel = channel;
    process.number = number;
    process.instruction = instruction;
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
                          "' of microbatch ", traffic_[process.channel].sent[process.number]);
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
  std::vector<size_t> sent_, received_, posted_;  // by channel: how many
};

}  // namespace

void VerifyTransfers(const plan::Plan& plan, Problems& problems) {
  if (!plan.channels().empty()) TransferVerifier(plan, problems).Verify();
}

}  // namespace oriel::runtime
