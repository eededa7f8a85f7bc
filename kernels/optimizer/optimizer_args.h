// What launches of optimizer.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_OPTIMIZER_OPTIMIZER_ARGS_H_
#define ORIEL_KERNELS_OPTIMIZER_OPTIMIZER_ARGS_H_

#include <cstdint>

namespace oriel::kernels::cuda {

// Parameters that one launch steps: as many as fit into a launch's parameters (4 KiB). Their
// addresses are in the launch, so one that is recorded keeps them.
inline constexpr int kStepTensors = 45;
// Elements that a block steps at a time.
inline constexpr int64_t kStepChunk = 8 * 1024;

struct StepTensor {
  // sgd without states, sgd_momentum without v; p of f32 without the last.
  const void *p, *gradient, *m, *v, *remainder;
  void *new_p, *new_m, *new_v;
  void* behind;  // p' rounded, or its remainder; null for none
  int64_t count;
};

struct StepArgs {
  StepTensor tensors[kStepTensors];
  int32_t first_chunk[kStepTensors + 1];
  int32_t used;
  double beta1, beta2, epsilon;  // of adamw
  double momentum;               // of sgd_momentum
  double weight_decay;
  int32_t nesterov;
};
static_assert(sizeof(StepArgs) < 4000);

// Tensors whose squares one launch sums: as many as fit into a launch's parameters (4 KiB).
inline constexpr int kSquaresTensors = 120;
// Elements that a block sums.
inline constexpr int64_t kSquaresChunk = 16 * 1024;

struct SquaresArgs {
  const void* tensors[kSquaresTensors];
  int64_t counts[kSquaresTensors];
  int32_t first_block[kSquaresTensors + 1];
  uint32_t is_bf16[(kSquaresTensors + 31) / 32];
  int32_t used;
};
static_assert(sizeof(SquaresArgs) < 4000);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_OPTIMIZER_OPTIMIZER_ARGS_H_
