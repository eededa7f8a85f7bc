#include "passes/remat/budget.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "ir/oriel/segment.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/lower/program_memory.h"
#include "passes/overlap/program_overlap.h"
#include "passes/remat/forward_graph.h"
#include "passes/remat/option_path.h"
#include "passes/remat/stash_edit.h"
#include "passes/strategize/schedule.h"

namespace oriel {

namespace {

using ir::ValueKind;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::ModuleOp;
using mlir::success;

struct Candidate {
  std::vector<std::vector<Recomputation>> edits;
  double seconds = 0;
  int64_t stashBytes = 0;  // at least, of what the blocks can drop or add
};

class BudgetSearch {
 public:
  BudgetSearch(ModuleOp program, const Blocks& blocks, int64_t budget,
               const std::optional<Overlap>& overlap)
      : program_(program), blocks_(blocks), budget_(budget), overlap_(overlap) {}

  FailureOr<BudgetChoice> run() {
    for (mlir::func::FuncOp forward : ir::segmentsOfKind(program_, "forward")) {
      FailureOr<ForwardGraph> graph = readForward(forward, blocks_);
      if (failed(graph)) return failure();
      forwards_.push_back(*std::move(graph));
    }
    if (failed(readMemory())) return failure();
    findOptions();
    makeCandidates();
    return search();
  }

 private:
  LogicalResult readMemory() {
    FailureOr<ProgramMemory> memory = ProgramMemory::of(program_);
    FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program_);
    if (failed(memory) || failed(schedule)) return failure();
    readSchedule(*schedule);
    fixedBytes_ = program_->getParentOp() ? persistentBytes(*memory) : bytesBesideTheStash(*memory);
    return success();
  }

  // Finds the instant at which most of the stash is there: of each forward, the microbatches that
  // it has run for and no backward yet.
  void readSchedule(const std::vector<ScheduleEntry>& schedule) {
    std::vector<std::set<int64_t>> inFlight(forwards_.size());
    inFlight_.assign(forwards_.size(), 0);
    int64_t most = -1;
    for (const ScheduleEntry& entry : schedule) {
      int64_t bytes = 0;
      for (size_t i = 0; i < forwards_.size(); ++i) {
        auto isEntry = [&](mlir::func::FuncOp segment) {
          return segment.getSymName() == entry.segment;
        };
        if (isEntry(forwards_[i].forward)) inFlight[i].insert(entry.microbatch);
        if (llvm::any_of(forwards_[i].backwards, isEntry)) inFlight[i].erase(entry.microbatch);
        bytes += static_cast<int64_t>(inFlight[i].size()) * droppableBytes(forwards_[i].graph);
      }
      if (bytes <= most) continue;
      most = bytes;
      for (size_t i = 0; i < forwards_.size(); ++i) {
        inFlight_[i] = static_cast<int64_t>(inFlight[i].size());
      }
    }
  }

  static int64_t droppableBytes(const StashGraph& graph) {
    int64_t bytes = 0;
    for (int64_t block : blocksOf(graph)) {
      for (int value : droppable(graph, block)) bytes += graph.values[value].bytes;
    }
    return bytes;
  }

  // Of a program with microbatches in flight: what is not of one of them.
  static int64_t persistentBytes(const ProgramMemory& memory) {
    int64_t bytes = 0;
    for (const auto& [id, storage] : llvm::enumerate(memory.assignment().storages())) {
      const bool isStash = storage.role && storage.role->kind == ValueKind::kStash;
      const bool hasGap = storage.gapBegin <= storage.gapEnd;
      if (storage.persistent && !isStash && !hasGap) {
        bytes += memory.bytesOf(static_cast<StorageId>(id));
      }
    }
    return bytes;
  }

  // Names of what blocks can drop.
  llvm::StringSet<> droppableNames() const {
    llvm::StringSet<> names;
    for (const ForwardGraph& forward : forwards_) {
      std::vector<bool> canGo(forward.graph.values.size());
      for (int64_t block : blocksOf(forward.graph)) {
        for (int value : droppable(forward.graph, block)) canGo[value] = true;
      }
      for (const auto& [name, value] : forward.stash) {
        if (canGo[value]) names.insert(name);
      }
    }
    return names;
  }

  // The most that is in use at an op between blocks while all that blocks can drop is in the stash.
  // It is so whatever they drop.
  int64_t bytesBesideTheStash(const ProgramMemory& memory) {
    std::vector<bool> isBetween;  // by tick
    for (mlir::func::FuncOp segment : program_.getOps<mlir::func::FuncOp>()) {
      for (mlir::Operation& op : segment.getBody().front()) {
        isBetween.push_back(blocks_.of(&op) == Blocks::kNone);
      }
    }
    const size_t ticks = isBetween.size();
    // Differences from tick to tick.
    std::vector<int64_t> bytes(ticks + 1), stashed(ticks + 1);
    int64_t all = 0;
    const llvm::StringSet<> names = droppableNames();
    for (const auto& [id, storage] : llvm::enumerate(memory.assignment().storages())) {
      const bool isStash = storage.role && storage.role->kind == ValueKind::kStash;
      const bool canGo = isStash && names.contains(storage.role->ref);
      std::vector<int64_t>& counts = canGo ? stashed : bytes;
      const int64_t amount = canGo ? 1 : memory.bytesOf(static_cast<StorageId>(id));
      all += canGo ? 1 : 0;
      auto add = [&](int64_t begin, int64_t end, int64_t sign) {
        counts[std::min<size_t>(begin, ticks)] += sign * amount;
        counts[std::min<size_t>(end + 1, ticks)] -= sign * amount;
      };
      add(storage.begin, storage.end, 1);
      if (storage.gapBegin <= storage.gapEnd) add(storage.gapBegin, storage.gapEnd, -1);
    }
    int64_t most = 0, inUse = 0, inStash = 0;
    for (size_t tick = 0; tick < ticks; ++tick) {
      inUse += bytes[tick];
      inStash += stashed[tick];
      if (isBetween[tick] && inStash == all) most = std::max(most, inUse);
    }
    return most;
  }

  void findOptions() {
    for (const auto& [index, forward] : llvm::enumerate(forwards_)) {
      const std::vector<int> shares = leafShares(forward.graph);
      for (int64_t block : blocksOf(forward.graph)) {
        BlockChoice choice{blockOptions(forward.graph, block, shares),
                           std::max<int64_t>(inFlight_[index], 1)};
        // What can't be dropped is no choice.
        if (choice.options.front().bytes == 0) continue;
        if (inFlight_[index] > 0) boundChoices_.push_back(choice);
        choices_.push_back(std::move(choice));
        forwardOf_.push_back(index);
      }
    }
  }

  void makeCandidates() {
    for (const OptionPlan& plan : optionPath(choices_)) {
      Candidate candidate;
      candidate.edits.resize(forwards_.size());
      for (auto [choice, forward, option] : llvm::zip_equal(choices_, forwardOf_, plan)) {
        candidate.edits[forward].push_back(choice.options[option].edit);
      }
      candidate.seconds = secondsOf(choices_, plan);
      addCandidate(std::move(candidate));
    }
    addUniform([](const StashGraph&, int64_t) { return Recomputation(); });
    addUniform(selectiveRecomputation);
    addUniform(fullRecomputation);
    llvm::stable_sort(candidates_, [](const Candidate& a, const Candidate& b) {
      return std::tie(a.seconds, a.stashBytes) < std::tie(b.seconds, b.stashBytes);
    });
  }

  // The same policy for all blocks.
  void addUniform(llvm::function_ref<Recomputation(const StashGraph&, int64_t)> policy) {
    Candidate candidate;
    for (const ForwardGraph& forward : forwards_) {
      candidate.edits.emplace_back();
      for (int64_t block : blocksOf(forward.graph)) {
        Recomputation edit = policy(forward.graph, block);
        candidate.seconds += edit.seconds(forward.graph);
        candidate.edits.back().push_back(std::move(edit));
      }
    }
    addCandidate(std::move(candidate));
  }

  void addCandidate(Candidate candidate) {
    for (size_t i = 0; i < forwards_.size(); ++i) {
      const StashGraph& graph = forwards_[i].graph;
      int64_t bytes = droppableBytes(graph);
      std::set<int> added;  // once, if several blocks do
      for (const Recomputation& edit : candidate.edits[i]) {
        for (int value : edit.dropped) bytes -= graph.values[value].bytes;
        added.insert(edit.added.begin(), edit.added.end());
      }
      for (int value : added) bytes += graph.values[value].bytes;
      candidate.stashBytes += inFlight_[i] * bytes;
    }
    candidates_.push_back(std::move(candidate));
  }

  FailureOr<BudgetChoice> search() {
    std::optional<BudgetChoice> smallest;
    for (const Candidate& candidate : candidates_) {
      const bool isLast = &candidate == &candidates_.back();
      if (fixedBytes_ + candidate.stashBytes > budget_ && !(isLast && !smallest)) continue;
      FailureOr<int64_t> bytes = arenaBytes(candidate);
      if (failed(bytes)) return failure();
      if (smallest && *bytes >= smallest->bytes) continue;
      smallest = BudgetChoice{candidate.edits, *bytes, candidate.seconds,
                              leastSeconds(boundChoices_, budget_ - fixedBytes_)};
      if (*bytes <= budget_) break;
    }
    return *std::move(smallest);
  }

  // Of the program with these edits.
  FailureOr<int64_t> arenaBytes(const Candidate& candidate) {
    // A program of several is one still, for its microbatches in flight.
    mlir::OwningOpRef<ModuleOp> around = ModuleOp::create(program_.getLoc());
    ModuleOp copy = program_.clone();
    mlir::OwningOpRef<ModuleOp> alone;
    if (program_->getParentOp()) {
      around->push_back(copy);
    } else {
      alone = copy;
    }
    for (auto [forward, edits] :
         llvm::zip_equal(ir::segmentsOfKind(copy, "forward"), candidate.edits)) {
      FailureOr<ForwardGraph> graph = readForward(forward, blocks_);
      if (failed(graph) || failed(editStash(*graph, blocks_, edits))) return failure();
    }
    if (overlap_ && failed(overlapProgram(copy, *overlap_))) return failure();
    FailureOr<ProgramMemory> memory = ProgramMemory::of(copy);
    if (failed(memory)) return failure();
    const int64_t peak = memory->peak().bytes;
    return peak > budget_ ? peak : memory->place().bytes;
  }

  ModuleOp program_;
  const Blocks& blocks_;
  int64_t budget_;
  const std::optional<Overlap>& overlap_;
  std::vector<ForwardGraph> forwards_;
  std::vector<int64_t> inFlight_;  // by forward: microbatches of which all stash is there at once
  int64_t fixedBytes_ = 0;
  std::vector<BlockChoice> choices_;       // by block, of all forwards
  std::vector<BlockChoice> boundChoices_;  // those of forwards with stash in flight
  std::vector<size_t> forwardOf_;          // each block's
  std::vector<Candidate> candidates_;
};

}  // namespace

FailureOr<BudgetChoice> chooseWithin(ModuleOp program, const Blocks& blocks, int64_t budget,
                                     const std::optional<Overlap>& overlap) {
  return BudgetSearch(program, blocks, budget, overlap).run();
}

}  // namespace oriel
