// The segment that steps the optimizer.
#ifndef ORIEL_PASSES_TRAIN_UPDATE_H_
#define ORIEL_PASSES_TRAIN_UPDATE_H_

#include "ir/oriel/oriel.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/train/recipe.h"

namespace oriel {

// Names that segments, plan and runtime agree on.
inline constexpr char kLossSum[] = "loss_sum";
inline constexpr char kTokenCount[] = "token_count";
inline constexpr char kMaster[] = "master";  // an optimizer state's slot

// Makes @update of the trainable parameters. Gradients and accumulators are sums over the
// microbatches (and, once partitioned, over the ranks); the step uses the gradient of the
// mean loss,
//   g = gradient / max(token_count, 1),
// clipped as torch.nn.utils.clip_grad_norm_ does: times min(1, clip_norm / (‖g‖ + 1e-6)), ‖g‖
// over all parameters. Both factors reach the optimizer op as one `gradient_scale`.
// Of a bf16 parameter the f32 optimizer state "master" is stepped, and the parameter is its rounded
// value. Optimizer states are f32.
// Outputs, all f32 of rank 0: "loss" (the mean), "grad_norm" (‖g‖ before clipping), and
// "token_count". Gradients and accumulators are returned as zeros, for the next step.
mlir::func::FuncOp buildUpdate(mlir::ModuleOp module, mlir::Location loc, const Recipe& recipe,
                               llvm::ArrayRef<ir::ParameterOp> trainable,
                               const llvm::StringMap<unsigned>& rank);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_UPDATE_H_
