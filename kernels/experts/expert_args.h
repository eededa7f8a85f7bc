// What launches of experts.cu and experts_mma.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_EXPERTS_EXPERT_ARGS_H_
#define ORIEL_KERNELS_EXPERTS_EXPERT_ARGS_H_

#include <cstdint>

namespace oriel::kernels::cuda {

// Rows and columns of the result that a block computes, by plain arithmetic and by tensor cores,
// and its threads.
inline constexpr int kExpertTile = 64, kExpertMmaTile = 128;
inline constexpr int kExpertThreads = 256;
inline constexpr int kExpertTableThreads = 512;

struct ExpertArgs {
  int64_t choices;
  int32_t depth, columns;  // of an expert's matrix
  int32_t per_row;         // choices of one row of the input
  int32_t experts;
  int32_t tiles;  // of rows: the most that there may be
  bool transposed;
  bool accumulates;  // into the result
};

// A tile of an expert's rows: their place among the sorted choices. Of no expert: -1.
struct RowTile {
  int32_t expert, first;
};

// Choices by expert, those of one in order, in device memory.
struct ExpertTable {
  const int64_t* sorted;  // experts
  const int32_t* order;   // the choices' numbers
  int32_t* begin;         // of each expert's choices, and where the last one's end: experts + 1
  RowTile* tiles;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_EXPERTS_EXPERT_ARGS_H_
