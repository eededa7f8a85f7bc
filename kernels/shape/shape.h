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
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/shape/strided_copy.h"

namespace oriel::kernels {

// The bits of `value` as an element of type `dtype`, in the low bytes.
uint64_t ElementBits(DType dtype, double value);
// A launch that copies operand 0, or of concat one operand each, into the result: offsets and
// strides in elements. InvalidArgument where shapes and attributes don't fit together.
struct CopyBox {
  std::vector<StridedCopy::Dim> dims;
  int64_t source_offset;
  int64_t target_offset;
};
absl::StatusOr<CopyBox> TransposeBox(const KernelSpec& spec);
absl::StatusOr<CopyBox> BroadcastBox(const KernelSpec& spec);
absl::StatusOr<CopyBox> SliceBox(const KernelSpec& spec);
absl::StatusOr<CopyBox> PadBox(const KernelSpec& spec);
absl::StatusOr<std::vector<CopyBox>> ConcatBoxes(const KernelSpec& spec);

// Element i of the flat result is i / inner % size.
struct IotaShape {
  int64_t outer, size, inner;
  static absl::StatusOr<IotaShape> Make(const KernelSpec& spec);
};

absl::Status CheckReshape(const KernelSpec& spec);
// The bits of an element of what `fill` assigns, and of what `pad` surrounds with.
absl::StatusOr<uint64_t> FillBits(const KernelSpec& spec);
absl::StatusOr<uint64_t> PadBits(const KernelSpec& spec);

// Assigns `count` elements of `element_bytes` (1, 2, 4 or 8) each.
void FillElements(void* target, int64_t count, int64_t element_bytes, uint64_t bits,
                  int num_threads);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_SHAPE_SHAPE_H_
