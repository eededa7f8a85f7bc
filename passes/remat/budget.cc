#include "passes/remat/budget.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "ir/oriel/segment.h"
#include "llvm/ADT/StringSet.h"
#include "passes/cost/op_time.h"
#include "passes/lower/program_memory.h"
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
  double seconds = 0;      // of what runs again, for a microbatch
  double computing = 0;    // of that in a step, without collectives
  int64_t stashBytes = 0;  // at least, of what the blocks can drop or add
};

// The graph as if one segment of the backward read all of the stash.
StashGraph readBy(StashGraph graph, int reader) {
  for (StashGraph::Value& value : graph.values) {
    if (!value.readers.empty()) value.readers = {reader};
  }
  return graph;
}

class BudgetSearch {
 public:
  BudgetSearch(ModuleOp program, const Blocks& blocks, int64_t budget,
               const std::optional<Overlap>& overlap, const LaunchForms& forms)
      : program_(program), blocks_(blocks), budget_(budget), overlap_(overlap), forms_(forms) {}

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
    // Generated launches may take less still, but don't say what they are of.
    ProgramCopy launches(program_);
    if (failed(formLaunches(*launches, {forms_.fused, /*generated=*/false}))) return failure();
    FailureOr<ProgramMemory> memory = ProgramMemory::of(*launches);
    FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program_);
    if (failed(memory) || failed(schedule)) return failure();
    readSchedule(*schedule);
    fixedBytes_ = program_->getParentOp() ? persistentBytes(*memory)
                                          : bytesBesideTheStash(*launches, *memory);
    return success();
  }

  // Finds the instant at which most of the stash is there: of each forward, the microbatches that
  // it has run for and no backward yet.
  void readSchedule(const std::vector<ScheduleEntry>& schedule) {
    std::vector<std::set<int64_t>> inFlight(forwards_.size());
    inFlight_.assign(forwards_.size(), 0);
    runs_.assign(forwards_.size(), 0);
    int64_t most = -1;
    for (const ScheduleEntry& entry : schedule) {
      int64_t bytes = 0;
      for (size_t i = 0; i < forwards_.size(); ++i) {
        auto isEntry = [&](mlir::func::FuncOp segment) {
          return segment.getSymName() == entry.segment;
        };
        if (isEntry(forwards_[i].forward)) {
          inFlight[i].insert(entry.microbatch);
          ++runs_[i];
        }
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
  int64_t bytesBesideTheStash(ModuleOp launches, const ProgramMemory& memory) {
    const Blocks blocks(launches);
    std::vector<bool> isBetween;  // by tick
    for (mlir::func::FuncOp segment : launches.getOps<mlir::func::FuncOp>()) {
      for (mlir::Operation& op : segment.getBody().front()) {
        isBetween.push_back(blocks.of(&op) == Blocks::kNone);
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
        if (inFlight_[index] > 0) {
          boundChoices_.push_back(choice);
          // Of two halves of a backward both need something: only that one runs it is sure.
          if (forward.backwards.size() > 1) {
            boundChoices_.back().options = blockOptions(readBy(forward.graph, 0), block, shares);
          }
        }
        choices_.push_back(std::move(choice));
        forwardOf_.push_back(index);
      }
    }
  }

  // The first, the last, and some at equal distances between. Which, does not depend on the budget.
  // Each is a compilation to try, and its neighbours on a long path differ by single blocks of
  // many.
  static std::vector<OptionPlan> someOf(std::vector<OptionPlan> path) {
    constexpr size_t kMax = 48;
    if (path.size() <= kMax) return path;
    std::vector<OptionPlan> some;
    for (size_t i = 0; i < kMax; ++i) {
      some.push_back(std::move(path[i * (path.size() - 1) / (kMax - 1)]));
    }
    return some;
  }

  void makeCandidates() {
    for (const OptionPlan& plan : someOf(optionPath(choices_))) {
      Candidate candidate;
      candidate.edits.resize(forwards_.size());
      for (auto [choice, forward, option] : llvm::zip_equal(choices_, forwardOf_, plan)) {
        candidate.edits[forward].push_back(choice.options[option].edit);
      }
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
        candidate.edits.back().push_back(policy(forward.graph, block));
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
        const std::vector<int> times = timesAgain(graph, edit);
        for (int op : edit.ops) {
          const double seconds = times[op] * graph.ops[op].seconds;
          candidate.seconds += seconds;
          if (!graph.ops[op].isCollective) candidate.computing += runs_[i] * seconds;
        }
        for (int value : edit.dropped) bytes -= graph.values[value].bytes;
        added.insert(edit.added.begin(), edit.added.end());
      }
      for (int value : added) bytes += graph.values[value].bytes;
      candidate.stashBytes += inFlight_[i] * bytes;
    }
    candidates_.push_back(std::move(candidate));
  }

  // Of what the forwards of a step compute for the stash alone: without it, that goes too.
  double secondsForTheStash() const {
    double sum = 0;
    for (auto [forward, runs] : llvm::zip_equal(forwards_, runs_)) {
      sum += runs * secondsForTheStash(forward);
    }
    return sum;
  }

  static double secondsForTheStash(const ForwardGraph& forward) {
    const StashGraph& graph = forward.graph;
    std::vector<bool> stays(graph.values.size());
    mlir::func::FuncOp segment = forward.forward;
    for (mlir::OpOperand& result : segment.getBody().front().getTerminator()->getOpOperands()) {
      FailureOr<ir::ValueRole> role = ir::resultRole(segment, result.getOperandNumber());
      const bool isStash = succeeded(role) && role->kind == ValueKind::kStash;
      if (!isStash) stays[forward.numbers.at(result.get())] = true;
    }
    double sum = 0;
    const OpTimes times(segment);
    for (size_t i = graph.ops.size(); i-- > 0;) {
      const StashGraph::Op& op = graph.ops[i];
      const bool isNeeded =
          !op.repeats || llvm::any_of(op.results, [&](int v) { return stays[v]; });
      if (!isNeeded) sum += times.seconds(forward.ops[i]);
      for (int operand : op.operands) {
        if (isNeeded) stays[operand] = true;
      }
    }
    return sum;
  }

  // All that may be faster than the best one, the least to run again first.
  FailureOr<BudgetChoice> search() {
    ProgramCopy launches(program_);
    if (failed(formLaunches(*launches, forms_))) return failure();
    FailureOr<PredictedTime> base = predictedStepTime(*launches);
    if (failed(base)) return failure();
    const double least = base->computing - secondsForTheStash();
    std::vector<const Candidate*> tooLarge;
    for (const Candidate& candidate : candidates_) {
      const bool mayFit = fixedBytes_ + candidate.stashBytes <= budget_;
      if (!mayFit) tooLarge.push_back(&candidate);
      const bool fits = best_ && best_->overlap.bytes <= budget_;
      if (!mayFit || (fits && least + candidate.computing > best_->overlap.time.all())) continue;
      if (failed(tryOut(candidate))) return failure();
    }
    // Nothing fits: the smallest one.
    llvm::stable_sort(tooLarge, [](const Candidate* a, const Candidate* b) {
      return a->stashBytes < b->stashBytes;
    });
    for (const Candidate* candidate : tooLarge) {
      const int64_t atLeast = std::max(fixedBytes_ + candidate->stashBytes, budget_ + 1);
      if (best_ && best_->overlap.bytes <= atLeast) break;
      if (failed(tryOut(*candidate))) return failure();
    }
    best_->leastSeconds = leastSeconds(boundChoices_, budget_ - fixedBytes_);
    return *std::move(best_);
  }

  LogicalResult tryOut(const Candidate& candidate) {
    ProgramCopy copy(program_);
    for (auto [forward, edits] :
         llvm::zip_equal(ir::segmentsOfKind(*copy, "forward"), candidate.edits)) {
      FailureOr<ForwardGraph> graph = readForward(forward, blocks_);
      if (failed(graph) || failed(editStash(*graph, blocks_, edits))) return failure();
    }
    std::optional<LevelChoice> known;
    if (best_) known = best_->overlap;
    FailureOr<std::optional<LevelChoice>> choice =
        chooseLevel(*copy, overlap_, budget_, forms_, BytesBy::kArena, known);
    if (failed(choice)) return failure();
    if (*choice) best_ = BudgetChoice{candidate.edits, **choice, candidate.seconds, std::nullopt};
    return success();
  }

  ModuleOp program_;
  const Blocks& blocks_;
  int64_t budget_;
  const std::optional<Overlap>& overlap_;
  const LaunchForms& forms_;
  std::vector<ForwardGraph> forwards_;
  std::vector<int64_t> inFlight_;  // by forward: microbatches of which all stash is there at once
  std::vector<double> runs_;       // of each forward, in a step
  int64_t fixedBytes_ = 0;
  std::vector<BlockChoice> choices_;       // by block, of all forwards
  std::vector<BlockChoice> boundChoices_;  // those of forwards with stash in flight
  std::vector<size_t> forwardOf_;          // each block's
  std::vector<Candidate> candidates_;
  std::optional<BudgetChoice> best_;
};

}  // namespace

FailureOr<BudgetChoice> chooseWithin(ModuleOp program, const Blocks& blocks, int64_t budget,
                                     const std::optional<Overlap>& overlap,
                                     const LaunchForms& forms) {
  return BudgetSearch(program, blocks, budget, overlap, forms).run();
}

}  // namespace oriel
