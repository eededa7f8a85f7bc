// What launches of embedding.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_EMBEDDING_GATHER_ARGS_H_
#define ORIEL_KERNELS_EMBEDDING_GATHER_ARGS_H_

#include <cstdint>

#include "kernels/cuda/piece_args.h"

namespace oriel::kernels::cuda {

// [outer, size, inner] picked or added up by `count` indices.
struct GatherArgs {
  int64_t outer, size, inner, count;
  PieceArgs rows;
  FaultArgs indices;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_EMBEDDING_GATHER_ARGS_H_
