#include "runtime/plan/transfer_order.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/plan/two_stage_plan_testing.h"
#include "runtime/plan/verify.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;
using Message = TransferOrder::Message;

const plan::Instruction& InstructionOf(const plan::Plan& plan, int program,
                                       const Message& message) {
  return plan.programs(program).segments(message.segment).instructions(message.instruction);
}

int ChannelOf(const plan::Plan& plan, int program, const Message& message) {
  const plan::Instruction& instruction = InstructionOf(plan, program, message);
  return instruction.has_send() ? instruction.send().channel() : instruction.receive().channel();
}

// As strict as can be: a rank does one thing after the other, and a message on both sides at once.
// False if it does not come to its end.
bool RunsOneByOne(const plan::Plan& plan, const TransferOrder& order) {
  std::vector<size_t> next(plan.programs_size());
  const auto done = [&](int i) { return next[i] == order.programs[i].messages.size(); };
  for (bool moved = true; moved;) {
    moved = false;
    for (int a = 0; a < plan.programs_size(); ++a) {
      for (int b = 0; b < plan.programs_size(); ++b) {
        if (a == b || done(a) || done(b)) continue;
        const Message& sent = order.programs[a].messages[next[a]];
        const Message& received = order.programs[b].messages[next[b]];
        if (!InstructionOf(plan, a, sent).has_send() ||
            !InstructionOf(plan, b, received).has_receive() ||
            ChannelOf(plan, a, sent) != ChannelOf(plan, b, received)) {
          continue;
        }
        EXPECT_EQ(sent.microbatch, received.microbatch);
        ++next[a];
        ++next[b];
        moved = true;
      }
    }
  }
  for (int i = 0; i < plan.programs_size(); ++i) {
    if (!done(i)) return false;
  }
  return true;
}

// Hosts may meet before the update: what is sent before, and received before, is on its way.
void CheckAllIsPut(const plan::Plan& plan, int index, const TransferOrder::Program& program,
                   int point) {
  for (size_t i = program.put[point]; i < program.messages.size(); ++i) {
    EXPECT_EQ(plan.programs(index).segments(program.messages[i].segment).name(), "update");
  }
}

// What is put has been made ready, and what is waited for has been put.
void CheckPoints(const plan::Plan& plan, int index, const TransferOrder::Program& program) {
  std::set<std::tuple<int, int, int64_t>> sent, put;
  size_t next = 0;
  const auto pass = [&](int point) {
    for (; next < static_cast<size_t>(program.put[point]); ++next) {
      const auto& [segment, instruction, microbatch] = program.messages[next];
      put.insert({segment, instruction, microbatch});
      if (!InstructionOf(plan, index, program.messages[next]).has_send()) continue;
      EXPECT_EQ(sent.count({segment, instruction, microbatch}), 1u) << "not ready to be sent";
    }
  };
  for (const auto& [segment, microbatch, first_point] : program.runs) {
    int point = first_point;
    if (plan.programs(index).segments(segment).name() == "update") {
      CheckAllIsPut(plan, index, program, first_point - 1);
    }
    pass(point++);
    pass(point++);
    const auto& instructions = plan.programs(index).segments(segment).instructions();
    for (int i = 0; i < instructions.size(); ++i) {
      if (!instructions[i].has_send() && !instructions[i].has_receive()) continue;
      if (instructions[i].has_send()) sent.insert({segment, i, microbatch});
      pass(point++);
      if (!instructions[i].has_receive()) continue;
      EXPECT_EQ(put.count({segment, i, microbatch}), 1u) << "waited for, and not put";
    }
    pass(point++);
  }
  EXPECT_EQ(next, program.messages.size());
}

void Check(const plan::Plan& plan) {
  for (const bool eval : {false, true}) {
    ORIEL_ASSERT_OK_AND_ASSIGN(const TransferOrder order, OrderTransfers(plan, eval));
    ASSERT_EQ(static_cast<int>(order.programs.size()), plan.programs_size());
    EXPECT_TRUE(RunsOneByOne(plan, order));
    for (int i = 0; i < plan.programs_size(); ++i) {
      EXPECT_FALSE(order.programs[i].messages.empty());
      CheckPoints(plan, i, order.programs[i]);
    }
  }
}

// 1F1B, in which the stages send to each other at the same time.
TEST(TransferOrderTest, OneOrderForAllPrograms) {
  for (const int64_t slots : {1, 2, 3}) Check(TwoStagePlan({{1, 1}, 4, 6, slots, false}));
  Check(TwoStagePlan({{2, 3}, 6, 4, 4, true}));
}

// Forwards and backwards of each stage in a random order, with random numbers of copies.
TEST(TransferOrderTest, OfRandomPipelines) {
  constexpr int64_t kMicrobatches = 5;
  std::mt19937 random(3);
  int checked = 0;
  for (int i = 0; i < 3000 && checked < 150; ++i) {
    const plan::Plan plan = RandomPipeline({{1, 1}, 4, kMicrobatches, kMicrobatches, true}, random);
    if (!VerifyPlan(plan).ok()) continue;
    Check(plan);
    ++checked;
  }
  EXPECT_EQ(checked, 150);
}

// A send is put when its receiver can take it: one copy on that side, and nothing waits meanwhile.
TEST(TransferOrderTest, ASendIsPutWhenItsReceiverHasRoom) {
  TwoStageOptions options;
  options.microbatches = 3;
  options.slots = 3;
  plan::Plan plan = TwoStagePlan(options);
  for (auto& buffer : *plan.mutable_programs(1)->mutable_buffers()) {
    if (buffer.kind() == plan::TRANSFER && buffer.name() == "h") buffer.clear_copy_offsets();
  }
  ORIEL_ASSERT_OK(VerifyPlan(plan));
  Check(plan);
}

TEST(TransferOrderTest, RanksThatWouldWaitForEver) {
  plan::Plan plan = TwoStagePlan({});
  auto& schedule = *plan.mutable_programs(0)->mutable_schedule();
  // backward.0 of the first microbatch before its forward.0.
  schedule.SwapElements(0, 2);
  EXPECT_THAT(OrderTransfers(plan, /*eval=*/false),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the plan is not valid")));
}

}  // namespace
}  // namespace oriel::runtime
