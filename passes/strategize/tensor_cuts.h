// What tensor parallelism cuts of a program's parameters: what the strategy says by name, and the
// blocks that are found.
#ifndef ORIEL_PASSES_STRATEGIZE_TENSOR_CUTS_H_
#define ORIEL_PASSES_STRATEGIZE_TENSOR_CUTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/oriel/oriel.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/strategize/blocks/tensor_blocks.h"
#include "passes/strategize/grid.h"

namespace oriel {

struct TensorCuts {
  // The dimension of a parameter that ranks of the tensor-parallel axis split, and which of them.
  struct Cut {
    int64_t dim;
    RankRange range;
  };

  // Null for a parameter that each rank has whole.
  const Cut* of(ir::ParameterOp parameter) const;
  // Whether the strategy, or a warning, says what becomes of the parameter.
  bool isKnown(const std::string& symbol) const;

  std::map<std::string, Cut> cuts;  // by symbol
  std::set<std::string> forced;     // parameters that the strategy has by name
  std::set<std::string> kept;       // those of blocks that the ranks don't divide
  std::vector<TensorBlock> blocks;  // that are split, in the order of the program
};

// Of the forward segments of `program`, whose parameters have their modules, on the grid of the
// strategy. Fails with a diagnostic where the ranks don't divide what the strategy splits by name,
// or much of the model; warns where it is little of it. With `explain`, writes there why reductions
// are not split.
mlir::FailureOr<TensorCuts> findTensorCuts(mlir::ModuleOp program, const Strategy& strategy,
                                           const Grid& grid, llvm::raw_ostream* explain);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_TENSOR_CUTS_H_
