#include "passes/remat/budget.h"

#include <algorithm>
#include <tuple>

#include "ir/oriel/segment.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/lower/program_memory.h"
#include "passes/overlap/program_overlap.h"
#include "passes/remat/forward_graph.h"
#include "passes/remat/option_path.h"
#include "passes/remat/stash_edit.h"

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
    if (failed(memory)) return failure();
    for (const Storage& storage : memory->assignment().storages()) {
      const bool isStash = storage.role && storage.role->kind == ValueKind::kStash;
      if (isStash) copies_[storage.role->ref] = storage.slots;
    }
    fixedBytes_ = bytesBesideTheStash(*memory);
    return success();
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
      counts[std::min<size_t>(storage.begin, ticks)] += amount;
      counts[std::min<size_t>(storage.end + 1, ticks)] -= amount;
    }
    int64_t most = 0, inUse = 0, inStash = 0;
    for (size_t tick = 0; tick < ticks; ++tick) {
      inUse += bytes[tick];
      inStash += stashed[tick];
      if (isBetween[tick] && inStash == all) most = std::max(most, inUse);
    }
    return most;
  }

  // Of the stash of a forward: the microbatches in flight.
  int64_t copiesOf(const ForwardGraph& forward) const {
    int64_t copies = 1;
    for (const auto& entry : forward.stash) {
      auto known = copies_.find(entry.getKey());
      if (known != copies_.end()) copies = std::max(copies, known->second);
    }
    return copies;
  }

  void findOptions() {
    for (const auto& [index, forward] : llvm::enumerate(forwards_)) {
      const std::vector<int> shares = leafShares(forward.graph);
      for (int64_t block : blocksOf(forward.graph)) {
        BlockChoice choice{blockOptions(forward.graph, block, shares), copiesOf(forward)};
        // What can't be dropped is no choice.
        if (choice.options.front().bytes == 0) continue;
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
      candidate.stashBytes = bytesOf(choices_, plan);
      candidates_.push_back(std::move(candidate));
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
      const int64_t copies = copiesOf(forward);
      for (int64_t block : blocksOf(forward.graph)) {
        Recomputation edit = policy(forward.graph, block);
        for (int value : droppable(forward.graph, block)) {
          candidate.stashBytes += copies * forward.graph.values[value].bytes;
        }
        for (int value : edit.dropped) {
          candidate.stashBytes -= copies * forward.graph.values[value].bytes;
        }
        candidate.seconds += edit.seconds(forward.graph);
        candidate.edits.back().push_back(std::move(edit));
      }
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
                              leastSeconds(choices_, budget_ - fixedBytes_)};
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
  llvm::StringMap<int64_t> copies_;  // of stash values
  int64_t fixedBytes_ = 0;
  std::vector<BlockChoice> choices_;  // by block, of all forwards
  std::vector<size_t> forwardOf_;     // each block's
  std::vector<Candidate> candidates_;
};

}  // namespace

FailureOr<BudgetChoice> chooseWithin(ModuleOp program, const Blocks& blocks, int64_t budget,
                                     const std::optional<Overlap>& overlap) {
  return BudgetSearch(program, blocks, budget, overlap).run();
}

}  // namespace oriel
