#include "passes/simulate/step_simulator.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"

namespace oriel {

namespace {

// Where a program is.
struct Position {
  size_t run = 0;    // of its schedule
  size_t piece = 0;  // of that run's segment
  double now = 0;
  double start = 0;                              // of the run
  std::vector<std::pair<double, double>> waits;  // of the run
};

class Simulator {
 public:
  Simulator(const std::vector<ProgramProfile>& programs, const TransferSeconds& transferSeconds)
      : programs_(programs), transferSeconds_(transferSeconds), positions_(programs.size()) {}

  absl::StatusOr<StepTimeline> run() {
    timeline_.programs.resize(programs_.size());
    if (absl::Status known = readReceivers(); !known.ok()) return known;
    // Times do not depend on the order in which programs are visited: messages of a channel are
    // received in the order in which they were sent.
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t program = 0; program < programs_.size(); ++program) moved |= advance(program);
    }
    for (size_t program = 0; program < programs_.size(); ++program) {
      if (absl::Status ended = checkEnded(program); !ended.ok()) return ended;
      timeline_.seconds = std::max(timeline_.seconds, positions_[program].now);
    }
    for (ProgramTimeline& program : timeline_.programs) {
      const double waiting = timeline_.seconds - program.computing - program.communicating;
      // Of a sum of many runs, what rounding leaves is nothing.
      program.waiting = waiting < 1e-12 * timeline_.seconds ? 0 : waiting;
    }
    return std::move(timeline_);
  }

 private:
  absl::Status readReceivers() {
    for (size_t i = 0; i < programs_.size(); ++i) {
      for (const ScheduledRun& run : programs_[i].schedule) {
        if (programs_[i].segments.count(run.segment) == 0) {
          return absl::NotFoundError(absl::StrCat("the schedule of program '", programs_[i].name,
                                                  "' runs the segment '", run.segment,
                                                  "', which it does not have"));
        }
      }
      for (const auto& [name, pieces] : programs_[i].segments) {
        for (const SegmentPiece& piece : pieces) {
          if (piece.kind == SegmentPiece::Kind::kReceive) receiver_[piece.channel] = i;
        }
      }
    }
    return absl::OkStatus();
  }

  const std::vector<SegmentPiece>& piecesOf(size_t program, size_t run) const {
    const ProgramProfile& profile = programs_[program];
    return profile.segments.at(profile.schedule[run].segment);
  }

  // Up to a receive of what has not been sent. Whether it got anywhere.
  bool advance(size_t program) {
    Position& at = positions_[program];
    bool moved = false;
    while (at.run < programs_[program].schedule.size()) {
      const std::vector<SegmentPiece>& pieces = piecesOf(program, at.run);
      if (at.piece == 0) at.start = at.now;
      for (; at.piece < pieces.size(); ++at.piece, moved = true) {
        if (!step(program, pieces[at.piece])) return moved;
      }
      timeline_.programs[program].runs.push_back(
          {programs_[program].schedule[at.run], at.start, at.now, std::move(at.waits)});
      at.waits.clear();
      ++at.run;
      at.piece = 0;
      moved = true;
    }
    return moved;
  }

  bool step(size_t program, const SegmentPiece& piece) {
    Position& at = positions_[program];
    switch (piece.kind) {
      case SegmentPiece::Kind::kRun: {
        const double computing = piece.computing * programs_[program].slowdown;
        at.now += computing + piece.waiting;
        timeline_.programs[program].computing += computing;
        timeline_.programs[program].communicating += piece.waiting;
        return true;
      }
      case SegmentPiece::Kind::kSend: {
        auto receiver = receiver_.find(piece.channel);
        if (receiver == receiver_.end()) return true;  // nobody waits for it
        double& free = linkFree_[{program, receiver->second}];
        free = std::max(free, at.now) + transferSeconds_(program, receiver->second, piece.bytes);
        inFlight_[piece.channel].push_back(free);
        return true;
      }
      case SegmentPiece::Kind::kReceive: {
        std::deque<double>& arrivals = inFlight_[piece.channel];
        if (arrivals.empty()) return false;
        if (arrivals.front() > at.now) {
          at.waits.emplace_back(at.now, arrivals.front());
          at.now = arrivals.front();
        }
        arrivals.pop_front();
        return true;
      }
    }
    return true;
  }

  absl::Status checkEnded(size_t program) const {
    const Position& at = positions_[program];
    const ProgramProfile& profile = programs_[program];
    if (at.run == profile.schedule.size()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("program '", profile.name, "' waits for ever in its run ", at.run + 1, " of ",
                     profile.schedule.size(), " ('", profile.schedule[at.run].segment,
                     "', microbatch ", profile.schedule[at.run].microbatch, ") for the channel '",
                     piecesOf(program, at.run)[at.piece].channel, "'"));
  }

  const std::vector<ProgramProfile>& programs_;
  const TransferSeconds& transferSeconds_;
  std::vector<Position> positions_;
  std::map<std::string, size_t> receiver_;                // by channel
  std::map<std::string, std::deque<double>> inFlight_;    // when they arrive, by channel
  std::map<std::pair<size_t, size_t>, double> linkFree_;  // when one can carry the next
  StepTimeline timeline_;
};

}  // namespace

double StepTimeline::bubble() const {
  double least = seconds;
  for (const ProgramTimeline& program : programs) least = std::min(least, program.waiting);
  return seconds > 0 ? least / seconds : 0;
}

absl::StatusOr<StepTimeline> simulateStep(const std::vector<ProgramProfile>& programs,
                                          const TransferSeconds& transferSeconds) {
  return Simulator(programs, transferSeconds).run();
}

}  // namespace oriel
