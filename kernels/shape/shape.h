// Kernels that move or repeat elements (ir/oriel/shape.td), and fill.
//
// Dense row-major buffers of any type, results are assigned, operands and
// results don't overlap (but for `reshape`, which does nothing in place).
//
//   iota       -> [..] of i64, i32, f32 or f64; int dim
//   fill       -> any; float value, converted to the result's type
//   reshape    any -> the same number of elements; a plain copy
//   transpose  any -> permuted; ints permutation
//   broadcast  any -> a shape that it broadcasts to
//   slice      any -> box; ints starts, limits, strides
//   pad        any -> grown; ints low, high, interior, float value
//   concat     any number -> joined; int dim
#ifndef ORIEL_KERNELS_SHAPE_SHAPE_H_
#define ORIEL_KERNELS_SHAPE_SHAPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// The bits of `value` as an element of type `dtype`, in the low bytes.
uint64_t ElementBits(DType dtype, double value);
// Assigns `count` elements of `element_bytes` (1, 2, 4 or 8) each.
void FillElements(void* target, int64_t count, int64_t element_bytes, uint64_t bits,
                  int num_threads);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_SHAPE_SHAPE_H_
