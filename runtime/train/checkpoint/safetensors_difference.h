// How far the tensors of one file are from those of another.
#ifndef ORIEL_RUNTIME_TRAIN_CHECKPOINT_SAFETENSORS_DIFFERENCE_H_
#define ORIEL_RUNTIME_TRAIN_CHECKPOINT_SAFETENSORS_DIFFERENCE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/train/checkpoint/safetensors.h"

namespace oriel::runtime {

struct TensorDifference {
  double largest = 0;  // ‖a - b‖ / ‖b‖, 2-norms in f64, of the tensor that is furthest away
  std::string tensor;  // its name
  int64_t compared = 0;        // tensors
  int64_t zeros = 0;           // tensors that are zero but for rounding, and not compared
  double largest_element = 0;  // |a - b| of the elements of all tensors, those zeros too
  std::string element_tensor;  // where it is
};

// Of `actual` from `expected`, which must have the same names and shapes, of floats
// (InvalidArgument). A tensor whose norm in `expected` is below `zero_share` of that of all tensors
// together is not compared. What is not finite in `actual` alone makes `largest` and
// `largest_element` infinite.
absl::StatusOr<TensorDifference> CompareTensors(const SafetensorsFile& actual,
                                                const SafetensorsFile& expected,
                                                double zero_share = 1e-7);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CHECKPOINT_SAFETENSORS_DIFFERENCE_H_
