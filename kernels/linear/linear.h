// Matrix products: matmul, linear, linear_weight_grad (ir/oriel/linear.td), linear_add
// (ir/oriel/fused.td).
//
// Dense row-major operands, results are assigned, sums are in the operands'
// type. f32 and bf16 by oneDNN, f64 (and f32 where oneDNN refuses) by blocked loops.
// Products of bf16 are summed in f32 and rounded once, with the bias and the addend; the bias
// and the result are bf16 or f32. An addend has the result's shape and type; the result may be in
// its place.
//
//   matmul               lhs [b.., m.., k..], rhs [b.., k.., n..] -> [b.., m.., n..]
//                        int transpose_lhs, transpose_rhs: stored [b.., k.., m..], [b.., n.., k..]
//                        int row_dims, sum_dims, column_dims: how many m, k and n are; 1 by default
//   linear               input [b.., k], weight [k, n], bias [n]? -> [b.., n]
//                        int transpose_weight: weight stored as [n, k]
//   linear_add           input, weight, bias?, addend [b.., n] -> [b.., n]: linear plus the addend
//   linear_weight_grad   input [b.., k], cotangent [b.., n], addend? -> [k, n], or [n, k] with
//                        int transpose_weight; sums over all rows, plus the addend
#ifndef ORIEL_KERNELS_LINEAR_LINEAR_H_
#define ORIEL_KERNELS_LINEAR_LINEAR_H_

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/linear/gemm.h"

namespace oriel::kernels {

// The product that each launch amounts to; for linear_weight_grad with `transpose_weight`
// the operands change places. The last operand of one that accumulates is the addend.
// InvalidArgument where shapes or types don't fit.
absl::StatusOr<GemmShape> MatmulShape(const KernelSpec& spec);
absl::StatusOr<GemmShape> LinearShape(const KernelSpec& spec);
absl::StatusOr<GemmShape> LinearAddShape(const KernelSpec& spec);
absl::StatusOr<GemmShape> LinearWeightGradShape(const KernelSpec& spec);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_LINEAR_LINEAR_H_
