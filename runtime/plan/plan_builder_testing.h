// Plans made by hand.
#ifndef ORIEL_RUNTIME_PLAN_PLAN_BUILDER_TESTING_H_
#define ORIEL_RUNTIME_PLAN_PLAN_BUILDER_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/tensor.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {

// A grid of the axes a0, a1, .. of these sizes, from rank 0 on.
inline plan::Grid MakeGrid(const std::vector<int64_t>& sizes) {
  plan::Grid grid;
  for (const int64_t size : sizes) {
    auto* axis = grid.add_axes();
    axis->set_name("a" + std::to_string(grid.axes_size() - 1));
    axis->set_size(size);
  }
  return grid;
}

inline plan::Sharding MakeSharding(const std::vector<std::vector<std::string>>& dims,
                                   const std::vector<std::string>& partial = {}) {
  plan::Sharding sharding;
  for (const auto& axes : dims) {
    sharding.add_dims()->mutable_axes()->Add(axes.begin(), axes.end());
  }
  sharding.mutable_partial()->Add(partial.begin(), partial.end());
  return sharding;
}

// Says that the buffer's first dimension is split over these axes of the grid.
inline void SplitBySamples(const plan::Grid& grid, const std::vector<std::string>& axes,
                           plan::Buffer* buffer) {
  *buffer->mutable_global_shape() = buffer->local().shape();
  *buffer->mutable_sharding() = MakeSharding({axes});
  for (const auto& axis : grid.axes()) {
    if (std::find(axes.begin(), axes.end(), axis.name()) == axes.end()) continue;
    buffer->set_global_shape(0, buffer->global_shape(0) * axis.size());
  }
}

// Adds the grid and the program of another plan behind the ranks of this one, and what it keeps: a
// parameter that both have gets one more placement.
inline void AppendGrid(const plan::Plan& other, plan::Plan* plan) {
  const int grid = plan->grids_size();
  *plan->add_grids() = other.grids(0);
  plan->mutable_grids(grid)->set_first_rank(plan->world_size());
  *plan->add_programs() = other.programs(0);
  plan->mutable_programs(grid)->set_first_rank(plan->world_size());
  plan->set_world_size(plan->world_size() + other.world_size());
  for (const plan::Parameter& parameter : other.parameters()) {
    const auto known =
        std::find_if(plan->mutable_parameters()->begin(), plan->mutable_parameters()->end(),
                     [&](const plan::Parameter& one) { return one.name() == parameter.name(); });
    plan::Parameter* target =
        known == plan->mutable_parameters()->end() ? plan->add_parameters() : &*known;
    if (target->name().empty()) {
      *target = parameter;
      target->clear_placements();
    }
    plan::Placement* placement = target->add_placements();
    *placement = parameter.placements(0);
    placement->set_grid(grid);
  }
  plan->mutable_optimizer_states()->MergeFrom(other.optimizer_states());
}

// Adds to a plan of grids that split the batch over the axis "a0", each with one program. It has
// one grid at first; what is added belongs to the grid that was added or used last. Buffers get
// memory of their own, one behind the other.
class PlanBuilder {
 public:
  explicit PlanBuilder(int64_t ranks) {
    plan_.set_model_name("by_hand");
    AddGrid(ranks);
  }

  // Behind the ranks of the others.
  void AddGrid(int64_t ranks) {
    auto* grid = plan_.add_grids();
    grid->set_first_rank(plan_.world_size());
    auto* axis = grid->add_axes();
    axis->set_name("a0");
    axis->set_size(ranks);
    auto* mesh = grid->add_mesh();
    mesh->set_name("dp");
    mesh->add_axes("a0");
    auto* program = plan_.add_programs();
    program->set_first_rank(plan_.world_size());
    program->set_rank_count(ranks);
    plan_.set_world_size(plan_.world_size() + ranks);
    UseGrid(plan_.grids_size() - 1);
  }
  void UseGrid(int grid) {
    grid_ = grid;
    program_ = plan_.mutable_programs(grid);
  }

  plan::Plan& plan() { return plan_; }
  plan::Program& program() { return *program_; }
  const plan::Grid& grid() const { return plan_.grids(grid_); }

  // Each returns the buffer's index.
  int Buffer(plan::BufferKind kind, const std::string& name, const TensorSpec& spec,
             const std::string& slot = "") {
    const int index = Alias(kind, name, spec, program_->arena_bytes());
    program_->mutable_buffers(index)->set_slot(slot);
    program_->set_arena_bytes(program_->arena_bytes() + (spec.bytes() + 63) / 64 * 64);
    return index;
  }
  // Of so many copies, one behind the other, for microbatches in flight.
  int Ring(plan::BufferKind kind, const std::string& name, const TensorSpec& spec, int64_t slots) {
    const int index = Buffer(kind, name, spec);
    plan::Buffer* buffer = program_->mutable_buffers(index);
    const int64_t stride = program_->arena_bytes() - buffer->offset();
    for (int64_t copy = 1; copy < slots; ++copy) {
      buffer->add_copy_offsets(program_->arena_bytes());
      program_->set_arena_bytes(program_->arena_bytes() + stride);
    }
    return index;
  }
  int Alias(plan::BufferKind kind, const std::string& name, const TensorSpec& spec,
            int64_t offset) {
    auto* buffer = program_->add_buffers();
    buffer->set_name(name);
    const bool is_inner = kind == plan::TEMPORARY || kind == plan::STASH ||
                          kind == plan::TRANSFER || kind == plan::CONSTANT;
    buffer->set_ref(is_inner ? "" : name);
    buffer->set_kind(kind);
    *buffer->mutable_local() = ToPlan(spec);
    buffer->set_offset(offset);
    buffer->set_scale(1);
    *buffer->mutable_global_shape() = buffer->local().shape();
    const int index = program_->buffers_size() - 1;
    // Sums over each rank's samples.
    if (IsGradient(kind) || kind == plan::ACCUMULATOR) SumOverRanks(index);
    return index;
  }
  // Says how a buffer lies over "a0": it is a pending sum, or its first dimension is cut.
  void SumOverRanks(int index) {
    program_->mutable_buffers(index)->mutable_sharding()->add_partial("a0");
  }
  void CutByRanks(int index) { SplitBySamples(grid(), {"a0"}, program_->mutable_buffers(index)); }
  // The buffer of the same memory that holds the sum over "a0" of one that is pending.
  int Reduced(int index) {
    const std::string name = program_->buffers(index).name() + " reduced";
    for (int i = 0; i < program_->buffers_size(); ++i) {
      if (program_->buffers(i).name() == name) return i;
    }
    plan::Buffer reduced = program_->buffers(index);
    reduced.set_name(name);
    reduced.set_kind(plan::TEMPORARY);
    reduced.clear_ref();
    reduced.clear_sharding();
    *program_->add_buffers() = reduced;
    return program_->buffers_size() - 1;
  }
  int Constant(const std::string& name, const std::vector<float>& values) {
    const int index =
        Buffer(plan::CONSTANT, name, {DType::kF32, {static_cast<int64_t>(values.size())}});
    std::string bytes(values.size() * sizeof(float), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    program_->mutable_buffers(index)->set_data(bytes);
    return index;
  }
  int Parameter(const std::string& name, const TensorSpec& spec, bool trainable = true) {
    auto* parameter = plan_.add_parameters();
    parameter->set_name(name);
    *parameter->mutable_global() = ToPlan(spec);
    parameter->set_trainable(trainable);
    parameter->add_placements()->set_grid(grid_);
    parameter->mutable_initial()->set_file("weights.safetensors");
    parameter->mutable_initial()->set_tensor(name);
    return Buffer(plan::PARAMETER, name, spec);
  }
  int Input(const std::string& name, const TensorSpec& spec) {
    auto* input = plan_.add_inputs();
    input->set_name(name);
    *input->mutable_microbatch() = ToPlan(spec);
    if (!spec.shape.empty()) {
      input->mutable_microbatch()->set_shape(0, spec.shape[0] * grid().axes(0).size());
    }
    const int index = Buffer(plan::INPUT, name, spec);
    SplitBySamples(grid(), {"a0"}, program_->mutable_buffers(index));
    return index;
  }

  // From a buffer of one grid's program to one of another's, which say how it lies over the ranks.
  // Returns the channel's index.
  int Channel(const std::string& name, int source_grid, int source, int target_grid, int target) {
    const plan::Buffer& sent = plan_.programs(source_grid).buffers(source);
    const plan::Buffer& received = plan_.programs(target_grid).buffers(target);
    auto* channel = plan_.add_channels();
    channel->set_name(name);
    channel->set_source_grid(source_grid);
    channel->set_target_grid(target_grid);
    channel->mutable_global()->set_dtype(sent.local().dtype());
    *channel->mutable_global()->mutable_shape() = sent.global_shape();
    *channel->mutable_source() = sent.sharding();
    *channel->mutable_target() = received.sharding();
    return plan_.channels_size() - 1;
  }

  // The last of these is what instructions are added to.
  void Segment(const std::string& name) {
    segment_ = program_->add_segments();
    segment_->set_name(name);
  }
  plan::Launch& Launch(const std::string& kernel, const std::vector<int>& operands,
                       const std::vector<int>& results, const std::string& location = "") {
    auto* instruction = segment_->add_instructions();
    instruction->set_op("oriel." + kernel);
    instruction->set_location(location);
    auto* launch = instruction->mutable_launch();
    launch->set_kernel(kernel);
    launch->mutable_operands()->Add(operands.begin(), operands.end());
    launch->mutable_results()->Add(results.begin(), results.end());
    return *launch;
  }
  plan::Collective& AllReduce(const std::vector<int>& operands, const std::vector<int>& results) {
    auto* collective = segment_->add_instructions()->mutable_collective();
    collective->set_kind(plan::Collective::ALL_REDUCE);
    collective->set_reduction(plan::Collective::SUM);
    collective->add_axes("a0");
    collective->mutable_operands()->Add(operands.begin(), operands.end());
    collective->mutable_results()->Add(results.begin(), results.end());
    return *collective;
  }
  // Over "a0", along dimension 0: add the reduction; set other axes and dimensions.
  plan::Collective& Collective(plan::Collective::Kind kind, int operand, int result) {
    auto* collective = segment_->add_instructions()->mutable_collective();
    collective->set_kind(kind);
    collective->add_axes("a0");
    AddOperand(operand, result, 0, collective);
    return *collective;
  }
  // Along `dim`, where the kind cuts or joins.
  static void AddOperand(int operand, int result, int dim, plan::Collective* collective) {
    collective->add_operands(operand);
    collective->add_results(result);
    if (Cuts(collective->kind())) collective->add_split_dims(dim);
    if (Joins(collective->kind())) collective->add_concat_dims(dim);
  }
  // For a collective with a stream, by its place in the segment.
  void Wait(int collective) {
    segment_->add_instructions()->mutable_wait()->set_collective(collective);
  }
  plan::Slice& Slice(int source, int target, int dim, const std::vector<std::string>& axes) {
    auto* slice = segment_->add_instructions()->mutable_slice();
    slice->set_source(source);
    slice->set_target(target);
    slice->set_dim(dim);
    slice->mutable_axes()->Add(axes.begin(), axes.end());
    return *slice;
  }
  // Says how a launch splits over "a0". `rule` names the factors of each dimension, as in
  // "bk,kn->bn"; a dimension named "." has none. Results are sums over what they lack. `cut` are
  // the factors that are cut, and `linear` the groups of operands in which the kernel is linear.
  void Split(plan::Launch& launch, const std::string& rule, const std::string& cut,
             const std::vector<std::vector<int>>& linear = {}) {
    plan::SplitRule split;
    std::string factors;
    const size_t arrow = rule.find("->");
    const auto add = [&](const std::string& dims, int buffer, plan::SplitRule::TensorDims* tensor) {
      for (size_t i = 0; i < dims.size(); ++i) {
        auto* dim = tensor->add_dims();
        if (dims[i] == '.') continue;
        if (factors.find(dims[i]) == std::string::npos) {
          factors += dims[i];
          auto* factor = split.add_factors();
          factor->set_size(program_->buffers(buffer).global_shape(static_cast<int>(i)));
          // Whether each result has it.
          const std::string results = rule.substr(arrow + 2);
          const bool kept = std::count(results.begin(), results.end(), dims[i]) ==
                            std::count(results.begin(), results.end(), ',') + 1;
          factor->set_kind(kept ? plan::SplitRule::PARALLEL : plan::SplitRule::SUM);
        }
        dim->add_factors(static_cast<int>(factors.find(dims[i])));
      }
    };
    const auto add_all = [&](std::string list, const google::protobuf::RepeatedField<int>& buffers,
                             auto* tensors) {
      for (const int buffer : buffers) {
        const size_t comma = std::min(list.find(','), list.size());
        add(list.substr(0, comma), buffer, tensors->Add());
        list = list.substr(std::min(comma + 1, list.size()));
      }
    };
    add_all(rule.substr(0, arrow), launch.operands(), split.mutable_operands());
    add_all(rule.substr(arrow + 2), launch.results(), split.mutable_results());
    for (const auto& group : linear) {
      split.add_linear()->mutable_operands()->Add(group.begin(), group.end());
    }
    launch.mutable_split()->set_rule(plan_.rules_size());
    for (const char factor : factors) {
      auto* axes = launch.mutable_split()->add_factors();
      if (cut.find(factor) != std::string::npos) axes->add_axes("a0");
    }
    *plan_.add_rules() = split;
  }
  void FillZero(int buffer) {
    (*Launch("fill", {}, {buffer}).mutable_attributes())["value"].set_f(0);
  }
  void Copy(int source, int target) {
    auto* copy = segment_->add_instructions()->mutable_copy();
    copy->set_source(source);
    copy->set_target(target);
  }

  void Send(int channel, int buffer) {
    auto* send = segment_->add_instructions()->mutable_send();
    send->set_channel(channel);
    send->set_buffer(buffer);
  }
  void Receive(int channel, int buffer) {
    auto* receive = segment_->add_instructions()->mutable_receive();
    receive->set_channel(channel);
    receive->set_buffer(buffer);
  }

  // Batch sizes, and forward and backward of each microbatch in turn before update.
  void Schedule(int64_t micro_batch, int64_t microbatches) {
    Batch(micro_batch, microbatches, plan_.world_size());
    for (int64_t microbatch = 0; microbatch < microbatches; ++microbatch) {
      Entry("forward", microbatch);
      Entry("backward", microbatch);
    }
    Entry("update", 0);
  }
  // The parts of that.
  void Batch(int64_t micro_batch, int64_t microbatches, int64_t data_parallel) {
    auto* training = plan_.mutable_training();
    training->set_micro_batch(micro_batch);
    training->set_microbatches(microbatches);
    training->set_data_parallel(data_parallel);
    training->set_global_batch(micro_batch * microbatches * data_parallel);
  }
  void Entry(const std::string& segment, int64_t microbatch) {
    auto* entry = program_->add_schedule();
    entry->set_segment(segment);
    entry->set_microbatch(microbatch);
  }

 private:
  plan::Plan plan_;
  int grid_ = 0;
  plan::Program* program_ = nullptr;
  plan::Segment* segment_ = nullptr;
};

// Trains w (4 elements) to make h = x * w small, where x is an input of 2 samples of 4:
//
//   forward    h = x * w (the stash); loss += sum(h * h) / 2
//   backward   dw += sum over samples of h * x
//   update     dw, loss = sums over ranks; w -= learning_rate * dw; outputs loss; resets both
//   eval       outputs h
//
// or, where the gradient is not reduced in update:
//
//   backward_last  backward for the last microbatch; starts the reduction of dw, and waits for it
//   update         reduces the loss alone
//
// Its kernels are those of runtime/exec/test_kernels.cc.
enum class ReduceGradient {
  kInUpdate,
  kInLast,           // in place
  kInLastScattered,  // to each rank's piece, a stash, which update joins: of 1, 2 or 4 ranks
};
inline plan::Plan SmallTrainingPlan(int64_t ranks, int64_t microbatches,
                                    ReduceGradient reduce = ReduceGradient::kInUpdate) {
  const TensorSpec scalar{DType::kF32, {}};
  const TensorSpec row{DType::kF32, {4}};
  const TensorSpec batch{DType::kF32, {2, 4}};
  PlanBuilder builder(ranks);
  const int w = builder.Parameter("w", row);
  const int dw = builder.Buffer(plan::GRADIENT, "w", row);
  const int loss = builder.Buffer(plan::ACCUMULATOR, "loss_sum", scalar);
  const int x = builder.Input("x", batch);
  const int rate = builder.Buffer(plan::SCALAR, "learning_rate", scalar);
  const int half = builder.Constant("half", {0.5f});
  const int h = builder.Buffer(plan::STASH, "h", batch);
  const int squares = builder.Buffer(plan::TEMPORARY, "squares", batch);
  const int product =
      builder.Alias(plan::TEMPORARY, "product", batch, builder.program().buffers(squares).offset());
  const int out = builder.Buffer(plan::OUTPUT, "loss", scalar);
  const int predictions = builder.Buffer(plan::OUTPUT, "h", batch);
  const int batch_loss = builder.Buffer(plan::TEMPORARY, "batch_loss", scalar);
  const int batch_dw = builder.Buffer(plan::TEMPORARY, "batch_dw", row);
  for (const int index : {h, squares, product, predictions}) builder.CutByRanks(index);
  for (const int index : {batch_loss, batch_dw}) builder.SumOverRanks(index);

  builder.Segment("forward");
  builder.Split(builder.Launch("test_multiply", {x, w}, {h}, "/model/scale/Mul"), "bk,k->bk", "b",
                {{0}, {1}});
  builder.Split(builder.Launch("test_multiply", {h, h}, {squares}, "/loss/Mul"), "bk,bk->bk", "b",
                {{0}, {1}});
  builder.Split(builder.Launch("test_sum", {squares, half}, {batch_loss}, "/loss/ReduceSum"),
                "bk,.->", "b", {{0}});
  builder.Split(builder.Launch("test_add", {loss, batch_loss}, {loss}), ",->", "", {{0, 1}});
  const auto backward = [&](const char* name) {
    builder.Segment(name);
    builder.Split(builder.Launch("test_multiply", {h, x}, {product}, "/model/scale/Mul"),
                  "bk,bk->bk", "b", {{0}, {1}});
    builder.Split(builder.Launch("test_sum_rows", {product}, {batch_dw}, "/model/scale/Mul"),
                  "bk->k", "b", {{0}});
    builder.Split(builder.Launch("test_add", {dw, batch_dw}, {dw}), "k,k->k", "", {{0, 1}});
  };
  const bool in_update = reduce == ReduceGradient::kInUpdate;
  const bool scattered = reduce == ReduceGradient::kInLastScattered;
  int piece = -1, whole = -1;
  if (in_update || microbatches > 1) backward("backward");
  if (!in_update) {
    backward("backward_last");
    if (scattered) {
      piece = builder.Buffer(plan::STASH, "dw_piece", {DType::kF32, {4 / ranks}});
      builder.CutByRanks(piece);
      whole = builder.Buffer(plan::TEMPORARY, "dw_whole", row);
      auto& scatter = builder.Collective(plan::Collective::REDUCE_SCATTER, dw, piece);
      scatter.set_reduction(plan::Collective::SUM);
      scatter.set_stream(1);
    } else {
      builder.AllReduce({dw}, {builder.Reduced(dw)}).set_stream(1);
    }
    builder.Wait(3);
  }
  builder.Segment("update");
  if (in_update) {
    builder.AllReduce({dw, loss}, {builder.Reduced(dw), builder.Reduced(loss)});
  } else {
    builder.AllReduce({loss}, {builder.Reduced(loss)});
  }
  if (scattered) builder.Collective(plan::Collective::ALL_GATHER, piece, whole);
  builder.Launch("test_descend", {w, scattered ? whole : builder.Reduced(dw), rate}, {w});
  builder.Copy(builder.Reduced(loss), out);
  builder.FillZero(dw);
  builder.FillZero(loss);
  builder.Segment("eval");
  builder.Split(builder.Launch("test_multiply", {x, w}, {predictions}, "/model/scale/Mul"),
                "bk,k->bk", "b", {{0}, {1}});
  builder.Schedule(/*micro_batch=*/2, microbatches);
  if (!in_update) {
    auto* schedule = builder.program().mutable_schedule();
    schedule->at(schedule->size() - 2).set_segment("backward_last");
    schedule->at(schedule->size() - 1).set_microbatch(microbatches - 1);
  }
  return builder.plan();
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_PLAN_BUILDER_TESTING_H_
