// What launches of cross_entropy.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_LOSS_LOSS_ARGS_H_
#define ORIEL_KERNELS_LOSS_LOSS_ARGS_H_

#include <cstdint>

#include "kernels/cuda/piece_args.h"

namespace oriel::kernels::cuda {

struct LossArgs {
  int64_t rows, vocabulary, ignore_index;
  PieceArgs classes;
  FaultArgs labels;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_LOSS_LOSS_ARGS_H_
