// Which level of overlap a program takes within a budget of memory. Who asks, gets the same answer:
// `remat: auto`, which tries many programs, and the overlap pass for the one that it finds.
#ifndef ORIEL_PASSES_OVERLAP_LEVEL_CHOICE_H_
#define ORIEL_PASSES_OVERLAP_LEVEL_CHOICE_H_

#include <cstdint>
#include <optional>

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/cost/segment_time.h"
#include "passes/lower/launches.h"
#include "passes/overlap/program_overlap.h"

namespace oriel {

// A program that can be changed while the first one stays. One of several is in a module here too,
// which says that it has microbatches in flight.
class ProgramCopy {
 public:
  explicit ProgramCopy(mlir::ModuleOp program);

  mlir::ModuleOp operator*() { return program_; }

 private:
  mlir::OwningOpRef<mlir::ModuleOp> outermost_;
  mlir::ModuleOp program_;
};

struct LevelChoice {
  OverlapLevel level = OverlapLevel::kOff;
  PredictedTime time;       // of a step
  int64_t bytes = 0;        // of the arena, or at the peak
  bool asAskedFits = true;  // whether the overlap that is asked fits, too
};

// What a program's bytes are taken to be: those of its arena, which takes long to plan, or what is
// in use at the peak, of which an arena usually has some percent more.
enum class BytesBy { kArena, kPeak };

// Of two that fit the one that takes less time, and in as much the one that takes fewer bytes;
// else the one that fits; of two that don't the one that takes fewer bytes, and of as many the
// faster one.
bool isBetter(const LevelChoice& a, const LevelChoice& b, int64_t memory);

// The best level for a program of local ops, by the memory planner and the predicted time of its
// launches; without `overlap` that is kOff. What has more at its peak than `memory` counts with
// that. `known`: what is no better than that need not be found out; then there may be none. Fails
// with a diagnostic for a program that can't be lowered.
mlir::FailureOr<std::optional<LevelChoice>> chooseLevel(
    mlir::ModuleOp program, const std::optional<Overlap>& overlap, int64_t memory,
    const LaunchForms& forms, BytesBy bytesBy = BytesBy::kArena,
    const std::optional<LevelChoice>& known = std::nullopt);

}  // namespace oriel

#endif  // ORIEL_PASSES_OVERLAP_LEVEL_CHOICE_H_
