// Gradients that a step sets, kept or not.
#include "runtime/plan/verify_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A step of one microbatch may set a gradient, which need not be zero before.
TEST(VerifyGradients, TakesAGradientThatIsSet) {
  const auto sets = [](int64_t microbatches) {
    plan::Plan plan = SmallTrainingPlan(2, microbatches);
    auto* copy = Instruction(plan, kBackward, 2).mutable_copy();
    copy->set_source(kBatchDw);
    copy->set_target(kDw);
    RemoveInstruction(plan, kUpdate, 3);
    return plan;
  };
  ORIEL_EXPECT_OK(VerifyPlan(sets(1)));
  EXPECT_THAT(VerifyPlan(sets(2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("segment backward overwrites gradient 'w' instead of adding")));
  // The last microbatch's run, which reduces what it makes.
  const auto sets_in_last = [&](int64_t microbatches, bool first) {
    plan::Plan plan = SmallTrainingPlan(2, microbatches, ReduceGradient::kInLast);
    for (auto& segment : *Program(plan).mutable_segments()) {
      const bool last = segment.name() == "backward_last";
      if (!last && !(first && segment.name() == "backward")) continue;
      auto* copy = segment.mutable_instructions(2)->mutable_copy();
      copy->set_source(kBatchDw);
      copy->set_target(kDw);
    }
    return plan;
  };
  ORIEL_EXPECT_OK(VerifyPlan(sets_in_last(1, false)));
  for (const bool first : {false, true}) {
    EXPECT_THAT(VerifyPlan(sets_in_last(2, first)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("gradient 'w'")));
  }
  // What the last step has left is read.
  plan::Plan reads = sets(1);
  AddLaunch(reads, kForward, {kDw}, {kSquares});
  EXPECT_THAT(VerifyPlan(reads), StatusIs(absl::StatusCode::kInvalidArgument,
                                          HasSubstr("segment backward overwrites gradient 'w'")));
}

// .. and need not keep it from step to step: then it lies where the stash did.
plan::Plan StepGradientPlan(int64_t microbatches) {
  plan::Plan plan = SmallTrainingPlan(2, microbatches);
  Buffer(plan, kDw).set_kind(plan::STEP_GRADIENT);
  Buffer(plan, kDw).set_offset(Buffer(plan, kH).offset());
  auto* copy = Instruction(plan, kBackward, 2).mutable_copy();
  copy->set_source(kBatchDw);
  copy->set_target(kDw);
  RemoveInstruction(plan, kUpdate, 3);
  return plan;
}

TEST(VerifyGradients, TakesAGradientOfOneStep) {
  ORIEL_EXPECT_OK(VerifyPlan(StepGradientPlan(1)));
  EXPECT_THAT(VerifyPlan(StepGradientPlan(2)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradient 'w' is of one backward, but a step runs 2")));
  plan::Plan unset = StepGradientPlan(1);
  RemoveInstruction(unset, kBackward, 2);
  EXPECT_THAT(VerifyPlan(unset), StatusIs(absl::StatusCode::kInvalidArgument,
                                          AllOf(HasSubstr("no backward sets gradient 'w'"),
                                                HasSubstr("(all_reduce) reads gradient 'w'"))));
  plan::Plan early = StepGradientPlan(1);
  AddLaunch(early, kBackward, {kH}, {kSquares});
  EXPECT_THAT(VerifyPlan(early),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("reads stash 'h', whose memory gradient 'w' has overwritten")));
  plan::Plan late = StepGradientPlan(1);
  AddLaunch(late, kBackward, {kX}, {kSquares});
  Buffer(late, kSquares).set_offset(Buffer(late, kDw).offset());
  EXPECT_THAT(VerifyPlan(late),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("reads gradient 'w', whose memory temporary 'squares' has")));
  plan::Plan both = StepGradientPlan(1);
  plan::Buffer second = Buffer(both, kDw);
  *both.add_parameters() = both.parameters(0);
  both.mutable_parameters(1)->set_name("v");
  second.set_ref("v");
  *Program(both).add_buffers() = second;
  EXPECT_THAT(VerifyPlan(both),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("gradient 'w' and gradient 'v' lie in the same memory")));
  plan::Plan evaluated = StepGradientPlan(1);
  constexpr int kEval = kUpdate + 1;
  AddLaunch(evaluated, kEval, {kW}, {kDw});
  EXPECT_THAT(VerifyPlan(evaluated),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("writes gradient 'w', which eval may not")));
}

}  // namespace
}  // namespace oriel::runtime
