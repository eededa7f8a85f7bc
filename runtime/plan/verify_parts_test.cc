// Parameters that are parts of what files have as one.
#include "runtime/plan/verify_testing.h"

namespace oriel::runtime {
namespace {

void SetPart(plan::Parameter* parameter, int64_t size, int64_t start) {
  parameter->mutable_part_of()->set_tensor("whole");
  parameter->mutable_part_of()->add_shape(size);
  parameter->mutable_part_of()->add_start(start);
}

plan::Parameter* AddFrozen(plan::Plan& plan, const std::string& name, const Shape& shape) {
  plan::Parameter* parameter = plan.add_parameters();
  *parameter = plan.parameters(0);
  parameter->clear_part_of();
  parameter->set_name(name);
  parameter->set_trainable(false);
  *parameter->mutable_global() = ToPlan({DType::kF32, shape});
  return parameter;
}

TEST(VerifyParts, TakesAParameterInParts) {
  plan::Plan plan = SmallTrainingPlan(2, 1);
  SetPart(plan.mutable_parameters(0), 4, 0);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
}

class VerifyBadParts : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadParts, SaysWhatIsWrong) { ExpectRefused(SmallTrainingPlan(2, 2), GetParam()); }

const BadPlan kParts[] = {
    {"PartThatReachesBeyond", [](auto& plan) { SetPart(plan.mutable_parameters(0), 6, 3); },
     "the parts of 'whole': 'w' is [4] at [3], not within [6]"},
    {"PartOfOtherRank",
     [](auto& plan) {
       SetPart(plan.mutable_parameters(0), 4, 0);
       plan.mutable_parameters(0)->mutable_part_of()->add_start(0);
     },
     "the parts of 'whole': 'w' is [4] at [0, 0], not within [4]"},
    {"PartOfTheImpossible", [](auto& plan) { SetPart(plan.mutable_parameters(0), -4, 0); },
     "the parts of 'whole'"},
    {"PartWithoutTheOthers", [](auto& plan) { SetPart(plan.mutable_parameters(0), 6, 2); },
     "the parts of 'whole' lack 2 of 6 elements"},
    {"PartThatOverlaps",
     [](auto& plan) {
       SetPart(plan.mutable_parameters(0), 6, 2);
       SetPart(AddFrozen(plan, "v", {3}), 6, 0);
       plan.mutable_parameters(1)->set_trainable(true);
     },
     "the parts of 'whole': [3] at [0] and [4] at [2] overlap"},
    {"PartThatIsFrozen",
     [](auto& plan) {
       SetPart(plan.mutable_parameters(0), 6, 2);
       SetPart(AddFrozen(plan, "v", {2}), 6, 0);
     },
     "the parts of 'whole': one of 'v' and 'w' is frozen"},
    {"PartOfAnotherShape",
     [](auto& plan) {
       SetPart(plan.mutable_parameters(0), 6, 2);
       SetPart(AddFrozen(plan, "v", {2}), 8, 0);
     },
     "the parts of 'whole': one of 'v' and 'w' is of another shape"},
    {"PartOfAnotherType",
     [](auto& plan) {
       SetPart(plan.mutable_parameters(0), 6, 2);
       plan::Parameter* part = AddFrozen(plan, "v", {2});
       SetPart(part, 6, 0);
       part->mutable_global()->set_dtype(plan::BF16);
     },
     "the parts of 'whole': one of 'v' and 'w' is of another type"},
    {"PartWithoutAState",
     [](auto& plan) {
       SetPart(plan.mutable_parameters(0), 6, 2);
       SetPart(AddFrozen(plan, "v", {2}), 6, 0);
       plan.mutable_parameters(1)->set_trainable(true);
       auto* state = plan.add_optimizer_states();
       state->set_parameter("v");
       state->set_slot("momentum");
       *state->mutable_global() = plan.parameters(1).global();
     },
     "the parts of 'whole': one of 'v' and 'w' is stepped otherwise"},
    {"PartOfNoElements",
     [](auto& plan) {
       SetPart(plan.mutable_parameters(0), 4, 0);
       SetPart(AddFrozen(plan, "v", {0}), 4, 0);
     },
     "the parts of 'whole': 'v' is [0] at [0], not within [4]"},
    {"TooManyParts",
     [](auto& plan) {
       for (int i = 0; i < 1025; ++i) {
         SetPart(AddFrozen(plan, absl::StrCat("v", i), {1}), 1025, i);
       }
     },
     "the parts of 'whole' are 1025, more than 1024"},
    {"PartOfWhatIsThere",
     [](auto& plan) {
       SetPart(plan.mutable_parameters(0), 4, 0);
       AddFrozen(plan, "whole", {4});
     },
     "parameter 'whole' is there whole and in parts"},
    {"PartOfNothing",
     [](auto& plan) {
       SetPart(plan.mutable_parameters(0), 4, 0);
       plan.mutable_parameters(0)->mutable_part_of()->clear_tensor();
     },
     "the parts of '' have no name in files"},
};
INSTANTIATE_TEST_SUITE_P(Parts, VerifyBadParts, ::testing::ValuesIn(kParts), NameOf);

}  // namespace
}  // namespace oriel::runtime
