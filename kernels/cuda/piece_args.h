// A piece of a dimension (common/piece.h), as launches are given it; for host and device code.
#ifndef ORIEL_KERNELS_CUDA_PIECE_ARGS_H_
#define ORIEL_KERNELS_CUDA_PIECE_ARGS_H_

#include <cstdint>

#include "kernels/cuda/fault.h"

namespace oriel::kernels::cuda {

// Where it begins is in device memory, so what is wrong with it is found by the kernel.
struct PieceArgs {
  const int64_t* first;  // null: at 0
  int64_t size, whole;
  int32_t launch;  // of Device::NextLaunch, if `first` is not within the whole
};

// Where kernels that look at indices tell of those that are out of range.
struct FaultArgs {
  Fault* fault;
  int32_t launch;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_PIECE_ARGS_H_
