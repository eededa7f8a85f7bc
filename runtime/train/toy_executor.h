// A least-squares model behind the Executor interface, to test what drives an executor without
// a compiler: w·x should be the label.
//
//   inputs      x f32[micro, 3], labels i64[micro, 2] (WriteCountingShards)
//   parameters  w f32[3], trained by SGD with momentum; bias f32[1], frozen
//   loss        mean of (w·x + bias - label)^2 / 1000 over labels that are not -100
//   eval        predictions: w·x + bias, rounded; logits f32[micro, 2, 1]: before rounding;
//               loss_sum, token_count: of the rank if the plan says that they are pending sums
#ifndef ORIEL_RUNTIME_TRAIN_TOY_EXECUTOR_H_
#define ORIEL_RUNTIME_TRAIN_TOY_EXECUTOR_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/exec/executor.h"

namespace oriel::runtime {

plan::Plan MakeToyPlan(int64_t ranks, int64_t global_batch, int64_t micro_batch, int64_t steps);
// Adds ranks that have the samples of others: `copies` of each.
void AddCopies(int64_t copies, plan::Plan* plan);
// The file with its initial weights, "toy.safetensors".
void WriteToyWeights(const std::string& folder);

class ToyExecutor : public Executor {
 public:
  // `world` may be null where no segment runs on several ranks.
  ToyExecutor(const plan::Plan& plan, int64_t rank, Communicator* world);

  absl::Status Run(std::string_view segment, int64_t microbatch) override;
  absl::StatusOr<BufferView> Find(plan::BufferKind kind, std::string_view ref,
                                  std::string_view slot) const override;
  absl::StatusOr<SegmentProfile> Profile(std::string_view) const override {
    return SegmentProfile();
  }
  const plan::Program& program() const override { return *program_; }

 private:
  float* Data(const std::string& buffer) {
    return reinterpret_cast<float*>(memory_.at(buffer).data());
  }
  const int64_t* Labels() { return reinterpret_cast<const int64_t*>(memory_.at("labels").data()); }
  float Predict(int64_t sample);
  void Forward(float* loss_sum, float* token_count);
  void Backward();
  absl::Status Update();
  absl::Status Eval();

  const plan::Plan& plan_;
  const plan::Program* program_;
  Communicator* world_;
  std::map<std::string, std::vector<char>> memory_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_TOY_EXECUTOR_H_
