// Element conversion of data into the type that a plan's input has.
#ifndef ORIEL_RUNTIME_TRAIN_CONVERT_H_
#define ORIEL_RUNTIME_TRAIN_CONVERT_H_

#include "absl/status/status.h"
#include "runtime/base/tensor.h"

namespace oriel::runtime {

// Whether data of type `from` may fill an input of type `to`: floats of any width into
// floats, integers and booleans into floats (the value, no scaling), integers into integers.
// Not: floats into integers, anything but booleans into booleans.
bool IsConvertible(DType from, DType to);

// Converts `count` elements; addresses may be unaligned and must not overlap. OutOfRange,
// naming value and index, if an integer does not fit the narrower type. Requires IsConvertible.
absl::Status ConvertElements(DType from, const void* source, DType to, void* target, int64_t count);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CONVERT_H_
