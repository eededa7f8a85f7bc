// What one reduction would cut on tensor-parallel ranks, as far as it alone says.
#ifndef ORIEL_PASSES_STRATEGIZE_BLOCKS_BLOCK_CANDIDATE_H_
#define ORIEL_PASSES_STRATEGIZE_BLOCKS_BLOCK_CANDIDATE_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/interfaces/sharding_rule.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "passes/strategize/blocks/tensor_blocks.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

using OpCuts = llvm::MapVector<mlir::Operation*, std::map<int, RankRange>>;  // of factors

struct BlockCandidate {
  // What makes a value in pieces, and an op outside of the block that reads it.
  struct OutsideUse {
    mlir::Operation* producer;
    mlir::Operation* user;

    std::string whyNot() const;
  };

  TensorBlock block;
  OpCuts ops;
  std::vector<OutsideUse> outside;  // that other blocks must have
  int64_t ranks = 1;
  bool takesSteps = false;  // other ops stand for some of them (`decompose`)

  // Whether it splits as it is, whatever others do.
  bool isPlain() const { return outside.empty() && !takesSteps; }

  // Elements of the parameters that it cuts.
  int64_t elements() const;

  // Whether it has this op, cut like that.
  bool has(mlir::Operation* op, const std::map<int, RankRange>& cuts) const;
};

// Sharding rules of ops, each made once.
class RuleCache {
 public:
  const ir::ShardingRule& of(mlir::Operation* op);

 private:
  llvm::DenseMap<mlir::Operation*, std::unique_ptr<ir::ShardingRule>> rules_;
};

// Whether an op of this rule sums over the factor, takes its maximum, or takes steps for it, and no
// result has it.
bool isReduced(const ir::ShardingRule& rule, int factor);

// Ops that read a weight, and those whose results such an op reads, directly or not: all but what
// follows the last layers.
llvm::DenseSet<mlir::Operation*> opsUpToLastWeights(mlir::func::FuncOp forward,
                                                    const SegmentValues& values);

// Where blocks are looked for.
struct BlockScope {
  const SegmentValues& values;
  const TensorBlockOptions& options;
  const llvm::DenseSet<mlir::Operation*>& upToLastWeights;
  RuleCache& rules;
  // Blocks that these ranks do not divide are found also where they would be there for others only.
  bool takesIndivisible = false;
};

// The reduction over the factor in pieces on so many ranks. None if these are not made of
// parameters' pieces; `why` says what is in the way.
std::optional<BlockCandidate> findBlockCandidate(const BlockScope& scope,
                                                 mlir::Operation* reduction, int factor,
                                                 int64_t ranks, std::string& why);

// A layer by itself, whose input each rank has and takes its piece of: where its weights are much
// larger than what it takes and makes, as for one vector of each sample. None elsewhere.
std::optional<BlockCandidate> findLayerCandidate(const BlockScope& scope, mlir::Operation* layer,
                                                 int factor, int64_t ranks);

// Whether pieces of a dimension of the value, on so many ranks, are made of an input by parameters'
// pieces, and of these pieces nothing but the value, and what `reader` takes, is made.
bool comesInPieces(const BlockScope& scope, mlir::Value value, int64_t dim, int64_t ranks,
                   mlir::Operation* reader);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_BLOCKS_BLOCK_CANDIDATE_H_
