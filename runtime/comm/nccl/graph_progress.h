// Which calls of a graph have ended: what to name when the graph does not end.
//
// Behind each call that is recorded a small launch counts how often a replay has come past it
// (kernels/progress). The counts lie in pinned memory, which the host reads while the device waits
// for ever. A rank puts its calls in one order, and none waits for a later one: so the first that a
// replay has not come past is the one that does not end.
#ifndef ORIEL_RUNTIME_COMM_NCCL_GRAPH_PROGRESS_H_
#define ORIEL_RUNTIME_COMM_NCCL_GRAPH_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/progress/progress.h"

namespace oriel::runtime {

// Of one rank, and used by one thread. It must outlive graphs that are replayed.
class GraphProgress {
 public:
  // Up to so many calls of all graphs are counted; memory can't be had while a stream is captured.
  static constexpr int64_t kMaxCalls = 1 << 16;

  static absl::StatusOr<std::unique_ptr<GraphProgress>> Create(const kernels::cuda::Device& device);
  ~GraphProgress();
  GraphProgress(const GraphProgress&) = delete;
  GraphProgress& operator=(const GraphProgress&) = delete;

  // Counts a call of the graph that is being recorded: the last one on the stream. `what` names it.
  absl::Status Add(std::string what, CUstream stream);
  // The number of the graph that holds the calls since the last EndGraph.
  int64_t EndGraph();
  bool HasCalls(int64_t graph) const { return !graphs_[graph]->calls.empty(); }
  // The graph is put on a stream once more. The function names the first of its calls that this
  // replay has not come past, and is empty text if there is none; any thread may call it, until
  // this is destroyed.
  std::function<std::string()> Replay(int64_t graph);

 private:
  struct Call {
    std::string what;
    const uint32_t* seen = nullptr;  // null: not counted
  };
  struct Graph {
    std::vector<Call> calls;
    uint32_t replays = 0;
  };

  GraphProgress(const kernels::cuda::Device& device, kernels::cuda::PassCounter counter)
      : device_(device), counter_(std::move(counter)) {}

  const kernels::cuda::Device& device_;
  const kernels::cuda::PassCounter counter_;
  CUdeviceptr counted_ = 0;
  uint32_t* seen_ = nullptr;
  int64_t used_ = 0;
  std::vector<Call> open_;  // of the graph that is being recorded
  std::vector<std::shared_ptr<Graph>> graphs_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_GRAPH_PROGRESS_H_
