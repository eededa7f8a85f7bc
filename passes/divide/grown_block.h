// The ops of tensor blocks, made for more of what they are cut along: heads, columns of an MLP.
//
// What is added lies behind the true ones, or where ranks share keys and values behind those of
// each group of queries, and is zero, in parameters for good: it reaches the
// block's result with weights that are zero, which get gradients of zero, since what they are
// multiplied with is zero too.
#ifndef ORIEL_PASSES_DIVIDE_GROWN_BLOCK_H_
#define ORIEL_PASSES_DIVIDE_GROWN_BLOCK_H_

#include <optional>
#include <vector>

#include "passes/strategize/blocks/block_candidate.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

// Whether a block may end with it: a product whose weight is a parameter.
bool endsBlock(mlir::Operation* op);

// Of so many heads or columns, or whatever the block's ops are cut along, to what ranks divide.
struct Growth {
  int64_t from = 0, to = 0;
  std::vector<ir::ParameterOp> parameters;
};

// Blocks with one reduction each, which read the same: an output layer of attention, say, and its
// adapter.
struct JoinedBlocks {
  OpCuts ops;
  std::vector<TensorBlock::Cut> cuts;
};

// Over how many ranks the blocks are cut, and the least common multiple and the greatest common
// divisor of that and the ranks of other stages, where they may be as well.
struct GrowthRanks {
  int64_t count, divisor, common;
};

// Pads the parameters (padding.h), and puts other ops in the place of the block's in `main`, whose
// type is the caller's to mend. Nothing happens where that can't be: where an op outside of the
// blocks reads what is in pieces, where ops are cut along several dimensions, or may not be finite
// at zero, with finite derivatives; `why` says so.
std::optional<Growth> growBlocks(mlir::func::FuncOp main, const JoinedBlocks& blocks,
                                 const GrowthRanks& ranks, std::string& why);

}  // namespace oriel

#endif  // ORIEL_PASSES_DIVIDE_GROWN_BLOCK_H_
