#include "passes/simulate/repeat_grids.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "llvm/ADT/StringRef.h"
#include "passes/strategize/schedule.h"

namespace oriel {

namespace {

using Kind = SegmentPiece::Kind;

// Between a stage and the next, towards the next or from it.
struct Boundary {
  bool isForward;
  int64_t stage;

  friend bool operator<(const Boundary& a, const Boundary& b) {
    return std::tie(a.isForward, a.stage) < std::tie(b.isForward, b.stage);
  }
  std::string text() const {
    return (isForward ? "forward " : "backward ") + std::to_string(stage);
  }
};

bool isForward(const std::string& segment) {
  return llvm::StringRef(segment).starts_with("forward");
}

Boundary boundaryOf(const std::string& segment, int64_t stage, Kind kind) {
  const bool forward = isForward(segment);
  return {forward, forward == (kind == Kind::kSend) ? stage : stage - 1};
}

// "forward.12.p3" after "forward.2.p3".
bool isEarlier(const std::string& a, const std::string& b) {
  return std::pair(a.size(), a) < std::pair(b.size(), b);
}

class Repeater {
 public:
  Repeater(const std::vector<ProgramCost>& compiled, const RepeatedGrids& repeated)
      : compiled_(compiled), repeated_(repeated) {}

  std::optional<std::vector<ProgramCost>> run() {
    if (!readChannels()) return std::nullopt;
    const std::optional<PipelineSchedule> schedule = this->schedule();
    if (!schedule) return std::nullopt;
    std::vector<ProgramCost> programs;
    for (int64_t grid = 0; grid < repeated_.grids(); ++grid) {
      programs.push_back(programOf(grid, (*schedule)[grid]));
      programs.back().cachedBytes = cachedBytesOn(grid);
      programs.back().bytes = bytesOn(grid);
    }
    return isWhole(programs) ? std::optional(std::move(programs)) : std::nullopt;
  }

  std::optional<std::vector<ScheduledRun>> onKept(int64_t grid) const {
    const std::optional<PipelineSchedule> schedule = this->schedule();
    if (!schedule) return std::nullopt;
    const int64_t kept = repeated_.keptOf[grid];
    std::vector<StageRun> runs = (*schedule)[grid];
    for (StageRun& run : runs) run.stage = run.stage / repeated_.grids() * keptGrids() + kept;
    ProgramCost program = compiled_[kept];
    setSchedule(runs, &program);
    return program.profile.schedule;
  }

  // Of the same grids.
  std::optional<std::vector<ProgramCost>> runMicrobatches() {
    const std::optional<PipelineSchedule> schedule = this->schedule();
    if (!schedule) return std::nullopt;
    std::vector<ProgramCost> programs = compiled_;
    for (int64_t grid = 0; grid < repeated_.grids(); ++grid) {
      setSchedule((*schedule)[grid], &programs[grid]);
      programs[grid].cachedBytes = cachedBytesOn(grid);
      programs[grid].bytes = bytesOn(grid);
    }
    return programs;
  }

 private:
  int64_t keptGrids() const { return static_cast<int64_t>(repeated_.kept.size()); }
  int64_t keptGridOf(int64_t keptStage) const { return keptStage % keptGrids(); }

  // False if a segment exchanges values with another stage than the one before and behind it.
  bool readChannels() {
    for (size_t program = 0; program < compiled_.size(); ++program) {
      for (const auto& [segment, pieces] : compiled_[program].profile.segments) {
        const std::optional<int64_t> stage = stageOfSegment(segment);
        if (!stage) continue;
        for (const SegmentPiece& piece : pieces) {
          if (piece.kind == Kind::kRun) continue;
          const Boundary boundary = boundaryOf(segment, *stage, piece.kind);
          const int64_t other = boundary.stage == *stage ? *stage + 1 : *stage - 1;
          if (other < 0 || keptGridOf(other) != static_cast<int64_t>(piece.peer)) return false;
          channels_[boundary].insert(piece.channel);
        }
      }
    }
    return true;
  }

  // Of the whole pipeline.
  std::optional<PipelineSchedule> schedule() const {
    const int64_t grids = repeated_.grids();
    PipelineShape shape;
    shape.grids = grids;
    shape.microbatches = repeated_.microbatches;
    for (int64_t stage = 0; stage < grids * repeated_.interleave; ++stage) {
      const int64_t kept = repeated_.keptOf[stage % grids];
      const int64_t keptStage = stage / grids * keptGrids() + kept;
      const auto& segments = compiled_[kept].profile.segments;
      shape.hasBackward.push_back(std::any_of(segments.begin(), segments.end(), [&](auto& entry) {
        return !isForward(entry.first) && entry.first != "update" &&
               stageOfSegment(entry.first).value_or(keptStage) == keptStage;
      }));
    }
    absl::StatusOr<PipelineSchedule> schedule = makeSchedule(repeated_.schedule, shape);
    return schedule.ok() ? std::optional(*std::move(schedule)) : std::nullopt;
  }

  ProgramCost programOf(int64_t grid, const std::vector<StageRun>& runs) const {
    const int64_t kept = repeated_.keptOf[grid];
    const ProgramCost& like = compiled_[kept];
    ProgramCost program;
    program.ranks = like.ranks;
    program.profile.name = "p" + std::to_string(grid);
    program.profile.firstRank = repeated_.firstRanks[grid];
    program.profile.slowdown = like.profile.slowdown;
    for (const auto& [segment, pieces] : like.profile.segments) {
      const std::string name = nameOn(grid, segment);
      program.profile.segments[name] = piecesOn(grid, segment, pieces);
      program.work[name] = like.work.at(segment);
    }
    setSchedule(runs, &program);
    return program;
  }

  void setSchedule(const std::vector<StageRun>& runs, ProgramCost* program) const {
    ProgramProfile& profile = program->profile;
    profile.schedule.clear();
    for (const StageRun& run : runs) {
      std::string name = segmentOf(run);
      // A half of a backward may have nothing to do.
      if (profile.segments.count(name) == 0) continue;
      const std::string last = lastSegment(name);
      const bool isLast = run.microbatch == repeated_.microbatches - 1;
      if (isLast && profile.segments.count(last) > 0) name = last;
      profile.schedule.push_back({name, run.microbatch});
    }
    profile.schedule.push_back({"update", 0});
  }

  // A model of one stage has no numbers in its segments' names.
  std::string segmentOf(const StageRun& run) const {
    const bool isOneStage = repeated_.grids() == 1 && repeated_.interleave == 1;
    return phaseName(run.phase) + (isOneStage ? "" : "." + std::to_string(run.stage));
  }

  double cachedBytesOn(int64_t grid) const {
    const ProgramCost& like = compiled_[repeated_.keptOf[grid]];
    auto own = like.cachedBytesOn.find(grid);
    return own == like.cachedBytesOn.end() ? like.cachedBytes : own->second;
  }

  MemoryBytes bytesOn(int64_t grid) const {
    const ProgramCost& like = compiled_[repeated_.keptOf[grid]];
    auto own = like.memoryOn.find(grid);
    return own == like.memoryOn.end() ? like.bytes : peakOf(own->second);
  }

  int64_t stageOn(int64_t grid, int64_t keptStage) const {
    return keptStage / keptGrids() * repeated_.grids() + grid;
  }

  std::string nameOn(int64_t grid, const std::string& segment) const {
    const std::optional<int64_t> stage = stageOfSegment(segment);
    if (!stage) return segment;
    return llvm::StringRef(segment).rsplit('.').first.str() + "." +
           std::to_string(stageOn(grid, *stage));
  }

  std::vector<SegmentPiece> piecesOn(int64_t grid, const std::string& segment,
                                     std::vector<SegmentPiece> pieces) const {
    const std::optional<int64_t> stage = stageOfSegment(segment);
    const bool isCompiled = repeated_.kept[repeated_.keptOf[grid]] == grid;
    for (SegmentPiece& piece : pieces) {
      if (piece.kind == Kind::kRun) continue;
      if (!stage) {
        if (!isCompiled) piece = SegmentPiece();
        piece.peer = static_cast<size_t>(repeated_.kept[piece.peer]);
        continue;
      }
      const std::set<std::string>& names = channels_.at(boundaryOf(segment, *stage, piece.kind));
      std::vector<std::string> inOrder(names.begin(), names.end());
      std::sort(inOrder.begin(), inOrder.end(), isEarlier);
      const auto number =
          std::find(inOrder.begin(), inOrder.end(), piece.channel) - inOrder.begin();
      const int64_t own = stageOn(grid, *stage);
      const Boundary boundary = boundaryOf(segment, own, piece.kind);
      const int64_t other = boundary.stage == own ? own + 1 : own - 1;
      piece.channel = boundary.text() + "." + std::to_string(number);
      piece.peer = static_cast<size_t>(other % repeated_.grids());
    }
    return pieces;
  }

  // Whether everything that is sent is received.
  static bool isWhole(const std::vector<ProgramCost>& programs) {
    std::set<std::string> sent, received;
    for (const ProgramCost& program : programs) {
      for (const auto& [segment, pieces] : program.profile.segments) {
        for (const SegmentPiece& piece : pieces) {
          if (piece.kind == Kind::kSend) sent.insert(piece.channel);
          if (piece.kind == Kind::kReceive) received.insert(piece.channel);
        }
      }
    }
    return sent == received;
  }

  const std::vector<ProgramCost>& compiled_;
  const RepeatedGrids& repeated_;
  std::map<Boundary, std::set<std::string>> channels_;  // of the compiled programs
};

}  // namespace

std::optional<std::vector<ProgramCost>> repeatMicrobatches(const std::vector<ProgramCost>& compiled,
                                                           const RepeatedGrids& repeated) {
  return Repeater(compiled, repeated).runMicrobatches();
}

std::optional<std::vector<ScheduledRun>> scheduleOnKept(const std::vector<ProgramCost>& compiled,
                                                        const RepeatedGrids& repeated,
                                                        int64_t grid) {
  return Repeater(compiled, repeated).onKept(grid);
}

std::optional<std::vector<ProgramCost>> repeatGrids(const std::vector<ProgramCost>& compiled,
                                                    const RepeatedGrids& repeated) {
  return Repeater(compiled, repeated).run();
}

}  // namespace oriel
