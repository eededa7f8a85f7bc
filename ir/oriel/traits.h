// Facts about ops that passes ask for, without a method of their own.
#ifndef ORIEL_IR_ORIEL_TRAITS_H_
#define ORIEL_IR_ORIEL_TRAITS_H_

#include "mlir/IR/OpDefinition.h"

namespace oriel::ir {

// What one sample gives depends on the other samples of the batch, so that the op can't be
// computed on a part of the batch.
template <typename Op>
class CouplesSamples : public mlir::OpTrait::TraitBase<Op, CouplesSamples> {};

// Its derivative is 0 wherever it has one: nothing in front of it has a gradient by way of it.
template <typename Op>
class StepFunction : public mlir::OpTrait::TraitBase<Op, StepFunction> {};

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_TRAITS_H_
