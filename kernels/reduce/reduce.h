// Reductions over dimensions, running sums, argmax, topk and places of values (ir/oriel/shape.td).
//
// Dense row-major operands, results are assigned. f32, f64, bf16 (of which a reduction's
// result may be f32), i64 and i32 (maximum and minimum also bool). Sums, means and products of
// floats are accumulated in double, of integers in int64 (they wrap; a mean of integers truncates).
// The order of summation depends on the shape alone. reduce_max and reduce_min give NaN if an
// element is NaN; over no elements they give the lowest and the highest value.
//
//   reduce_sum, _mean, _max, _min, _prod   x; ints dims (sorted), int keep_dims
//   cumsum                                 x; int dim, exclusive, reverse
//   argmax                                 x; int dim, keep_dims -> i64 or i32: the first
//                                          largest, or the first NaN
//   remaining_from                         x [n.., m], value [n..], first []?; int size?
//                                          -> i64 [n..]: size - i of the first element i of a
//                                          row that is the value (NaN is NaN), 0 without one;
//                                          `first` and `size`: common/piece.h
//   topk                                   x; int k, dim, largest -> i64: in descending
//                                          (ascending) order, equal ones by ascending
//                                          index, NaN as the largest
#ifndef ORIEL_KERNELS_REDUCE_REDUCE_H_
#define ORIEL_KERNELS_REDUCE_REDUCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/common/piece.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// Of the kernel remaining_from.
struct RowsWithValue {
  int64_t rows;
  Piece elements;  // of a row

  // InvalidArgument if operands or result don't fit.
  static absl::StatusOr<RowsWithValue> Make(const KernelSpec& spec);
};

// The operand's dimensions, merged into alternating kept and reduced ones.
struct ReducePlan {
  struct Dim {
    int64_t size;
    bool reduced;
  };
  std::vector<Dim> dims;
  int64_t reduced_elements = 1;  // that go into one result
  int64_t results = 1;

  // InvalidArgument if `dims` or the result's shape don't fit.
  static absl::StatusOr<ReducePlan> Make(const KernelSpec& spec);
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_REDUCE_REDUCE_H_
