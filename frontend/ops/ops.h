// Importers of ONNX ops, one file per family.
#ifndef ORIEL_FRONTEND_OPS_OPS_H_
#define ORIEL_FRONTEND_OPS_OPS_H_

namespace oriel {

class OpRegistry;

void registerActivationOps(OpRegistry& registry);
void registerAttentionOps(OpRegistry& registry);
void registerConstantOps(OpRegistry& registry);
void registerContribAttention(OpRegistry& registry);
void registerConvOps(OpRegistry& registry);
void registerDropout(OpRegistry& registry);
void registerEinsum(OpRegistry& registry);
void registerElementwiseOps(OpRegistry& registry);
void registerFoldOps(OpRegistry& registry);
void registerFourierOps(OpRegistry& registry);
void registerGridSample(OpRegistry& registry);
void registerIndexingOps(OpRegistry& registry);
void registerLinearAttention(OpRegistry& registry);
void registerLinearOps(OpRegistry& registry);
void registerLosses(OpRegistry& registry);
void registerMaskingOps(OpRegistry& registry);
void registerNormalizationOps(OpRegistry& registry);
void registerPad(OpRegistry& registry);
void registerPoolOps(OpRegistry& registry);
void registerRecurrentOps(OpRegistry& registry);
void registerReduceOps(OpRegistry& registry);
void registerResize(OpRegistry& registry);
void registerRotaryEmbedding(OpRegistry& registry);
void registerScatterOps(OpRegistry& registry);
void registerSequenceOps(OpRegistry& registry);
void registerShapeOps(OpRegistry& registry);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OPS_OPS_H_
