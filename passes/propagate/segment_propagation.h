// Goes through one segment and writes the sharding of each value and the split of each op.
#ifndef ORIEL_PASSES_PROPAGATE_SEGMENT_PROPAGATION_H_
#define ORIEL_PASSES_PROPAGATE_SEGMENT_PROPAGATION_H_

#include <map>
#include <set>
#include <string>

#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/propagate/hints.h"
#include "passes/propagate/modules.h"
#include "passes/propagate/op_split.h"
#include "passes/propagate/samples.h"
#include "passes/propagate/segment_sharding.h"
#include "passes/propagate/split_choice.h"
#include "passes/propagate/versions.h"

namespace oriel {

// What a channel carries, as its sender sees it.
struct SentValue {
  Sharding seen;
  const Grid* grid = nullptr;  // of the sender
};
using Channels = std::map<std::string, SentValue, std::less<>>;

// What the segments of a program have in common. Stays where it is.
struct ProgramSharding {
  // A microbatch has so many samples, over all ranks.
  ProgramSharding(mlir::ModuleOp program, Grid ownGrid, int64_t samples);
  ProgramSharding(const ProgramSharding&) = delete;

  const Grid grid;
  const int64_t samples;
  const AxisSizes sizes;
  ReshardPlanner planner;
  const ModuleMap modules;
  std::set<const void*> sequenceTypes;  // of values between layers that sequence parallelism cuts

  // What they agree on: the sharding of what has the same role, and the module it is from.
  std::map<ir::ValueRole, Sharding> shardings;
  std::map<ir::ValueRole, int> moduleOfStash;
  // Of what is stashed as an op that needs all positions had it: the positions cut.
  std::map<ir::ValueRole, Sharding> byPosition;
  // By the origin of the forward op that makes it: what dimension of a value is positions.
  std::map<int64_t, int64_t> positions;
};

class SegmentPropagation {
 public:
  // With a stream, says on it what communicates, and why.
  SegmentPropagation(mlir::func::FuncOp segment, ProgramSharding& program, Channels& channels,
                     llvm::raw_ostream* explain);

  // To the end of the segment, or to a value that another program has not sent yet: gives whether
  // it is the end. To be called again then.
  mlir::FailureOr<bool> advance();

 private:
  mlir::LogicalResult defineArguments();
  mlir::LogicalResult checkShape(mlir::Value value, const ir::ValueRole& role);
  mlir::LogicalResult defineArgument(mlir::BlockArgument argument, const ir::ValueRole& role);
  mlir::FailureOr<Sharding> keptSharding(const ir::ValueRole& role);
  mlir::LogicalResult settleSums(mlir::Operation* op);
  void visitSend(ir::SendOp send);
  void visitReceive(ir::ReceiveOp receive, const SentValue& sent);
  mlir::Operation* visit(mlir::Operation* op);
  int moduleOf(mlir::Operation* op) const;
  void noteExchange(mlir::Operation* op, mlir::Value operand, const Sharding& taken);
  SplitProblem problemOf(mlir::Operation* op, int module);
  std::optional<int64_t> sampleDimOf(mlir::Value value) const;
  bool isKeptSum(mlir::Value operand) const;
  Sharding wishOf(mlir::Value operand, int module) const;
  std::optional<Sharding> scatteredOf(mlir::Value operand, const ModuleAxes& axes) const;
  mlir::Operation* decompose(mlir::Operation* op, const SplitProblem& problem);
  void take(mlir::Value value, const Sharding& to, mlir::Operation* user);
  mlir::LogicalResult finish(mlir::func::ReturnOp terminator);
  mlir::FailureOr<Sharding> resultSharding(mlir::Value value, const ir::ValueRole& role);
  void explainStep(mlir::Value value, const ReshardStep& step, mlir::Operation* user);
  void explainChoice(mlir::Operation* op, const SplitProblem& problem,
                     llvm::ArrayRef<SplitCandidate> candidates);
  std::string describe(const SplitProblem& problem, const OpSplit& split) const;

  mlir::func::FuncOp segment_;
  const mlir::SymbolTable symbols_;
  ProgramSharding& program_;
  Channels& channels_;
  llvm::raw_ostream* explain_;
  Versions versions_;
  llvm::DenseMap<mlir::Value, ir::ValueRole> roles_;  // of arguments
  Hints hints_;
  SamplesOfNone samplesOfNone_;
  llvm::DenseMap<mlir::Value, int> moduleOfValue_;
  // Without positions, and cut over the axes of context parallelism where an op needs all
  // positions: the ops behind it are not to be cut so.
  llvm::DenseSet<mlir::Value> exchanged_;
  // With positions: the sharding in which the only op that uses the value has it instead.
  llvm::DenseMap<mlir::Value, Sharding> exchangedFor_;
  // Of what an earlier segment has left so: its positions cut.
  llvm::DenseMap<mlir::Value, Sharding> byPosition_;
  mlir::Operation* next_ = nullptr;  // null before the first
};

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_SEGMENT_PROPAGATION_H_
