#include "runtime/launch/linear_plan.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "runtime/plan/plan_builder.h"
#include "runtime/train/safetensors.h"
#include "runtime/train/shuffle.h"
#include "runtime/train/test_data.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kPositions = 4, kFeatures = 6, kClasses = 5, kIgnored = -100;

void Set(plan::Launch& launch, const std::string& name, int64_t value) {
  (*launch.mutable_attributes())[name].set_i(value);
}
void Set(plan::Launch& launch, const std::string& name, double value) {
  (*launch.mutable_attributes())[name].set_f(value);
}

void AddState(plan::Plan& plan, const std::string& slot, const TensorSpec& spec) {
  plan::OptimizerState* state = plan.add_optimizer_states();
  state->set_parameter("weight");
  state->set_slot(slot);
  *state->mutable_global() = ToPlan(spec);
}

// A fixed sequence of numbers in [0, 1).
std::vector<float> Numbers(int64_t count, int64_t stream) {
  std::vector<float> numbers;
  for (int64_t i : ShuffledOrder(count, 11, stream)) {
    numbers.push_back(static_cast<float>(i) / static_cast<float>(count));
  }
  return numbers;
}

}  // namespace

plan::Plan LinearPlan(int64_t ranks, int64_t microbatches, int64_t micro_batch) {
  const TensorSpec scalar{DType::kF32, {}};
  const TensorSpec matrix{DType::kF32, {kFeatures, kClasses}};
  const TensorSpec scores{DType::kF32, {micro_batch, kPositions, kClasses}};
  const TensorSpec per_position{DType::kF32, {micro_batch, kPositions}};
  const TensorSpec indices{DType::kI64, {micro_batch, kPositions}};
  PlanBuilder b(ranks);
  b.plan().set_model_name("linear");
  const int weight = b.Parameter("weight", matrix);
  const int bias = b.Parameter("bias", {DType::kF32, {kClasses}}, /*trainable=*/false);
  const int m = b.Buffer(plan::OPTIMIZER_STATE, "weight", matrix, "exp_avg");
  const int v = b.Buffer(plan::OPTIMIZER_STATE, "weight", matrix, "exp_avg_sq");
  AddState(b.plan(), "exp_avg", matrix);
  AddState(b.plan(), "exp_avg_sq", matrix);
  const int gradient = b.Buffer(plan::GRADIENT, "weight", matrix);
  const int loss_sum = b.Buffer(plan::ACCUMULATOR, "loss_sum", scalar);
  const int token_count = b.Buffer(plan::ACCUMULATOR, "token_count", scalar);
  const int x = b.Input("x", {DType::kF32, {micro_batch, kPositions, kFeatures}});
  const int labels = b.Input("labels", indices);
  b.plan().mutable_inputs(1)->set_labels(true);
  const int rate = b.Buffer(plan::SCALAR, "learning_rate", scalar);
  const int step = b.Buffer(plan::SCALAR, "step", scalar);
  const int one = b.Buffer(plan::CONSTANT, "one", scalar);
  const float value = 1;
  b.program().mutable_buffers(one)->set_data(&value, sizeof value);
  const int logits = b.Buffer(plan::STASH, "logits", scores);
  const int logsumexp = b.Buffer(plan::STASH, "logsumexp", per_position);
  auto temporary = [&](const char* name, const TensorSpec& spec) {
    return b.Buffer(plan::TEMPORARY, name, spec);
  };
  const int batch_loss = temporary("batch_loss", scalar);
  const int batch_tokens = temporary("batch_tokens", scalar);
  const int cotangent = temporary("cotangent", scores);
  const int batch_gradient = temporary("batch_gradient", matrix);
  const int scale = temporary("scale", scalar);
  const int squares = temporary("squares", scalar);
  const int norm = temporary("norm", scalar);
  const int eval_logsumexp = temporary("eval_logsumexp", per_position);
  const int out_loss = b.Buffer(plan::OUTPUT, "loss", scalar);
  const int out_norm = b.Buffer(plan::OUTPUT, "grad_norm", scalar);
  const int out_loss_sum = b.Buffer(plan::OUTPUT, "loss_sum", scalar);
  const int out_tokens = b.Buffer(plan::OUTPUT, "token_count", scalar);
  const int out_logits = b.Buffer(plan::OUTPUT, "logits", scores);
  const int out_predictions = b.Buffer(plan::OUTPUT, "predictions", indices);
  for (const int samples :
       {logits, logsumexp, cotangent, eval_logsumexp, out_logits, out_predictions}) {
    b.CutByRanks(samples);
  }
  for (const int sum : {batch_loss, batch_tokens, batch_gradient, out_loss_sum, out_tokens}) {
    b.SumOverRanks(sum);  // of the rank's samples
  }

  b.Segment("forward");
  const auto linear = [&](int result) {
    plan::Launch& launch = b.Launch("linear", {x, weight, bias}, {result}, "/linear/Gemm");
    Set(launch, "transpose_weight", int64_t{0});
    b.Split(launch, "bpf,fc,c->bpc", "b");
  };
  const auto cross_entropy = [&](int scores, const std::vector<int>& results) {
    plan::Launch& launch = b.Launch("cross_entropy", {scores, labels}, results, "/loss");
    Set(launch, "ignore_index", kIgnored);
    b.Split(launch, "bp.,bp->,,bp", "b");
  };
  linear(logits);
  cross_entropy(logits, {batch_loss, batch_tokens, logsumexp});
  b.Split(b.Launch("add", {loss_sum, batch_loss}, {loss_sum}), ",->", "", {{0, 1}});
  b.Split(b.Launch("add", {token_count, batch_tokens}, {token_count}), ",->", "", {{0, 1}});
  b.Segment("backward");
  plan::Launch& loss_grad =
      b.Launch("cross_entropy_grad", {one, logits, labels, logsumexp}, {cotangent}, "/loss");
  Set(loss_grad, "ignore_index", kIgnored);
  b.Split(loss_grad, ",bp.,bp,bp->bp.", "b");
  plan::Launch& weight_grad =
      b.Launch("linear_weight_grad", {x, cotangent}, {batch_gradient}, "/linear/Gemm");
  Set(weight_grad, "transpose_weight", int64_t{0});
  b.Split(weight_grad, "bpf,bpc->fc", "b");
  b.Split(b.Launch("add", {gradient, batch_gradient}, {gradient}), "fc,fc->fc", "", {{0, 1}});
  b.Segment("update");
  const int whole_gradient = b.Reduced(gradient);
  const int whole_loss = b.Reduced(loss_sum);
  const int whole_count = b.Reduced(token_count);
  b.AllReduce({gradient, loss_sum, token_count}, {whole_gradient, whole_loss, whole_count});
  b.Launch("div", {one, whole_count}, {scale});
  b.Launch("mul", {whole_loss, scale}, {out_loss});
  b.Launch("sum_squares", {whole_gradient}, {squares});
  b.Launch("sqrt", {squares}, {norm});
  b.Launch("mul", {norm, scale}, {out_norm});
  plan::Launch& adamw =
      b.Launch("adamw", {weight, whole_gradient, m, v, scale, rate, step}, {weight, m, v});
  Set(adamw, "beta1", 0.9);
  Set(adamw, "beta2", 0.999);
  Set(adamw, "epsilon", 1e-8);
  Set(adamw, "weight_decay", 0.01);
  for (int buffer : {gradient, loss_sum, token_count}) b.FillZero(buffer);
  b.Segment("eval");
  linear(out_logits);
  cross_entropy(out_logits, {out_loss_sum, out_tokens, eval_logsumexp});
  plan::Launch& argmax = b.Launch("argmax", {out_logits}, {out_predictions});
  Set(argmax, "dim", int64_t{2});
  Set(argmax, "keep_dims", int64_t{0});
  b.Split(argmax, "bp.->bp", "b");

  b.Schedule(micro_batch, microbatches);
  plan::Training* training = b.plan().mutable_training();
  training->set_steps(20);
  training->set_seed(3);
  training->set_ignore_index(kIgnored);
  training->mutable_learning_rate()->set_kind(plan::LearningRate::CONSTANT);
  training->mutable_learning_rate()->set_peak(0.05);
  return b.plan();
}

void WriteLinearWeights(const std::string& folder) {
  std::vector<float> weight = Numbers(kFeatures * kClasses, 0), bias(kClasses);
  const std::vector<NamedTensor> tensors = {
      {"weight", {DType::kF32, {kFeatures, kClasses}}, weight.data()},
      {"bias", {DType::kF32, {kClasses}}, bias.data()}};
  EXPECT_TRUE(WriteSafetensors(folder + "/weights.safetensors", tensors).ok());
}

void WriteLinearShards(const std::string& folder, int64_t samples, int64_t per_shard) {
  std::filesystem::create_directories(folder);
  for (int64_t first = 0; first < samples; first += per_shard) {
    TarMembers members;
    for (int64_t i = first; i < std::min(first + per_shard, samples); ++i) {
      const std::vector<float> x = Numbers(kPositions * kFeatures, i);
      std::vector<int64_t> labels;
      for (int64_t p = 0; p < kPositions; ++p) {
        const auto row = x.begin() + p * kFeatures;
        labels.push_back(std::max_element(row, row + kClasses) - row);
      }
      labels[i % kPositions] = kIgnored;
      const std::string key = absl::StrFormat("%06d", i);
      members.emplace_back(key + ".x.npy", NpyBytes({kPositions, kFeatures}, x));
      members.emplace_back(key + ".labels.npy", NpyBytes({kPositions}, labels));
    }
    WriteTar(folder + absl::StrFormat("/shard-%04d.tar", first / per_shard), members);
  }
}

}  // namespace oriel::runtime
