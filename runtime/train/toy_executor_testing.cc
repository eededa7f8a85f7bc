#include "runtime/train/toy_executor_testing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/checkpoint/safetensors.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kIgnored = -100;
constexpr int64_t kLargest = 1000;  // label
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

// A grid's part of the model, and how many ranks share it.
struct Part {
  int64_t ranks;
  bool first = true, last = true;
  std::string suffix = "";  // of its segments
};

void AddParts(plan::Plan* plan, int64_t samples, int64_t microbatches,
              const std::vector<Part>& parts) {
  for (const auto& [ranks, first, last, suffix] : parts) {
    plan::Grid* grid = plan->add_grids();
    grid->set_first_rank(plan->world_size());
    grid->add_axes()->set_name("a0");
    grid->mutable_axes(0)->set_size(ranks);
    grid->add_mesh()->set_name("dp");
    grid->mutable_mesh(0)->add_axes("a0");
    plan::Program* program = plan->add_programs();
    program->set_first_rank(plan->world_size());
    program->set_rank_count(ranks);
    plan->set_world_size(plan->world_size() + ranks);

    const int64_t micro = samples / ranks;
    const TensorSpec scalar{DType::kF32, {}}, vector{DType::kF32, {3}};
    const TensorSpec labels{DType::kI64, {micro, 2}};
    if (first) {
      AddBuffer(program, "w", plan::PARAMETER, vector, "w");
      AddBuffer(program, "momentum", plan::OPTIMIZER_STATE, vector, "w", "momentum");
      AddBuffer(program, "gradient", plan::GRADIENT, vector, "w");
      AddBuffer(program, "x", plan::INPUT, {DType::kF32, {micro, 3}}, "x");
    }
    if (last) {
      AddBuffer(program, "bias", plan::PARAMETER, {DType::kF32, {1}}, "bias");
      AddBuffer(program, "acc_loss", plan::ACCUMULATOR, scalar, "loss_sum");
      AddBuffer(program, "acc_tokens", plan::ACCUMULATOR, scalar, "token_count");
      AddBuffer(program, "labels", plan::INPUT, labels, "labels");
      AddBuffer(program, "loss_sum", plan::OUTPUT, scalar, "loss_sum");
      AddBuffer(program, "token_count", plan::OUTPUT, scalar, "token_count");
      AddBuffer(program, "predictions", plan::OUTPUT, labels, "predictions");
      AddBuffer(program, "logits", plan::OUTPUT, {DType::kF32, {micro, 2, 1}}, "logits");
    }
    AddBuffer(program, "lr", plan::SCALAR, scalar, "learning_rate");
    AddBuffer(program, "loss", plan::OUTPUT, scalar, "loss");
    AddBuffer(program, "grad_norm", plan::OUTPUT, scalar, "grad_norm");
    for (plan::Buffer& buffer : *program->mutable_buffers()) {
      const std::string& name = buffer.name();
      const bool of_samples =
          name == "x" || name == "labels" || name == "predictions" || name == "logits";
      if (of_samples) SplitBySamples(*grid, {"a0"}, &buffer);
      if (name == "gradient" || buffer.ref() == "loss_sum" || buffer.ref() == "token_count") {
        buffer.mutable_sharding()->add_partial("a0");
      }
    }
    for (const char* kind : {"forward", "backward", "update", "eval"}) {
      program->add_segments()->set_name(kind == std::string("update") ? kind : kind + suffix);
    }
    const auto add = [&](const std::string& segment, int64_t microbatch) {
      plan::ScheduleEntry* entry = program->add_schedule();
      entry->set_segment(segment);
      entry->set_microbatch(microbatch);
    };
    for (int64_t m = 0; m < microbatches; ++m) {
      add("forward" + suffix, m);
      if (parts.size() == 1) add("backward" + suffix, m);
    }
    for (int64_t m = microbatches; m-- > 0 && parts.size() > 1;) add("backward" + suffix, m);
    add("update", 0);
  }
}

// The tables, and what runs over the parts; `samples` are in a microbatch.
plan::Plan MakePlan(int64_t data_parallel, int64_t global_batch, int64_t micro_batch, int64_t steps,
                    const std::vector<Part>& parts) {
  plan::Plan plan;
  plan.set_model_name("toy");
  const int64_t samples = micro_batch * data_parallel, microbatches = global_batch / samples;
  AddParts(&plan, samples, microbatches, parts);
  AddParameter(&plan, "w", {3}, true);
  AddParameter(&plan, "bias", {1}, false);
  plan.mutable_parameters(1)->mutable_placements(0)->set_grid(plan.grids_size() - 1);
  plan::OptimizerState* state = plan.add_optimizer_states();
  state->set_parameter("w");
  state->set_slot("momentum");
  *state->mutable_global() = ToPlan(TensorSpec{DType::kF32, {3}});
  plan::Input* input = plan.add_inputs();
  input->set_name("x");
  *input->mutable_microbatch() = ToPlan(TensorSpec{DType::kF32, {samples, 3}});
  input = plan.add_inputs();
  input->set_name("labels");
  *input->mutable_microbatch() = ToPlan(TensorSpec{DType::kI64, {samples, 2}});
  input->set_labels(true);

  plan::Training* training = plan.mutable_training();
  training->set_global_batch(global_batch);
  training->set_micro_batch(micro_batch);
  training->set_microbatches(microbatches);
  training->set_data_parallel(data_parallel);
  training->set_steps(steps);
  training->set_seed(5);
  training->set_ignore_index(kIgnored);
  plan::LearningRate* rate = training->mutable_learning_rate();
  rate->set_kind(plan::LearningRate::LINEAR);
  rate->set_peak(0.05);
  rate->set_total_steps(steps);
  return plan;
}

}  // namespace

plan::Plan MakeToyPlan(int64_t ranks, int64_t global_batch, int64_t micro_batch, int64_t steps) {
  return MakePlan(ranks, global_batch, micro_batch, steps, {{ranks}});
}

plan::Plan MakeTwoGridToyPlan(int64_t first_ranks, int64_t last_ranks, int64_t global_batch,
                              int64_t micro_batch, int64_t steps) {
  return MakePlan(std::min(first_ranks, last_ranks), global_batch, micro_batch, steps,
                  {{first_ranks, true, false, ".0"}, {last_ranks, false, true, ".1"}});
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

ToyExecutor::ToyExecutor(const plan::Plan& plan, int64_t rank, Communicator* world, Memory memory)
    : plan_(plan),
      program_(ProgramOfRank(plan, rank)),
      rank_(rank),
      world_(world),
      on_host_(memory == Memory::kHost) {
  for (const plan::Buffer& buffer : program().buffers()) {
    memory_[buffer.name()].resize(FromPlan(buffer.local()).bytes());
    if (buffer.kind() == plan::INPUT) samples_ = buffer.local().shape(0);
  }
}

absl::StatusOr<BufferView> ToyExecutor::Find(plan::BufferKind kind, std::string_view ref,
                                             std::string_view slot) const {
  for (int i = 0; i < program().buffers_size(); ++i) {
    const plan::Buffer& buffer = program().buffers(i);
    if (buffer.kind() == kind && buffer.ref() == ref && buffer.slot() == slot) {
      return BufferView{FromPlan(buffer.local()), reinterpret_cast<void*>(intptr_t{i} + 1)};
    }
  }
  return absl::NotFoundError(absl::StrCat("no buffer ", std::string(ref)));
}

char* ToyExecutor::BytesOf(const BufferView& view) const {
  const auto index = static_cast<int>(reinterpret_cast<intptr_t>(view.data)) - 1;
  return const_cast<char*>(memory_.at(program().buffers(index).name()).data());
}

void* ToyExecutor::HostMemory(const BufferView& view) const {
  return on_host_ ? BytesOf(view) : nullptr;
}

absl::Status ToyExecutor::Read(const BufferView& view, int64_t offset, void* target,
                               int64_t bytes) const {
  EXPECT_LE(offset + bytes, view.spec.bytes());
  std::copy_n(BytesOf(view) + offset, bytes, static_cast<char*>(target));
  return absl::OkStatus();
}

absl::Status ToyExecutor::Write(const BufferView& view, int64_t offset, const void* source,
                                int64_t bytes) {
  EXPECT_LE(offset + bytes, view.spec.bytes());
  std::copy_n(static_cast<const char*>(source), bytes, BytesOf(view) + offset);
  return absl::OkStatus();
}

absl::Status ToyExecutor::Run(std::string_view segment, int64_t microbatch) {
  const std::string_view kind = SegmentKind(segment);
  if (kind == "forward") return Forward(microbatch);
  if (kind == "backward") return Backward(microbatch);
  if (kind == "update") return Update();
  if (kind == "eval") return Eval();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<float>> ToyExecutor::Products() {
  std::vector<float> products;
  for (int64_t i = 0; Has("x") && i < samples_; ++i) {
    const float* x = Data("x") + i * 3;
    const float* w = Data("w");
    products.push_back(w[0] * x[0] + w[1] * x[1] + w[2] * x[2]);
  }
  return Transfer(products, /*sends=*/Has("x"));
}

// By an all-reduce, for both grids run the same steps in the same order.
absl::StatusOr<std::vector<float>> ToyExecutor::Transfer(const std::vector<float>& values,
                                                         bool sends) {
  if (plan_.grids_size() == 1) return values;
  std::vector<float> all(samples_ * program().rank_count());
  const int64_t first = samples_ * (rank_ - program().first_rank());
  if (sends) std::copy(values.begin(), values.end(), all.begin() + first);
  const ReduceBuffer buffer{all.data(), all.data(), static_cast<int64_t>(all.size()), DType::kF32};
  ORIEL_RETURN_IF_ERROR(world_->AllReduce(Reduction::kSum, absl::MakeConstSpan(&buffer, 1)));
  return std::vector<float>(all.begin() + first, all.begin() + first + samples_);
}

absl::Status ToyExecutor::AddLoss(const std::vector<float>& products, float* loss_sum,
                                  float* token_count) {
  for (int64_t i = 0; i < samples_; ++i) {
    for (int64_t j = 0; j < 2; ++j) {
      const int64_t label = Label(i, j);
      if (label == kIgnored) continue;
      if (label > kLargest) {
        return absl::InvalidArgumentError(absl::StrCat("sample ", i, " has the label ", label));
      }
      const float difference = products[i] + Data("bias")[0] - static_cast<float>(label);
      *loss_sum += difference * difference * kScale;
      *token_count += 1;
    }
  }
  return absl::OkStatus();
}

absl::Status ToyExecutor::Forward(int64_t microbatch) {
  ORIEL_ASSIGN_OR_RETURN(std::vector<float> products, Products());
  if (!Has("labels")) return absl::OkStatus();
  ORIEL_RETURN_IF_ERROR(AddLoss(products, Data("acc_loss"), Data("acc_tokens")));
  stash_[microbatch] = std::move(products);
  return absl::OkStatus();
}

absl::Status ToyExecutor::Backward(int64_t microbatch) {
  std::vector<float> slopes;
  if (Has("labels")) {
    const std::vector<float> products = std::move(stash_.at(microbatch));
    stash_.erase(microbatch);
    slopes.resize(samples_);
    for (int64_t i = 0; i < samples_ * 2; ++i) {
      const int64_t label = Label(i / 2, i % 2);
      if (label == kIgnored) continue;
      const float difference = products[i / 2] + Data("bias")[0] - static_cast<float>(label);
      slopes[i / 2] += 2 * kScale * difference;
    }
  }
  ORIEL_ASSIGN_OR_RETURN(slopes, Transfer(slopes, /*sends=*/Has("labels")));
  for (int64_t i = 0; Has("x") && i < samples_; ++i) {
    for (int64_t k = 0; k < 3; ++k) Data("gradient")[k] += slopes[i] * Data("x")[i * 3 + k];
  }
  return absl::OkStatus();
}

// Every rank gets the gradient, the loss and the count, whichever grid has summed them.
absl::Status ToyExecutor::Update() {
  float sums[5] = {};  // gradient, loss, count
  if (Has("gradient")) std::copy_n(Data("gradient"), 3, sums);
  if (Has("acc_loss")) sums[3] = *Data("acc_loss"), sums[4] = *Data("acc_tokens");
  if (world_ != nullptr) {
    const ReduceBuffer buffer{sums, sums, 5, DType::kF32};
    ORIEL_RETURN_IF_ERROR(world_->AllReduce(Reduction::kSum, absl::MakeConstSpan(&buffer, 1)));
  }
  float square = 0;
  for (int64_t k = 0; k < 3; ++k) {
    const float g = sums[k] / sums[4];
    square += g * g;
    if (!Has("w")) continue;
    float& momentum = Data("momentum")[k];
    momentum = 0.5f * momentum + g;
    Data("w")[k] -= *Data("lr") * momentum;
  }
  *Data("loss") = sums[3] / sums[4];
  *Data("grad_norm") = std::sqrt(square);
  if (Has("gradient")) std::fill_n(Data("gradient"), 3, 0.0f);
  if (Has("acc_loss")) *Data("acc_loss") = *Data("acc_tokens") = 0;
  return absl::OkStatus();
}

absl::Status ToyExecutor::Eval() {
  ORIEL_ASSIGN_OR_RETURN(const std::vector<float> products, Products());
  if (!Has("labels")) return absl::OkStatus();
  *Data("loss_sum") = *Data("token_count") = 0;
  ORIEL_RETURN_IF_ERROR(AddLoss(products, Data("loss_sum"), Data("token_count")));
  auto* predictions = reinterpret_cast<int64_t*>(memory_.at("predictions").data());
  for (int64_t i = 0; i < samples_ * 2; ++i) {
    Data("logits")[i] = products[i / 2] + Data("bias")[0];
    predictions[i] = std::llround(Data("logits")[i]);
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
