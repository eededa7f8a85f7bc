// How the ops compute under mixed precision; docs/precision.md gives the reasons. What is not here
// has the interface's default: pointwise ops follow their operands, views move, all else is wide.
#include "ir/oriel/oriel.h"

namespace oriel::ir {

#define ORIEL_PRECISION(precision, OpTy) \
  Precision OpTy::getPrecision() { return Precision::precision; }

// Sums in f32 of products of narrow operands.
ORIEL_PRECISION(kNarrow, MatmulOp)
ORIEL_PRECISION(kNarrow, LinearOp)
ORIEL_PRECISION(kNarrow, ExpertLinearOp)
ORIEL_PRECISION(kNarrow, ConvOp)
ORIEL_PRECISION(kNarrow, ConvInputGradOp)
ORIEL_PRECISION(kNarrow, AttentionOp)
ORIEL_PRECISION(kNarrow, DeltaScanOp)

// Not pointwise, but no sums that are kept either.
ORIEL_PRECISION(kFollow, SoftmaxOp)
ORIEL_PRECISION(kFollow, RopeOp)
ORIEL_PRECISION(kFollow, ReduceMaxOp)
ORIEL_PRECISION(kFollow, ReduceMinOp)
ORIEL_PRECISION(kFollow, MaskedScatterOp)
ORIEL_PRECISION(kFollow, MergeFeaturesOp)

ORIEL_PRECISION(kMove, CastOp)
ORIEL_PRECISION(kMove, SelectOp)
ORIEL_PRECISION(kMove, TransposeOp)
ORIEL_PRECISION(kMove, BroadcastOp)
ORIEL_PRECISION(kMove, SliceOp)
ORIEL_PRECISION(kMove, PadOp)
ORIEL_PRECISION(kMove, ConcatOp)
ORIEL_PRECISION(kMove, GatherOp)
ORIEL_PRECISION(kMove, ArgmaxOp)
ORIEL_PRECISION(kMove, TopkOp)

// Their weights are near 1, where the steps of an optimizer are less than bf16 resolves: narrow
// ones would stand still.
ORIEL_PRECISION(kWideInside, LayerNormOp)
ORIEL_PRECISION(kWideInside, RmsNormOp)

// Pointwise, but steep, or of angles.
ORIEL_PRECISION(kWide, ExpOp)
ORIEL_PRECISION(kWide, LogOp)
ORIEL_PRECISION(kWide, PowOp)
ORIEL_PRECISION(kWide, SqrtOp)
ORIEL_PRECISION(kWide, RsqrtOp)
ORIEL_PRECISION(kWide, ReciprocalOp)
ORIEL_PRECISION(kWide, SinOp)
ORIEL_PRECISION(kWide, CosOp)
ORIEL_PRECISION(kWide, TanOp)
ORIEL_PRECISION(kWide, AsinOp)
ORIEL_PRECISION(kWide, AcosOp)
ORIEL_PRECISION(kWide, AtanOp)
ORIEL_PRECISION(kWide, SinhOp)
ORIEL_PRECISION(kWide, CoshOp)
ORIEL_PRECISION(kWide, AsinhOp)
ORIEL_PRECISION(kWide, AcoshOp)
ORIEL_PRECISION(kWide, AtanhOp)
ORIEL_PRECISION(kWide, EqualOp)
ORIEL_PRECISION(kWide, LessOp)
ORIEL_PRECISION(kWide, LessEqualOp)
ORIEL_PRECISION(kWide, GreaterOp)
ORIEL_PRECISION(kWide, GreaterEqualOp)

#undef ORIEL_PRECISION

// Mask and sink.
bool AttentionOp::takesWide(unsigned operand) { return operand >= 3; }
// Cosines and sines.
bool RopeOp::takesWide(unsigned operand) { return operand > 0; }

// Decays, which multiply each other over the chunks, and the state.
bool DeltaScanOp::takesWide(unsigned operand) { return operand == 3 || operand == 4; }

// Positions.
bool FloorOp::needsWide(unsigned) { return true; }
bool CeilOp::needsWide(unsigned) { return true; }
bool RoundOp::needsWide(unsigned) { return true; }
bool CastOp::needsWide(unsigned) {
  mlir::Type to = getType().getElementType();
  return to.isInteger() && !to.isInteger(1);
}

// Cotangents of weights.
bool LinearWeightGradOp::givesWide(unsigned) { return true; }
bool ExpertLinearWeightGradOp::givesWide(unsigned) { return true; }
bool ConvWeightGradOp::givesWide(unsigned) { return true; }
bool ReduceSumOp::givesWide(unsigned) { return true; }
bool ScatterAddOp::givesWide(unsigned) { return true; }
bool LayerNormGradOp::givesWide(unsigned result) { return result > 0; }
bool RmsNormGradOp::givesWide(unsigned result) { return result > 0; }

}  // namespace oriel::ir
