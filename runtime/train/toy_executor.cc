#include "runtime/train/toy_executor.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_builder.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/safetensors.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kIgnored = -100;
constexpr float kScale = 1e-3f;

void AddBuffer(plan::Program* program, const std::string& name, plan::BufferKind kind,
               const TensorSpec& spec, const std::string& ref, const std::string& slot = "") {
  plan::Buffer* buffer = program->add_buffers();
  buffer->set_name(name);
  buffer->set_kind(kind);
  *buffer->mutable_local() = ToPlan(spec);
  buffer->set_ref(ref);
  buffer->set_slot(slot);
  buffer->set_scale(1);
}

void AddParameter(plan::Plan* plan, const std::string& name, const Shape& shape, bool trainable) {
  plan::Parameter* parameter = plan->add_parameters();
  parameter->set_name(name);
  *parameter->mutable_global() = ToPlan(TensorSpec{DType::kF32, shape});
  parameter->add_placements()->set_grid(0);
  parameter->set_trainable(trainable);
  parameter->mutable_initial()->set_file("toy.safetensors");
  parameter->mutable_initial()->set_tensor(name);
}

}  // namespace

plan::Plan MakeToyPlan(int64_t ranks, int64_t global_batch, int64_t micro_batch, int64_t steps) {
  plan::Plan plan;
  plan.set_model_name("toy");
  plan.set_world_size(ranks);
  plan::Grid* grid = plan.add_grids();
  grid->add_axes()->set_name("a0");
  grid->mutable_axes(0)->set_size(ranks);
  grid->add_mesh()->set_name("dp");
  grid->mutable_mesh(0)->add_axes("a0");
  AddParameter(&plan, "w", {3}, true);
  AddParameter(&plan, "bias", {1}, false);
  plan::OptimizerState* state = plan.add_optimizer_states();
  state->set_parameter("w");
  state->set_slot("momentum");
  *state->mutable_global() = ToPlan(TensorSpec{DType::kF32, {3}});

  const TensorSpec x{DType::kF32, {micro_batch, 3}}, labels{DType::kI64, {micro_batch, 2}};
  const TensorSpec scalar{DType::kF32, {}}, vector{DType::kF32, {3}};
  plan::Input* input = plan.add_inputs();
  input->set_name("x");
  *input->mutable_microbatch() = ToPlan(TensorSpec{x.dtype, {micro_batch * ranks, 3}});
  input = plan.add_inputs();
  input->set_name("labels");
  *input->mutable_microbatch() = ToPlan(TensorSpec{labels.dtype, {micro_batch * ranks, 2}});
  input->set_labels(true);

  plan::Program* program = plan.add_programs();
  program->set_rank_count(ranks);
  AddBuffer(program, "w", plan::PARAMETER, vector, "w");
  AddBuffer(program, "bias", plan::PARAMETER, {DType::kF32, {1}}, "bias");
  AddBuffer(program, "momentum", plan::OPTIMIZER_STATE, vector, "w", "momentum");
  AddBuffer(program, "gradient", plan::GRADIENT, vector, "w");
  AddBuffer(program, "acc_loss", plan::ACCUMULATOR, scalar, "loss_sum");
  AddBuffer(program, "acc_tokens", plan::ACCUMULATOR, scalar, "token_count");
  AddBuffer(program, "x", plan::INPUT, x, "x");
  AddBuffer(program, "labels", plan::INPUT, labels, "labels");
  AddBuffer(program, "lr", plan::SCALAR, scalar, "learning_rate");
  AddBuffer(program, "loss", plan::OUTPUT, scalar, "loss");
  AddBuffer(program, "grad_norm", plan::OUTPUT, scalar, "grad_norm");
  AddBuffer(program, "loss_sum", plan::OUTPUT, scalar, "loss_sum");
  AddBuffer(program, "token_count", plan::OUTPUT, scalar, "token_count");
  AddBuffer(program, "predictions", plan::OUTPUT, labels, "predictions");
  AddBuffer(program, "logits", plan::OUTPUT, {DType::kF32, {micro_batch, 2, 1}}, "logits");
  for (plan::Buffer& buffer : *program->mutable_buffers()) {
    const bool of_eval = buffer.ref() == "loss_sum" || buffer.ref() == "token_count";
    if (buffer.kind() == plan::INPUT) SplitBySamples(*grid, {"a0"}, &buffer);
    if (buffer.kind() == plan::GRADIENT || of_eval) buffer.mutable_sharding()->add_partial("a0");
  }
  for (const char* name : {"forward", "backward", "update", "eval"}) {
    program->add_segments()->set_name(name);
  }
  const int64_t microbatches = global_batch / (micro_batch * ranks);
  for (int64_t m = 0; m < microbatches; ++m) {
    for (const char* name : {"forward", "backward"}) {
      plan::ScheduleEntry* entry = program->add_schedule();
      entry->set_segment(name);
      entry->set_microbatch(m);
    }
  }
  program->add_schedule()->set_segment("update");

  plan::Training* training = plan.mutable_training();
  training->set_global_batch(global_batch);
  training->set_micro_batch(micro_batch);
  training->set_microbatches(microbatches);
  training->set_data_parallel(ranks);
  training->set_steps(steps);
  training->set_seed(5);
  training->set_ignore_index(kIgnored);
  plan::LearningRate* rate = training->mutable_learning_rate();
  rate->set_kind(plan::LearningRate::LINEAR);
  rate->set_peak(0.05);
  rate->set_total_steps(steps);
  return plan;
}

void AddCopies(int64_t copies, plan::Plan* plan) {
  plan->set_world_size(plan->world_size() * copies);
  plan::AtomicAxis* axis = plan->mutable_grids(0)->add_axes();
  axis->set_name("a1");
  axis->set_size(copies);
  plan->mutable_programs(0)->set_rank_count(plan->world_size());
}

void WriteToyWeights(const std::string& folder) {
  const float w[3] = {0.5f, -0.25f, 0.125f}, bias[1] = {0.75f};
  const std::vector<NamedTensor> tensors = {{"w", {DType::kF32, {3}}, w},
                                            {"bias", {DType::kF32, {1}}, bias}};
  EXPECT_TRUE(WriteSafetensors(folder + "/toy.safetensors", tensors).ok());
}

ToyExecutor::ToyExecutor(const plan::Plan& plan, int64_t rank, Communicator* world)
    : plan_(plan), program_(ProgramOfRank(plan, rank)), world_(world) {
  for (const plan::Buffer& buffer : program().buffers()) {
    memory_[buffer.name()].resize(FromPlan(buffer.local()).bytes());
  }
}

absl::StatusOr<BufferView> ToyExecutor::Find(plan::BufferKind kind, std::string_view ref,
                                             std::string_view slot) const {
  for (const plan::Buffer& buffer : program().buffers()) {
    if (buffer.kind() == kind && buffer.ref() == ref && buffer.slot() == slot) {
      return BufferView{FromPlan(buffer.local()),
                        const_cast<char*>(memory_.at(buffer.name()).data())};
    }
  }
  return absl::NotFoundError(absl::StrCat("no buffer ", std::string(ref)));
}

absl::Status ToyExecutor::Run(std::string_view segment, int64_t /*microbatch*/) {
  if (segment == "forward") Forward(Data("acc_loss"), Data("acc_tokens"));
  if (segment == "backward") Backward();
  if (segment == "update") return Update();
  if (segment == "eval") return Eval();
  return absl::OkStatus();
}

float ToyExecutor::Predict(int64_t sample) {
  const float* x = Data("x") + sample * 3;
  const float* w = Data("w");
  return w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + Data("bias")[0];
}

void ToyExecutor::Forward(float* loss_sum, float* token_count) {
  for (int64_t i = 0; i < plan_.training().micro_batch(); ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      const int64_t label = Labels()[i * 2 + j];
      if (label == kIgnored) continue;
      const float difference = Predict(i) - static_cast<float>(label);
      *loss_sum += difference * difference * kScale;
      *token_count += 1;
    }
  }
}

void ToyExecutor::Backward() {
  for (int64_t i = 0; i < plan_.training().micro_batch(); ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      const int64_t label = Labels()[i * 2 + j];
      if (label == kIgnored) continue;
      const float slope = 2 * kScale * (Predict(i) - static_cast<float>(label));
      for (int64_t k = 0; k < 3; ++k) Data("gradient")[k] += slope * Data("x")[i * 3 + k];
    }
  }
}

absl::Status ToyExecutor::Update() {
  float* gradient = Data("gradient");
  float* loss = Data("acc_loss");
  float* count = Data("acc_tokens");
  if (world_ != nullptr) {
    const ReduceBuffer buffers[] = {{gradient, gradient, 3, DType::kF32},
                                    {loss, loss, 1, DType::kF32},
                                    {count, count, 1, DType::kF32}};
    ORIEL_RETURN_IF_ERROR(world_->AllReduce(Reduction::kSum, buffers));
  }
  float square = 0;
  for (int64_t k = 0; k < 3; ++k) {
    const float g = gradient[k] / *count;
    square += g * g;
    float& momentum = Data("momentum")[k];
    momentum = 0.5f * momentum + g;
    Data("w")[k] -= *Data("lr") * momentum;
    gradient[k] = 0;
  }
  *Data("loss") = *loss / *count;
  *Data("grad_norm") = std::sqrt(square);
  *loss = *count = 0;
  return absl::OkStatus();
}

absl::Status ToyExecutor::Eval() {
  *Data("loss_sum") = *Data("token_count") = 0;
  Forward(Data("loss_sum"), Data("token_count"));
  auto* predictions = reinterpret_cast<int64_t*>(memory_.at("predictions").data());
  for (int64_t i = 0; i < plan_.training().micro_batch() * 2; ++i) {
    Data("logits")[i] = Predict(i / 2);
    predictions[i] = std::llround(Predict(i / 2));
  }
  bool pending = false;
  for (const plan::Buffer& buffer : program().buffers()) {
    if (buffer.name() == "loss_sum") pending = buffer.sharding().partial_size() > 0;
  }
  if (pending || world_ == nullptr) return absl::OkStatus();
  const ReduceBuffer buffers[] = {{Data("loss_sum"), Data("loss_sum"), 1, DType::kF32},
                                  {Data("token_count"), Data("token_count"), 1, DType::kF32}};
  ORIEL_RETURN_IF_ERROR(world_->AllReduce(Reduction::kSum, buffers));
  const int64_t copies = world_->size() / plan_.training().data_parallel();
  *Data("loss_sum") /= static_cast<float>(copies);
  *Data("token_count") /= static_cast<float>(copies);
  return absl::OkStatus();
}

}  // namespace oriel::runtime
