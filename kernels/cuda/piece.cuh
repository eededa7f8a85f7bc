// Where a piece of a dimension begins, in device code.
#ifndef ORIEL_KERNELS_CUDA_PIECE_CUH_
#define ORIEL_KERNELS_CUDA_PIECE_CUH_

#include "kernels/cuda/device_code.cuh"
#include "kernels/cuda/piece_args.h"

namespace oriel::kernels::cuda {

// 0, and a fault, if it is not within the whole.
__device__ inline int64_t PieceFirst(const PieceArgs& piece, Fault* fault) {
  if (piece.first == nullptr) return 0;
  const int64_t first = *piece.first;
  if (first >= 0 && first <= piece.whole - piece.size) return first;
  ReportFault(fault, piece.launch, kIndexOutOfRange, first, piece.whole);
  return 0;
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_PIECE_CUH_
