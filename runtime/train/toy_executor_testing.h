// A least-squares model behind the Executor interface, to test what drives an executor without
// a compiler: w·x should be the label.
//
//   inputs      x f32[micro, 3], labels i64[micro, 2] (WriteCountingShards)
//   parameters  w f32[3], trained by SGD with momentum; bias f32[1], frozen
//   loss        mean of (w·x + bias - label)^2 / 1000 over labels that are not -100; labels above
//               1000 are refused
//   eval        predictions: w·x + bias, rounded; logits f32[micro, 2, 1]: before rounding;
//               loss_sum, token_count: of the rank if the plan says that they are pending sums
//
// What Find gives are handles, not addresses, as of a device. The host gets at the memory itself,
// or, on request, by reading and writing only.
//
// Over two grids the first has x and w, the last one bias, labels and loss; w·x goes from one to
// the other, and the loss's slope along it back.
#ifndef ORIEL_RUNTIME_TRAIN_TOY_EXECUTOR_TESTING_H_
#define ORIEL_RUNTIME_TRAIN_TOY_EXECUTOR_TESTING_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/exec/executor.h"

namespace oriel::runtime {

plan::Plan MakeToyPlan(int64_t ranks, int64_t global_batch, int64_t micro_batch, int64_t steps);
// The same model over two grids, which may cut the samples into different shares: of a microbatch
// there are micro_batch for each rank of the smaller grid. All forwards are before all backwards,
// which go from the last microbatch to the first.
plan::Plan MakeTwoGridToyPlan(int64_t first_ranks, int64_t last_ranks, int64_t global_batch,
                              int64_t micro_batch, int64_t steps);
// Adds ranks that have the samples of others, on a single grid: `copies` of each.
void AddCopies(int64_t copies, plan::Plan* plan);
// The file with its initial weights, "toy.safetensors".
void WriteToyWeights(const std::string& folder);

class ToyExecutor : public Executor {
 public:
  enum class Memory { kHost, kDevice };
  // `world` may be null where no segment runs on several ranks.
  ToyExecutor(const plan::Plan& plan, int64_t rank, Communicator* world,
              Memory memory = Memory::kHost);

  absl::Status Run(std::string_view segment, int64_t microbatch) override;
  absl::StatusOr<BufferView> Find(plan::BufferKind kind, std::string_view ref,
                                  std::string_view slot) const override;
  void* HostMemory(const BufferView& view) const override;
  absl::Status Read(const BufferView& view, int64_t offset, void* target,
                    int64_t bytes) const override;
  absl::Status Write(const BufferView& view, int64_t offset, const void* source,
                     int64_t bytes) override;
  absl::StatusOr<SegmentProfile> Profile(std::string_view) const override {
    return SegmentProfile();
  }
  const plan::Program& program() const override { return *program_; }

 private:
  char* BytesOf(const BufferView& view) const;
  bool Has(const std::string& buffer) const { return memory_.count(buffer) > 0; }
  float* Data(const std::string& buffer) {
    return reinterpret_cast<float*>(memory_.at(buffer).data());
  }
  int64_t Label(int64_t sample, int64_t place) {
    return reinterpret_cast<const int64_t*>(memory_.at("labels").data())[sample * 2 + place];
  }
  // w·x of the rank's samples.
  absl::StatusOr<std::vector<float>> Products();
  // What one grid has of each sample, where the other needs it.
  absl::StatusOr<std::vector<float>> Transfer(const std::vector<float>& values, bool sends);
  absl::Status AddLoss(const std::vector<float>& products, float* loss_sum, float* token_count);
  absl::Status Forward(int64_t microbatch);
  absl::Status Backward(int64_t microbatch);
  absl::Status Update();
  absl::Status Eval();

  const plan::Plan& plan_;
  const plan::Program* program_;
  const int64_t rank_;
  Communicator* world_;
  const bool on_host_;
  int64_t samples_ = 0;  // of the rank in a microbatch
  std::map<std::string, std::vector<char>> memory_;
  std::map<int64_t, std::vector<float>> stash_;  // w·x of the microbatches in flight
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_TOY_EXECUTOR_TESTING_H_
