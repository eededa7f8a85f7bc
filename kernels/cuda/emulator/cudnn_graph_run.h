// Runs operation graphs of cuDNN on the CPU, operation by operation, as they are described.
//
// Products, pointwise functions, reductions, reshapes and convolutions, each in doubles, rounded to
// the type of the tensor that it gives, whether that is in memory or not. Nothing here knows what
// attention is.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_CUDNN_GRAPH_RUN_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_CUDNN_GRAPH_RUN_H_

#include <string>

#include "absl/status/status.h"
#include "kernels/cuda/emulator/cudnn_descriptor.h"

namespace oriel::kernels::cuda::emulator {

struct GraphTensor {
  int64_t id;
  cudnnDataType_t type;
  std::vector<int64_t> dims, strides;
  bool is_virtual, by_value;
  int64_t alignment;

  int64_t element_bytes() const;
  // Elements from the first to the last.
  int64_t span() const;
};

const Descriptor::Attribute& OperationsOf(const Descriptor& graph);

// All tensors of the operations of a graph, by id. InvalidArgument if two differ under one id, or
// one is malformed; Unimplemented for an operation that is not run here.
absl::Status TensorsOf(const Descriptor& graph, std::map<int64_t, GraphTensor>* tensors);

// Computes it. `memory` has the address of each tensor that is not virtual.
absl::Status RunGraph(const Descriptor& graph, const std::map<int64_t, GraphTensor>& tensors,
                      const std::map<int64_t, void*>& memory);

}  // namespace oriel::kernels::cuda::emulator

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_CUDNN_GRAPH_RUN_H_
