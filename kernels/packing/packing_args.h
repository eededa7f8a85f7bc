// What launches of packing.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_PACKING_PACKING_ARGS_H_
#define ORIEL_KERNELS_PACKING_PACKING_ARGS_H_

#include <cstdint>

namespace oriel::kernels::cuda {

// Tensors that one launch packs: as many as fit into a launch's parameters (4 KiB).
inline constexpr int kPackTensors = 80;
// Units (of up to 16 bytes) that a block moves.
inline constexpr int kPackUnits = 1024;
inline constexpr int kPackThreads = 256;

// See RunsToSwap (packing.h); sizes in units.
struct PackTensor {
  const void* source;
  void* target;
  uint32_t outer, inner, run;
  uint32_t units;  // outer * inner * run
};

struct PackArgs {
  PackTensor tensors[kPackTensors];
  int32_t first_block[kPackTensors + 1];
  int32_t used;
};
static_assert(sizeof(PackArgs) < 4000);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_PACKING_PACKING_ARGS_H_
