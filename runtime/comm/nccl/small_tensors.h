// Tensors of an all-reduce that are too small to travel alone, such as the gradients of norms and
// biases in a bucket: NCCL does each as one of its own, in steps that take some microseconds
// whatever they carry. Those of one type are packed one behind the other, and reduced as one.
#ifndef ORIEL_RUNTIME_COMM_NCCL_SMALL_TENSORS_H_
#define ORIEL_RUNTIME_COMM_NCCL_SMALL_TENSORS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/tensor.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// How the tensors of a call are packed. All ranks get the same from the same counts and types.
struct SmallTensors {
  // What travels as one: `count` elements from byte `begin` of the packed memory on, with those
  // between the tensors, of any value.
  struct Pack {
    DType dtype;
    int64_t begin;
    int64_t count;
  };

  std::vector<Pack> packs;
  // For each buffer its first byte in the packed memory, a multiple of 16; none if it goes alone.
  std::vector<std::optional<int64_t>> places;
  int64_t bytes = 0;  // of the packed memory
};

// Packs buffers of less than 128 KiB, where at least three have the same type: packing and
// unpacking are launches, too.
SmallTensors FindSmallTensors(absl::Span<const ReduceBuffer> buffers);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_SMALL_TENSORS_H_
