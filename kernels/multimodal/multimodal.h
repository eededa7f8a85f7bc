// The merge of image features into text embeddings (ir/oriel/multimodal.td).
//
// Dense row-major, results are assigned. Values are copied bit by bit, so any
// type will do (the gradients, floats alone, write zeros). Masks are booleans.
//
//   masked_scatter       input [..], mask [..], source (any shape) -> [..]
//                        InvalidArgument if the mask selects more than the source has
//   masked_scatter_grad  cotangent [..], mask [..] -> input_grad [..], source_grad
//   merge_features       input [b, s, d], mask [b, s], features [b, n, d] -> [b, s, d]
//                        InvalidArgument, naming the sample, if it has more than n true
//                        positions
//   merge_features_grad  cotangent [b, s, d], mask [b, s]
//                        -> input_grad [b, s, d], features_grad [b, n, d]
//   check_image_slots    mask [b, s], images [b] i64 {rows_per_image} -> the mask
//                        InvalidArgument, naming the sample, if its true positions are not
//                        images * rows_per_image
#ifndef ORIEL_KERNELS_MULTIMODAL_MULTIMODAL_H_
#define ORIEL_KERNELS_MULTIMODAL_MULTIMODAL_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

struct MergeShape {
  int64_t batch;
  int64_t length;    // positions of a sample
  int64_t features;  // feature rows of a sample
  int64_t width;     // bytes of a row

  // Of merge_features, and of its gradient. InvalidArgument where types or shapes don't fit.
  static absl::StatusOr<MergeShape> Make(const KernelSpec& spec);
  static absl::StatusOr<MergeShape> MakeGrad(const KernelSpec& spec);
};

// What is said of a sample with too many true positions.
std::string TooManyPositions(const std::string& kernel, int64_t sample,
                             const std::string& positions, const std::string& features);

absl::Status CheckMaskedScatter(const KernelSpec& spec);
absl::Status CheckMaskedScatterGrad(const KernelSpec& spec);
// Of check_image_slots, whose operands and result are checked.
absl::StatusOr<int64_t> RowsPerImage(const KernelSpec& spec);

// OK if no sample has more than `features` true positions.
absl::Status CheckMergeMask(const char* kernel, const MergeShape& shape, const uint8_t* mask);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_MULTIMODAL_MULTIMODAL_H_
