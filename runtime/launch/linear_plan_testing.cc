#include "runtime/launch/linear_plan_testing.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/train/checkpoint/safetensors.h"
#include "runtime/train/data_testing.h"
#include "runtime/train/shuffle.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kPositions = 4, kFeatures = 6, kClasses = 5, kIgnored = -100;

void Set(plan::Launch& launch, const std::string& name, int64_t value) {
  (*launch.mutable_attributes())[name].set_i(value);
}
void Set(plan::Launch& launch, const std::string& name, double value) {
  (*launch.mutable_attributes())[name].set_f(value);
}

// A fixed sequence of numbers in [0, 1).
std::vector<float> Numbers(int64_t count, int64_t stream) {
  std::vector<float> numbers;
  for (int64_t i : ShuffledOrder(count, 11, stream)) {
    numbers.push_back(static_cast<float>(i) / static_cast<float>(count));
  }
  return numbers;
}

TensorSpec Scalar() { return {DType::kF32, {}}; }
TensorSpec Weights() { return {DType::kF32, {kFeatures, kClasses}}; }
// Of so many samples.
TensorSpec Features(int64_t samples) { return {DType::kF32, {samples, kPositions, kFeatures}}; }
TensorSpec Scores(int64_t samples) { return {DType::kF32, {samples, kPositions, kClasses}}; }
TensorSpec PerPosition(DType dtype, int64_t samples) { return {dtype, {samples, kPositions}}; }

// The steps of the model, of which a plan's grids run all or some.
class LinearPlanBuilder : public PlanBuilder {
 public:
  explicit LinearPlanBuilder(int64_t ranks) : PlanBuilder(ranks) {
    plan().set_model_name("linear");
  }

  // Makes the buffers of a grid that has the weights.
  void Model(int64_t samples) {
    weight_ = Parameter("weight", Weights());
    bias_ = Parameter("bias", {DType::kF32, {kClasses}}, /*trainable=*/false);
    m_ = State("exp_avg");
    v_ = State("exp_avg_sq");
    gradient_ = Buffer(plan::GRADIENT, "weight", Weights());
    x_ = Input("x", Features(samples));
    rate_ = Buffer(plan::SCALAR, "learning_rate", Scalar());
    step_ = Buffer(plan::SCALAR, "step", Scalar());
    batch_gradient_ = Sum("batch_gradient", plan::TEMPORARY, Weights());
    squares_ = Buffer(plan::TEMPORARY, "squares", Scalar());
    norm_ = Buffer(plan::TEMPORARY, "norm", Scalar());
  }
  // And of one that has the loss.
  void Loss(int64_t samples) {
    loss_sum_ = Buffer(plan::ACCUMULATOR, "loss_sum", Scalar());
    token_count_ = Buffer(plan::ACCUMULATOR, "token_count", Scalar());
    labels_ = Input("labels", PerPosition(DType::kI64, samples));
    plan().mutable_inputs(plan().inputs_size() - 1)->set_labels(true);
    one_ = Buffer(plan::CONSTANT, "one", Scalar());
    const float one = 1;
    program().mutable_buffers(one_)->set_data(&one, sizeof one);
    batch_loss_ = Sum("batch_loss", plan::TEMPORARY, Scalar());
    batch_tokens_ = Sum("batch_tokens", plan::TEMPORARY, Scalar());
    eval_logsumexp_ = Samples("eval_logsumexp", plan::TEMPORARY, PerPosition(DType::kF32, samples));
    out_loss_sum_ = Sum("loss_sum", plan::OUTPUT, Scalar());
    out_tokens_ = Sum("token_count", plan::OUTPUT, Scalar());
    predictions_ = Samples("predictions", plan::OUTPUT, PerPosition(DType::kI64, samples));
  }

  void Logits(int logits) {
    plan::Launch& launch = Launch("linear", {x_, weight_, bias_}, {logits}, "/linear/Gemm");
    Set(launch, "transpose_weight", int64_t{0});
    Split(launch, "bpf,fc,c->bpc", "b");
  }
  void AccumulateLoss(int logits, int logsumexp) {
    CrossEntropy(logits, {batch_loss_, batch_tokens_, logsumexp});
    Split(Launch("add", {loss_sum_, batch_loss_}, {loss_sum_}), ",->", "", {{0, 1}});
    Split(Launch("add", {token_count_, batch_tokens_}, {token_count_}), ",->", "", {{0, 1}});
  }
  void LossGradient(int logits, int logsumexp, int cotangent) {
    plan::Launch& launch =
        Launch("cross_entropy_grad", {one_, logits, labels_, logsumexp}, {cotangent}, "/loss");
    Set(launch, "ignore_index", kIgnored);
    Split(launch, ",bp.,bp,bp->bp.", "b");
  }
  void AccumulateGradient(int cotangent) {
    plan::Launch& launch =
        Launch("linear_weight_grad", {x_, cotangent}, {batch_gradient_}, "/linear/Gemm");
    Set(launch, "transpose_weight", int64_t{0});
    Split(launch, "bpf,bpc->fc", "b");
    Split(Launch("add", {gradient_, batch_gradient_}, {gradient_}), "fc,fc->fc", "", {{0, 1}});
  }
  // One over the count, and the mean loss.
  void FinishLoss(int scale, int loss) {
    AllReduce({loss_sum_, token_count_}, {Reduced(loss_sum_), whole_count()});
    Launch("div", {one_, whole_count()}, {scale});
    Launch("mul", {Reduced(loss_sum_), scale}, {loss});
  }
  int whole_count() { return Reduced(token_count_); }
  void ResetLoss() {
    FillZero(loss_sum_);
    FillZero(token_count_);
  }
  void Step(int scale, int grad_norm) {
    const int whole = Reduced(gradient_);
    AllReduce({gradient_}, {whole});
    Launch("sum_squares", {whole}, {squares_});
    Launch("sqrt", {squares_}, {norm_});
    Launch("mul", {norm_, scale}, {grad_norm});
    plan::Launch& adamw =
        Launch("adamw", {weight_, whole, m_, v_, scale, rate_, step_}, {weight_, m_, v_});
    Set(adamw, "beta1", 0.9);
    Set(adamw, "beta2", 0.999);
    Set(adamw, "epsilon", 1e-8);
    Set(adamw, "weight_decay", 0.01);
    FillZero(gradient_);
  }
  void EvaluateLoss(int logits) {
    CrossEntropy(logits, {out_loss_sum_, out_tokens_, eval_logsumexp_});
    plan::Launch& argmax = Launch("argmax", {logits}, {predictions_});
    Set(argmax, "dim", int64_t{2});
    Set(argmax, "keep_dims", int64_t{0});
    Split(argmax, "bp.->bp", "b");
  }

  int Sum(const std::string& name, plan::BufferKind kind, const TensorSpec& spec) {
    const int index = Buffer(kind, name, spec);
    SumOverRanks(index);
    return index;
  }
  int Samples(const std::string& name, plan::BufferKind kind, const TensorSpec& spec,
              int64_t slots = 1) {
    const int index = slots == 1 ? Buffer(kind, name, spec) : Ring(kind, name, spec, slots);
    CutByRanks(index);
    return index;
  }

 private:
  int State(const std::string& slot) {
    plan::OptimizerState* state = plan().add_optimizer_states();
    state->set_parameter("weight");
    state->set_slot(slot);
    *state->mutable_global() = ToPlan(Weights());
    return Buffer(plan::OPTIMIZER_STATE, "weight", Weights(), slot);
  }
  void CrossEntropy(int logits, const std::vector<int>& results) {
    plan::Launch& launch = Launch("cross_entropy", {logits, labels_}, results, "/loss");
    Set(launch, "ignore_index", kIgnored);
    Split(launch, "bp.,bp->,,bp", "b");
  }

  int weight_ = -1, bias_ = -1, m_ = -1, v_ = -1, gradient_ = -1, x_ = -1, rate_ = -1, step_ = -1,
      batch_gradient_ = -1, squares_ = -1, norm_ = -1;
  int loss_sum_ = -1, token_count_ = -1, labels_ = -1, one_ = -1, batch_loss_ = -1,
      batch_tokens_ = -1, eval_logsumexp_ = -1, out_loss_sum_ = -1, out_tokens_ = -1,
      predictions_ = -1;
};

void SetTraining(plan::Plan& plan) {
  plan::Training* training = plan.mutable_training();
  training->set_steps(20);
  training->set_seed(3);
  training->set_ignore_index(kIgnored);
  training->mutable_learning_rate()->set_kind(plan::LearningRate::CONSTANT);
  training->mutable_learning_rate()->set_peak(0.05);
}

}  // namespace

plan::Plan LinearPlan(int64_t ranks, int64_t microbatches, int64_t micro_batch) {
  LinearPlanBuilder b(ranks);
  b.Model(micro_batch);
  b.Loss(micro_batch);
  const int logits = b.Samples("logits", plan::STASH, Scores(micro_batch));
  const int logsumexp = b.Samples("logsumexp", plan::STASH, PerPosition(DType::kF32, micro_batch));
  const int cotangent = b.Samples("cotangent", plan::TEMPORARY, Scores(micro_batch));
  const int scale = b.Buffer(plan::TEMPORARY, "scale", Scalar());
  const int loss = b.Buffer(plan::OUTPUT, "loss", Scalar());
  const int grad_norm = b.Buffer(plan::OUTPUT, "grad_norm", Scalar());
  const int out_logits = b.Samples("logits", plan::OUTPUT, Scores(micro_batch));

  b.Segment("forward");
  b.Logits(logits);
  b.AccumulateLoss(logits, logsumexp);
  b.Segment("backward");
  b.LossGradient(logits, logsumexp, cotangent);
  b.AccumulateGradient(cotangent);
  b.Segment("update");
  b.FinishLoss(scale, loss);
  b.Step(scale, grad_norm);
  b.ResetLoss();
  b.Segment("eval");
  b.Logits(out_logits);
  b.EvaluateLoss(out_logits);

  b.Schedule(micro_batch, microbatches);
  SetTraining(b.plan());
  return b.plan();
}

plan::Plan TwoStageLinearPlan(int64_t model_ranks, int64_t loss_ranks, int64_t microbatches,
                              int64_t samples) {
  constexpr int64_t kSlots = 2;
  LinearPlanBuilder b(model_ranks);
  const int64_t model_samples = samples / model_ranks, loss_samples = samples / loss_ranks;
  struct Ends {
    int model, loss;  // the buffers of the two grids
  };
  Ends logits, cotangent, eval_logits, scale, loss, count, norm, out_loss, out_norm;

  b.Model(model_samples);
  logits.model = b.Samples("sent_logits", plan::TRANSFER, Scores(model_samples), kSlots);
  cotangent.model = b.Samples("cotangent", plan::TRANSFER, Scores(model_samples), kSlots);
  eval_logits.model = b.Samples("eval_logits", plan::TRANSFER, Scores(model_samples));
  scale.model = b.Buffer(plan::TRANSFER, "scale", Scalar());
  loss.model = b.Buffer(plan::TRANSFER, "received_loss", Scalar());
  count.model = b.Buffer(plan::TRANSFER, "received_count", Scalar());
  norm.model = b.Buffer(plan::TRANSFER, "sent_norm", Scalar());
  out_loss.model = b.Buffer(plan::OUTPUT, "loss", Scalar());
  out_norm.model = b.Buffer(plan::OUTPUT, "grad_norm", Scalar());
  const int out_count = b.Buffer(plan::OUTPUT, "token_count", Scalar());

  b.AddGrid(loss_ranks);
  b.Loss(loss_samples);
  logits.loss = b.Samples("received_logits", plan::TRANSFER, Scores(loss_samples), kSlots);
  cotangent.loss = b.Samples("cotangent", plan::TRANSFER, Scores(loss_samples), kSlots);
  eval_logits.loss = b.Samples("eval_logits", plan::TRANSFER, Scores(loss_samples));
  const int logsumexp =
      b.Samples("logsumexp", plan::STASH, PerPosition(DType::kF32, loss_samples), kSlots);
  const int out_logits = b.Samples("logits", plan::OUTPUT, Scores(loss_samples));
  scale.loss = b.Buffer(plan::TRANSFER, "scale", Scalar());
  loss.loss = b.Buffer(plan::TRANSFER, "sent_loss", Scalar());
  count.loss = b.Buffer(plan::TRANSFER, "sent_count", Scalar());
  norm.loss = b.Buffer(plan::TRANSFER, "received_norm", Scalar());
  out_loss.loss = b.Buffer(plan::OUTPUT, "loss", Scalar());
  out_norm.loss = b.Buffer(plan::OUTPUT, "grad_norm", Scalar());

  const auto forth = [&](const char* name, Ends ends) {
    return b.Channel(name, 0, ends.model, 1, ends.loss);
  };
  const auto back = [&](const char* name, Ends ends) {
    return b.Channel(name, 1, ends.loss, 0, ends.model);
  };
  const int logits_channel = forth("logits", logits), eval_channel = forth("eval", eval_logits);
  const int norm_channel = forth("norm", norm), cotangent_channel = back("cotangent", cotangent);
  const int scale_channel = back("scale", scale), loss_channel = back("loss", loss);
  const int count_channel = back("count", count);

  b.UseGrid(0);
  b.Segment("forward.0");
  b.Logits(logits.model);
  b.Send(logits_channel, logits.model);
  b.Segment("backward.0");
  b.Receive(cotangent_channel, cotangent.model);
  b.AccumulateGradient(cotangent.model);
  b.Segment("update");
  b.Receive(scale_channel, scale.model);
  b.Step(scale.model, norm.model);
  b.Send(norm_channel, norm.model);
  b.Receive(loss_channel, loss.model);
  b.Receive(count_channel, count.model);
  b.Copy(loss.model, out_loss.model);
  b.Copy(norm.model, out_norm.model);
  b.Copy(count.model, out_count);
  b.Segment("eval.0");
  b.Logits(eval_logits.model);
  b.Send(eval_channel, eval_logits.model);

  b.UseGrid(1);
  b.Segment("forward.1");
  b.Receive(logits_channel, logits.loss);
  b.AccumulateLoss(logits.loss, logsumexp);
  b.Segment("backward.1");
  b.LossGradient(logits.loss, logsumexp, cotangent.loss);
  b.Send(cotangent_channel, cotangent.loss);
  b.Segment("update");
  b.FinishLoss(scale.loss, loss.loss);
  b.Copy(b.whole_count(), count.loss);
  b.Send(scale_channel, scale.loss);
  b.Send(loss_channel, loss.loss);
  b.Send(count_channel, count.loss);
  b.Copy(loss.loss, out_loss.loss);
  b.ResetLoss();
  b.Receive(norm_channel, norm.loss);
  b.Copy(norm.loss, out_norm.loss);
  b.Segment("eval.1");
  b.Receive(eval_channel, eval_logits.loss);
  b.Copy(eval_logits.loss, out_logits);
  b.EvaluateLoss(out_logits);

  // 1F1B: the first grid runs one microbatch ahead.
  const int64_t shares = std::min(model_ranks, loss_ranks);
  b.Batch(samples / shares, microbatches, shares);
  for (const int grid : {0, 1}) {
    b.UseGrid(grid);
    const int64_t ahead = 1 - grid;
    for (int64_t i = 0; i < microbatches + ahead; ++i) {
      if (i < microbatches) b.Entry(absl::StrFormat("forward.%d", grid), i);
      if (i >= ahead) b.Entry(absl::StrFormat("backward.%d", grid), i - ahead);
    }
    b.Entry("update", 0);
  }
  SetTraining(b.plan());
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
