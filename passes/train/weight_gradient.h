// Gradients of parameters in the type in which they are kept.
#ifndef ORIEL_PASSES_TRAIN_WEIGHT_GRADIENT_H_
#define ORIEL_PASSES_TRAIN_WEIGHT_GRADIENT_H_

#include "ir/oriel/oriel.h"
#include "mlir/IR/Builders.h"
#include "passes/train/recipe.h"

namespace oriel {

// Of a trainable parameter: f32, or the parameter's type where the recipe's gradients are narrow.
mlir::RankedTensorType gradientType(ir::ParameterOp parameter, const Recipe& recipe);

// The gradient, which nothing uses yet unless it is a cotangent of something else too, with
// elements of type `elementType`: its own, or wider. What makes it and can give it wide does so,
// also where sums and moves are between; else it is cast. New ops bear the origin of what they
// follow, and `oriel.weight_gradient`. `builder` is at the end of the backward.
mlir::Value gradientAs(mlir::OpBuilder& builder, mlir::Value gradient, mlir::Type elementType);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_WEIGHT_GRADIENT_H_
