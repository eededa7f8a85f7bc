// What launches of embedding.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_EMBEDDING_GATHER_ARGS_H_
#define ORIEL_KERNELS_EMBEDDING_GATHER_ARGS_H_

#include <cstdint>

#include "kernels/cuda/piece_args.h"

namespace oriel::kernels::cuda {

// [outer, size, inner] picked or added up by `count` indices.
struct GatherArgs {
  int64_t outer, size, inner, count;
  int64_t batch_count, batch_size;
  PieceArgs rows;
  FaultArgs indices;
};

// Indices by their rows, and in order where these are equal.
struct SortedIndices {
  int64_t* rows;
  int32_t* order;  // the indices' numbers
};

// A launch of the sort is by so many bits; a block of so many threads places so many indices.
inline constexpr int kSortBits = 9, kSortThreads = 512, kSorted = 2048;
// What a block adds at a time: so many updates, and so many bytes of each.
inline constexpr int kTile = 256, kStripBytes = 128;

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_EMBEDDING_GATHER_ARGS_H_
