// The parts of a model that stages are made of: its blocks, and what is between them.
#ifndef ORIEL_PASSES_STAGE_PARTS_H_
#define ORIEL_PASSES_STAGE_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/stage/block_names.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// Of a module, i64s: by part, its stage, in place of what the strategy says of cuts.
inline constexpr llvm::StringLiteral kPartStagesAttr("oriel.part_stages");

// Of a module, f64s: by part, its seconds on a rank, of the forward and of the backward's halves.
inline constexpr llvm::StringLiteral kPartTimesAttr("oriel.part_times");

struct Part {
  std::string name;
  int64_t block = -1;      // -1: between blocks
  int64_t parameters = 0;  // elements; of what several parts use, in the first
  // Predicted seconds (part_times.h). The backward's weight half is what no earlier part waits for.
  double forward = 0, backwardInput = 0, backwardWeight = 0;

  double seconds() const { return forward + backwardInput + backwardWeight; }
};

struct ModelParts {
  BlockNames names;
  std::vector<Part> parts;                       // in an order in which each reads earlier ones
  llvm::DenseMap<mlir::Operation*, int> partOf;  // of each op of @forward, but the return
  // By origin. Of ops with one origin, one that depends on inputs and parameters counts.
  llvm::DenseMap<int64_t, int> partOfOrigin;
  // Of the ops that depend on inputs and parameters, and are not between blocks.
  llvm::DenseMap<mlir::Operation*, int64_t> blockOf;
  // By block, where something repeats: its ops, in an order in which those of a tower's blocks
  // correspond but for conversions, and its tower.
  std::vector<std::vector<mlir::Operation*>> blockOps;
  std::vector<int> towerOf;
};

// Reads @forward and, for what only it reads of that, @backward. An op that depends on inputs and
// parameters is in a block or behind the last block that it depends on; if it depends on none, with
// its first reader. What is between two blocks is one part or several, each with a weight, where
// only one value goes from one to the next; without parameters it belongs to the block before. Ops
// that do not depend on both (masks, positions, tables of parameters) are in the part of their
// first reader. Where nothing repeats, all parts count as blocks.
ModelParts findParts(mlir::func::FuncOp forward, mlir::func::FuncOp backward,
                     const Strategy& strategy);

// Gives the module `oriel.blocks`, for Blocks: that of the model's @forward, or a clone of it.
void annotateBlocks(mlir::ModuleOp module, const ModelParts& model);

// Whether the op makes nothing but its operand in another floating-point type.
bool isConversion(mlir::Operation* op);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_PARTS_H_
