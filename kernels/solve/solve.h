// Triangular systems of equations (oriel.triangular_solve).
//
//   operands: matrix [.., n, n], rhs [.., n, m]; result: X [.., n, m] with op(T) X = rhs
//   attributes: upper (T is the upper triangle, else the lower one), transpose (op), unit_diagonal
//   (T's diagonal is 1)
//
// f32 and f64, all of one type. By substitution, in the element type: a row's known terms are
// subtracted one by one in the order in which rows follow, then it is divided by the diagonal. What
// lies beyond the triangle, and the diagonal where it is 1, is not read. Zeros on the diagonal give
// infinities and NaN. Assigns; the result overlaps no operand.
#ifndef ORIEL_KERNELS_SOLVE_SOLVE_H_
#define ORIEL_KERNELS_SOLVE_SOLVE_H_

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/solve/solve_args.h"

namespace oriel::kernels {

// Malformed if shapes, types or attributes do not fit each other.
absl::StatusOr<TriangularSystems> SystemsOf(const KernelSpec& spec);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_SOLVE_SOLVE_H_
