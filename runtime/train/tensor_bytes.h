// Sizes of tensors whose shape comes from a file.
#ifndef ORIEL_RUNTIME_TRAIN_TENSOR_BYTES_H_
#define ORIEL_RUNTIME_TRAIN_TENSOR_BYTES_H_

#include <optional>

#include "runtime/base/tensor.h"

namespace oriel::runtime {

// Bytes of a tensor; nothing if a size is negative or the product does not fit 63 bits.
inline std::optional<int64_t> CheckedBytes(const TensorSpec& spec) {
  int64_t bytes = DTypeBytes(spec.dtype);
  for (int64_t size : spec.shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_TENSOR_BYTES_H_
