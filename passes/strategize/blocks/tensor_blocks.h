// Parts of a model that tensor parallelism can split with one reduction each.
//
// A reduction over a dimension splits into partial sums where the pieces of what it reduces can be
// computed from pieces of parameters alone: the second linear layer of an MLP over the columns of
// the first, an output projection over the heads of attention, the loss over the vocabulary of
// the output layer, the lookup in an embedding over its rows (Shoeybi et al. 2019, section 3).
// They are found from the sharding rules of ops, whatever the ops are.
#ifndef ORIEL_PASSES_STRATEGIZE_BLOCKS_TENSOR_BLOCKS_H_
#define ORIEL_PASSES_STRATEGIZE_BLOCKS_TENSOR_BLOCKS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// A contiguous part of the tensor-parallel ranks' index: of `size` ranks, with `outer` of them
// around it. All of 8 ranks are {1, 8}; two KV heads on 8 ranks are split by {1, 2}.
struct RankRange {
  int64_t outer = 1;
  int64_t size = 1;

  friend bool operator==(const RankRange& a, const RankRange& b) {
    return a.outer == b.outer && a.size == b.size;
  }
};

struct TensorBlock {
  struct Cut {
    ir::ParameterOp parameter;
    int64_t dim;
    RankRange range;
  };

  mlir::Operation* reduction = nullptr;
  std::vector<Cut> cuts;
  // Empty, or what these ranks do not divide: "6 elements or heads at ..".
  std::string indivisible;
};

struct TensorBlockOptions {
  // Ranks that a parameter may be split over; 1 for one that must stay whole.
  std::function<int64_t(ir::ParameterOp)> ranks;
  // The dimension along which alone the parameter may be split, if the strategy says one.
  std::function<std::optional<int64_t>(ir::ParameterOp)> dimension;
  // Of the module that the parameter is in: a block is in one only.
  std::function<std::string(ir::ParameterOp)> module;
};

// As the strategy says, which outlives them: for a model before it has grids.
TensorBlockOptions blockOptionsOf(const Strategy& strategy);

// The blocks of a forward segment, in its order, none in conflict with another. With `notes`, says
// there why reductions of parameters' products do not make one.
std::vector<TensorBlock> findTensorBlocks(mlir::func::FuncOp forward,
                                          const TensorBlockOptions& options,
                                          std::vector<std::string>* notes);

// The same with their ops. `takesIndivisible`: see BlockScope.
struct BlockCandidate;
std::vector<BlockCandidate> chooseCandidates(mlir::func::FuncOp forward,
                                             const TensorBlockOptions& options,
                                             std::vector<std::string>* notes,
                                             bool takesIndivisible);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_BLOCKS_TENSOR_BLOCKS_H_
