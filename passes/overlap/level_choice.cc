#include "passes/overlap/level_choice.h"

#include <tuple>
#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/lower/program_memory.h"

namespace oriel {

namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::ModuleOp;

// Those that make different programs.
std::vector<OverlapLevel> levelsOf(ModuleOp program, const std::optional<Overlap>& overlap) {
  if (!overlap) return {OverlapLevel::kOff};
  bool communicates = false;
  program.walk([&](ir::CollectiveOpInterface) { communicates = true; });
  if (!communicates) return {OverlapLevel::kAsAsked};
  return {std::begin(kOverlapLevels), std::end(kOverlapLevels)};
}

// Of a program as it is to be lowered, with its time, and at least so many bytes.
class Measured {
 public:
  static FailureOr<Measured> create(ModuleOp program, OverlapLevel level, PredictedTime time) {
    FailureOr<ProgramMemory> memory = ProgramMemory::of(program);
    if (failed(memory)) return failure();
    const int64_t peak = memory->peak().bytes;
    return Measured(LevelChoice{level, time, peak}, *std::move(memory));
  }

  const LevelChoice& atLeast() const { return choice_; }
  LevelChoice place() {
    choice_.bytes = memory_.place().bytes;
    return choice_;
  }

 private:
  Measured(LevelChoice choice, ProgramMemory memory)
      : choice_(choice), memory_(std::move(memory)) {}

  LevelChoice choice_;
  ProgramMemory memory_;
};

bool isSame(ModuleOp a, ModuleOp b) {
  return mlir::OperationEquivalence::isEquivalentTo(a, b,
                                                    mlir::OperationEquivalence::IgnoreLocations);
}

}  // namespace

ProgramCopy::ProgramCopy(ModuleOp program) : program_(program.clone()) {
  if (!program->getParentOp()) {
    outermost_ = program_;
    return;
  }
  outermost_ = ModuleOp::create(program.getLoc());
  outermost_->getOperation()->setAttrs(program->getParentOp()->getAttrDictionary());
  outermost_->push_back(program_);
}

bool isBetter(const LevelChoice& a, const LevelChoice& b, int64_t memory) {
  const bool fits = a.bytes <= memory;
  if (fits != (b.bytes <= memory)) return fits;
  const double seconds = a.time.all(), other = b.time.all();
  return fits ? std::tie(seconds, a.bytes) < std::tie(other, b.bytes)
              : std::tie(a.bytes, seconds) < std::tie(b.bytes, other);
}

FailureOr<std::optional<LevelChoice>> chooseLevel(ModuleOp program,
                                                  const std::optional<Overlap>& overlap,
                                                  int64_t memory, const LaunchForms& forms,
                                                  BytesBy bytesBy,
                                                  const std::optional<LevelChoice>& known) {
  std::optional<LevelChoice> best = known;
  bool isNew = false, asAskedFits = true;
  std::optional<ProgramCopy> before;  // as the level before makes it
  for (OverlapLevel level : levelsOf(program, overlap)) {
    ProgramCopy own(program);
    ModuleOp copy = *own;
    if (overlap && failed(overlapProgram(copy, *overlap, level))) return failure();
    if (failed(formLaunches(copy, forms))) return failure();
    // Where nothing is gathered ahead, for one, a level makes what the one before did.
    const bool isKnown = before && isSame(copy, **before);
    before = std::move(own);
    if (isKnown) continue;
    // The memory planner takes long: what is slower than one that fits need not fit.
    FailureOr<PredictedTime> time = predictedStepTime(copy);
    if (failed(time)) return failure();
    if (best && best->bytes <= memory && time->all() > best->time.all()) continue;
    FailureOr<Measured> measured = Measured::create(copy, level, *time);
    if (failed(measured)) return failure();
    // No arena is smaller than its peak.
    if (best && !isBetter(measured->atLeast(), *best, memory)) continue;
    const bool isPlaced = bytesBy == BytesBy::kArena && measured->atLeast().bytes <= memory;
    const LevelChoice choice = isPlaced ? measured->place() : measured->atLeast();
    if (level == OverlapLevel::kAsAsked) asAskedFits = choice.bytes <= memory;
    if (best && !isBetter(choice, *best, memory)) continue;
    best = choice;
    isNew = true;
  }
  if (!isNew) return std::optional<LevelChoice>();
  best->asAskedFits = asAskedFits;
  return best;
}

}  // namespace oriel
