// Plans of two pipeline stages, made by hand.
#ifndef ORIEL_RUNTIME_PLAN_TWO_STAGE_PLAN_TESTING_H_
#define ORIEL_RUNTIME_PLAN_TWO_STAGE_PLAN_TESTING_H_

#include <cstdint>
#include <random>
#include <string>

#include "runtime/plan/plan_builder_testing.h"

namespace oriel::runtime {

struct TwoStageOptions {
  int64_t ranks[2] = {1, 1};  // of each grid; each divides `samples`
  int64_t samples = 4;        // of a microbatch
  int64_t microbatches = 4;
  int64_t slots = 2;   // copies of what a microbatch keeps or sends; all microbatches for GPipe
  bool gpipe = false;  // all forward runs before the first backward one; else 1F1B
};

// Trains w on a first grid and v on a second one (4 elements each) to make y = x * w * v small,
// where x is an input of `samples` samples of 4:
//
//   forward.0   h = x * w, which it sends
//   forward.1   y = h * v (the stash); loss += sum(y * y) / 2
//   backward.1  dv += sum over samples of y * h; sends dh = y * v
//   backward.0  dw += sum over samples of dh * x
//   update      each steps its own; the second sends the loss to the first; both output it
//   eval.0      h = x * w, which it sends
//   eval.1      outputs y
//
// Its kernels are those of SmallTrainingPlan.
inline plan::Plan TwoStagePlan(const TwoStageOptions& options) {
  const TensorSpec scalar{DType::kF32, {}};
  const TensorSpec row{DType::kF32, {4}};
  const TensorSpec first_batch{DType::kF32, {options.samples / options.ranks[0], 4}};
  const TensorSpec second_batch{DType::kF32, {options.samples / options.ranks[1], 4}};
  const auto ring = [&](PlanBuilder& builder, plan::BufferKind kind, const std::string& name,
                        const TensorSpec& spec, int64_t slots) {
    const int index = builder.Ring(kind, name, spec, slots);
    if (!spec.shape.empty()) builder.CutByRanks(index);
    return index;
  };
  const auto part = [&](PlanBuilder& builder, const std::string& name, const TensorSpec& spec,
                        bool sum) {
    const int index = builder.Buffer(plan::TEMPORARY, name, spec);
    sum ? builder.SumOverRanks(index) : builder.CutByRanks(index);
    return index;
  };

  PlanBuilder builder(options.ranks[0]);
  const int w = builder.Parameter("w", row);
  const int dw = builder.Buffer(plan::GRADIENT, "w", row);
  const int x = builder.Input("x", first_batch);
  const int first_rate = builder.Buffer(plan::SCALAR, "learning_rate", scalar);
  const int sent_h = ring(builder, plan::TRANSFER, "h", first_batch, options.slots);
  const int received_dh = ring(builder, plan::TRANSFER, "dh", first_batch, options.slots);
  const int sent_eval_h = ring(builder, plan::TRANSFER, "eval_h", first_batch, 1);
  const int received_loss = builder.Buffer(plan::TRANSFER, "received_loss", scalar);
  const int first_loss = builder.Buffer(plan::OUTPUT, "loss", scalar);
  const int product = part(builder, "product", first_batch, false);
  const int batch_dw = part(builder, "batch_dw", row, true);

  builder.AddGrid(options.ranks[1]);
  const int v = builder.Parameter("v", row);
  const int dv = builder.Buffer(plan::GRADIENT, "v", row);
  const int loss = builder.Buffer(plan::ACCUMULATOR, "loss_sum", scalar);
  const int second_rate = builder.Buffer(plan::SCALAR, "learning_rate", scalar);
  const int half = builder.Constant("half", {0.5f});
  const int received_h = ring(builder, plan::TRANSFER, "h", second_batch, options.slots);
  const int y = ring(builder, plan::STASH, "y", second_batch, options.slots);
  const int sent_dh = ring(builder, plan::TRANSFER, "dh", second_batch, options.slots);
  const int received_eval_h = ring(builder, plan::TRANSFER, "eval_h", second_batch, 1);
  const int sent_loss = builder.Buffer(plan::TRANSFER, "sent_loss", scalar);
  const int second_loss = builder.Buffer(plan::OUTPUT, "loss", scalar);
  const int predictions = builder.Buffer(plan::OUTPUT, "y", second_batch);
  builder.CutByRanks(predictions);
  const int squares = part(builder, "squares", second_batch, false);
  const int batch_loss = part(builder, "batch_loss", scalar, true);
  const int batch_dv = part(builder, "batch_dv", row, true);

  const int h_channel = builder.Channel("h", 0, sent_h, 1, received_h);
  const int dh_channel = builder.Channel("dh", 1, sent_dh, 0, received_dh);
  const int eval_channel = builder.Channel("eval_h", 0, sent_eval_h, 1, received_eval_h);
  const int loss_channel = builder.Channel("loss", 1, sent_loss, 0, received_loss);
  const auto multiply = [&](int a, int b, int result) {
    const bool by_row = builder.program().buffers(b).local().shape_size() == 1;
    builder.Split(builder.Launch("test_multiply", {a, b}, {result}),
                  by_row ? "bk,k->bk" : "bk,bk->bk", "b", {{0}, {1}});
  };
  const auto add_row_sum = [&](int value, int sum, int total) {
    builder.Split(builder.Launch("test_sum_rows", {value}, {sum}), "bk->k", "b", {{0}});
    builder.Split(builder.Launch("test_add", {total, sum}, {total}), "k,k->k", "", {{0, 1}});
  };

  builder.UseGrid(0);
  builder.Segment("forward.0");
  multiply(x, w, sent_h);
  builder.Send(h_channel, sent_h);
  builder.Segment("backward.0");
  builder.Receive(dh_channel, received_dh);
  multiply(received_dh, x, product);
  add_row_sum(product, batch_dw, dw);
  builder.Segment("update");
  builder.AllReduce({dw}, {builder.Reduced(dw)});
  builder.Launch("test_descend", {w, builder.Reduced(dw), first_rate}, {w});
  builder.FillZero(dw);
  builder.Receive(loss_channel, received_loss);
  builder.Copy(received_loss, first_loss);
  builder.Segment("eval.0");
  multiply(x, w, sent_eval_h);
  builder.Send(eval_channel, sent_eval_h);

  builder.UseGrid(1);
  builder.Segment("forward.1");
  builder.Receive(h_channel, received_h);
  multiply(received_h, v, y);
  multiply(y, y, squares);
  builder.Split(builder.Launch("test_sum", {squares, half}, {batch_loss}), "bk,.->", "b", {{0}});
  builder.Split(builder.Launch("test_add", {loss, batch_loss}, {loss}), ",->", "", {{0, 1}});
  builder.Segment("backward.1");
  multiply(y, v, sent_dh);
  builder.Send(dh_channel, sent_dh);
  multiply(y, received_h, squares);
  add_row_sum(squares, batch_dv, dv);
  builder.Segment("update");
  builder.AllReduce({dv, loss}, {builder.Reduced(dv), builder.Reduced(loss)});
  builder.Copy(builder.Reduced(loss), sent_loss);
  builder.Send(loss_channel, sent_loss);
  builder.Launch("test_descend", {v, builder.Reduced(dv), second_rate}, {v});
  builder.Copy(builder.Reduced(loss), second_loss);
  builder.FillZero(dv);
  builder.FillZero(loss);
  builder.Segment("eval.1");
  builder.Receive(eval_channel, received_eval_h);
  multiply(received_eval_h, v, predictions);

  // The first grid runs one microbatch ahead of the second one, or all of them.
  const int64_t shares = std::min(options.ranks[0], options.ranks[1]);
  builder.Batch(options.samples / shares, options.microbatches, shares);
  for (const int grid : {0, 1}) {
    builder.UseGrid(grid);
    const std::string stage = std::to_string(grid);
    const int64_t ahead = options.gpipe ? options.microbatches : 1 - grid;
    for (int64_t i = 0; i < options.microbatches + ahead; ++i) {
      if (i < options.microbatches) builder.Entry("forward." + stage, i);
      if (i >= ahead) builder.Entry("backward." + stage, i - ahead);
    }
    builder.Entry("update", 0);
  }
  return builder.plan();
}

// TwoStagePlan() with one rank a stage, each of which runs its forwards and backwards in a random
// order and has a random number of each copy. Most of these plans can't run, which the verifier
// says.
inline plan::Plan RandomPipeline(const TwoStageOptions& options, std::mt19937& random) {
  plan::Plan plan = TwoStagePlan(options);
  for (int stage = 0; stage < 2; ++stage) {
    plan::Program& program = *plan.mutable_programs(stage);
    program.clear_schedule();
    for (int64_t forwards = 0, backwards = 0; backwards < options.microbatches;) {
      const bool forward =
          forwards == backwards || (forwards < options.microbatches && random() % 3 > 0);
      auto* entry = program.add_schedule();
      entry->set_segment((forward ? "forward." : "backward.") + std::to_string(stage));
      entry->set_microbatch(forward ? forwards++ : backwards++);
    }
    program.add_schedule()->set_segment("update");
    for (auto& buffer : *program.mutable_buffers()) {
      if (CopiesOf(buffer) == 1) continue;
      buffer.mutable_copy_offsets()->Truncate(static_cast<int>(random() % options.microbatches));
    }
  }
  return plan;
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_TWO_STAGE_PLAN_TESTING_H_
