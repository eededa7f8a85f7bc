// What launches of solve.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_SOLVE_SOLVE_ARGS_H_
#define ORIEL_KERNELS_SOLVE_SOLVE_ARGS_H_

#include <cstdint>

namespace oriel::kernels {

// Where the elements of a launch lie, in the order of substitution: each row needs those before it.
struct TriangularSystems {
  int64_t systems;     // matrices
  int64_t n, m;        // rows, right-hand sides
  bool unit_diagonal;  // else rows are divided
  // Element (i, j), j <= i, of a matrix is at first + i * row + j * column.
  int64_t first, row, column;
  // Row i of right-hand sides and result is at first_row + i * row_step.
  int64_t first_row, row_step;
};

// Right-hand sides of a block.
inline constexpr int kSolveThreads = 64;

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_SOLVE_SOLVE_ARGS_H_
