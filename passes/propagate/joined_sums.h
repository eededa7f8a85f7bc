// Which pending sums another one is added to before somebody needs the total.
#ifndef ORIEL_PASSES_PROPAGATE_JOINED_SUMS_H_
#define ORIEL_PASSES_PROPAGATE_JOINED_SUMS_H_

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "passes/propagate/split_choice.h"
#include "passes/propagate/versions.h"

namespace oriel {

// Looks ahead in a segment: at ops that are not split yet, as they would be split by what each of
// them costs by itself.
class JoinedSums {
 public:
  using ProblemOf = std::function<SplitProblem(mlir::Operation*)>;

  // `problemOf`: of an op whose operands are defined. Values that are looked at are defined in
  // `versions` meanwhile.
  JoinedSums(Versions& versions, ReshardPlanner& planner, ProblemOf problemOf)
      : versions_(versions), planner_(planner), problemOf_(std::move(problemOf)) {}

  // Axes over which the value may stay pending for free: what it is added to, itself or behind ops
  // that are linear in it, can be pending over them as well, and some of it is.
  AxisList joinedAxes(mlir::Value value);

 private:
  // Axes over which a value is pending, and over which it would be if that were for free.
  struct Expected {
    AxisList sum, possible;
  };
  Expected expect(mlir::Value value, int depth);
  bool define(mlir::Value value, int depth);
  std::optional<std::vector<SplitCandidate>> candidates(mlir::Operation* op, int depth);

  Versions& versions_;
  ReshardPlanner& planner_;
  ProblemOf problemOf_;
  llvm::SmallVector<mlir::Value> guesses_;            // that are defined
  llvm::DenseMap<mlir::Operation*, int> outOfReach_;  // from so many levels above
  int opsLeft_ = 0;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_JOINED_SUMS_H_
