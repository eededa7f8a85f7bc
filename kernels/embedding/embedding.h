// gather and scatter_add (ir/oriel/shape.td): embedding lookup and its transpose.
//
//   gather       input [a.., size, b..] of any type, indices [i..] of i64 or i32, first []?;
//                int dim, int rows? -> [a.., i.., b..]
//                int batch_dims?: the same as dim; input [c.., size, b..], indices [c.., i..] ->
//                [c.., i.., b..], each of the indices of its own c..
//   scatter_add  indices [i..], updates [a.., i.., b..] of f32, f64 or bf16, first []?;
//                int dim, int rows?
//                -> [a.., size, b..], which starts at zero (assigned, not accumulated into);
//                int batch_dims? as for gather
//
// Dense row-major. A negative index counts from the end; one out of range is
// InvalidArgument, naming its position, its value and the bounds, and nothing is
// written. Updates are added in their type, in the order of the indices;
// those of bf16 in f32, and the result, rounded once, is bf16 or f32. On a device scatter_add takes
// less than 2^31 indices.
//
// With `first` (i64) and `rows` the table is the piece [first, first + size) of one of `rows`
// rows, whose indices are given: one of another piece gathers zeros, and its update is skipped.
#ifndef ORIEL_KERNELS_EMBEDDING_EMBEDDING_H_
#define ORIEL_KERNELS_EMBEDDING_EMBEDDING_H_

#include "kernels/common/piece.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// The extents of a launch: [outer, size, inner] picked or added up by `count` indices.
struct GatherShape {
  int64_t outer;
  int64_t size;
  int64_t inner;
  int64_t count;
  // With batch dimensions `outer` is 1, and `size` and `count` are of all batches, which have so
  // many indices, and rows, each; without, of all.
  int64_t batch_count, batch_size;
  Piece rows;

  // `table` is the indexed tensor, `rows` the one with the indices' dimensions in place of `dim`.
  // `first` is operand 2, if it is there.
  static absl::StatusOr<GatherShape> Make(const KernelSpec& spec, const TensorSpec& table,
                                          const TensorSpec& indices, const TensorSpec& rows);
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_EMBEDDING_EMBEDDING_H_
