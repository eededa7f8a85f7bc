// Element conversion: of data into the type that a plan's input has, of weights in files into a
// parameter's.
#ifndef ORIEL_RUNTIME_TRAIN_CONVERT_H_
#define ORIEL_RUNTIME_TRAIN_CONVERT_H_

#include "absl/status/status.h"
#include "runtime/base/box.h"
#include "runtime/base/tensor.h"

namespace oriel::runtime {

// Whether data of type `from` may fill an input of type `to`: floats of any width into
// floats, integers and booleans into floats (the value, no scaling), integers into integers.
// Not: floats into integers, anything but booleans into booleans.
bool IsConvertible(DType from, DType to);

// Converts `count` elements; addresses may be unaligned and must not overlap. Finite floats stay
// so. OutOfRange, with value and index, if an integer does not fit the narrower type.
// IsConvertible.
absl::Status ConvertElements(DType from, const void* source, DType to, void* target, int64_t count);

// Whether a tensor in a file may become one with this type: of the same shape, and of the same
// type or floats both.
bool CanRead(const TensorSpec& stored, const TensorSpec& wanted);

// CopyBox between tensors of different types. Floats are rounded to nearest, ties to even.
absl::Status ConvertBox(const Box& from, DType from_type, const void* source, const Box& to,
                        DType to_type, void* target);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CONVERT_H_
