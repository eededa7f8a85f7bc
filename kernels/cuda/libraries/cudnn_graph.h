// Prepared graphs of cuDNN: attention and convolutions, by NVIDIA's cudnn-frontend
// (docs/decisions/0024-cudnn-frontend.md).
//
//   ORIEL_ASSIGN_OR_RETURN(std::shared_ptr<CudnnGraph> graph, MakeCudnnGraph(sdpa, device));
//   ORIEL_RETURN_IF_ERROR(device.AddScratch(graph->workspace_bytes()));
//   ..
//   return graph->Run(stream, {{SdpaGraph::kQuery, q}, ..}, device.scratch());
#ifndef ORIEL_KERNELS_CUDA_LIBRARIES_CUDNN_GRAPH_H_
#define ORIEL_KERNELS_CUDA_LIBRARIES_CUDNN_GRAPH_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/libraries/cudnn.h"
#include "runtime/base/tensor.h"

namespace oriel::kernels::cuda {

// Dimensions in the order that cuDNN names them, strides in elements.
struct CudnnTensor {
  runtime::DType dtype;
  std::vector<int64_t> dims, strides;
};

// Scaled dot-product attention, forward or backward: [b, h, rows, columns], whatever the strides
// are. Grouped where key and value have fewer heads.
struct SdpaGraph {
  enum Id : int64_t {
    kQuery = 1,
    kKey,
    kValue,
    kOutput,
    kStatistics,
    kBias,
    kCotangent,
    kQueryGrad,
    kKeyGrad,
    kValueGrad,
  };
  bool backward;
  CudnnTensor query, key, value, output;  // gradients and cotangent are laid out alike
  CudnnTensor statistics;           // [b, h, s, 1], f32: the logarithm of the sum of exponentials
  std::optional<CudnnTensor> bias;  // [b or 1, h or 1, s or 1, t], added to the scaled scores
  double scale;
  bool causal;     // no key behind the diagonal that ends at the last query and the last key
  int64_t window;  // so many keys up to the diagonal; 0: all
  // The forward pass as the operations that it consists of, where cudnn-frontend takes one for it
  // if cuDNN has that.
  bool of_operations = false;
};

// Cross-correlation of [b, c, d..] with [o, c / group, k..], or one of its derivatives. Two or
// three spatial dimensions.
struct ConvGraph {
  enum Id : int64_t { kInput = 1, kWeight, kOutput };
  enum class Kind { kForward, kInputGrad, kWeightGrad };
  Kind kind;
  CudnnTensor input, weight, output;
  std::vector<int64_t> lows, highs, strides, dilations;
};

using CudnnGraphSpec = std::variant<SdpaGraph, ConvGraph>;

// Of a device, for one thread. May be run, and recorded, any number of times.
class CudnnGraph {
 public:
  virtual ~CudnnGraph() = default;
  // Of `workspace`, which is aligned to 256 bytes.
  virtual int64_t workspace_bytes() const = 0;
  // cuDNN's name of the engine that was chosen, with its settings.
  virtual const std::string& engine() const = 0;
  // Puts it on the stream. All tensors of the graph are given, by Id, aligned to 16 bytes.
  virtual absl::Status Run(CUstream stream, const std::unordered_map<int64_t, void*>& tensors,
                           CUdeviceptr workspace) = 0;
};

// The graph of the device for it, made when it is first asked for: only engines that give the same
// bits each time, with a workspace of at most CudnnMaxWorkspace(). Unimplemented, with the reason,
// if cuDNN has none, is missing, or Oriel is built without cudnn-frontend.
absl::StatusOr<std::shared_ptr<CudnnGraph>> MakeCudnnGraph(const CudnnGraphSpec& spec,
                                                           Device& device);

// In bytes. Much more than what an engine should take, since it counts as memory in use, too.
// Tests change it.
int64_t CudnnMaxWorkspace();
void SetCudnnMaxWorkspace(int64_t bytes);

// What cuDNN needs to know of a device that is not there, in its own words (JSON).
struct AbsentDevice {
  int architecture;  // 90
  std::string properties;
};
// OK if cuDNN has an engine for the graph on such a device: it is asked, but compiles nothing. As
// MakeCudnnGraph.
absl::Status CheckCudnnGraph(const CudnnGraphSpec& spec, const Cudnn& table,
                             const AbsentDevice& device);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_LIBRARIES_CUDNN_GRAPH_H_
