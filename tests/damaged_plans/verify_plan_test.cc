// `oriel verify` on damaged plans of a real model, on 2 x 2 ranks with sharded optimizer states.
#include <string>

#include "tests/damaged_plans/damaged_plan_testing.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Place FirstAllReduce(plan::Plan& plan) {
  return Find(plan, "forward", [](const plan::Instruction& instruction) {
    return instruction.collective().kind() == plan::Collective::ALL_REDUCE;
  });
}

// What gives a parameter its new value.
Place ParameterWrite(plan::Plan& plan) {
  return Find(plan, "update", [&](const plan::Instruction& instruction) {
    const auto is_parameter = [&](int buffer) {
      return plan.programs(0).buffers(buffer).kind() == plan::PARAMETER;
    };
    const auto& launched = instruction.launch().results();
    const auto& collected = instruction.collective().results();
    return std::any_of(launched.begin(), launched.end(), is_parameter) ||
           std::any_of(collected.begin(), collected.end(), is_parameter);
  });
}

std::string OtherAxis(const std::string& axis) { return axis == "a0" ? "a1" : "a0"; }

// What communicates beside computing has its own tests (verify_overlap_plan_test.cc).
struct Sharded {
  static constexpr char kName[] = "llava_tiny";
  static std::vector<const char*> Options() {
    return {"--mesh", "dp=2,tp=2", "--zero", "2", "--overlap", "off"};
  }
};
class VerifyPlanTest : public DamagedPlanTest<Sharded> {};

TEST_F(VerifyPlanTest, TakesTheCompiledPlan) { ExpectTaken(); }

TEST_F(VerifyPlanTest, RefusesAMissingAllReduce) {
  FirstAllReduce(plan_).Remove();
  ExpectRefused(AllOf(HasSubstr("program 0, segment forward, instruction"), HasSubstr(" reads "),
                      HasSubstr("but there is"), HasSubstr("sum {a1}")));
}

TEST_F(VerifyPlanTest, RefusesASumThatIsReducedTwice) {
  const Place place = FirstAllReduce(plan_);
  place.Repeat();
  auto& again = *place.instructions()[place.index + 1].mutable_collective();
  *again.mutable_operands() = again.results();
  ExpectRefused(AllOf(HasSubstr(Place{place.segment, place.index + 1}.ToString()),
                      HasSubstr("which is no pending sum over {a1}")));
}

TEST_F(VerifyPlanTest, RefusesTheWrongAxis) {
  const Place place = FirstAllReduce(plan_);
  auto& axis = *place.instruction().mutable_collective()->mutable_axes(0);
  axis = OtherAxis(axis);
  ExpectRefused(AllOf(HasSubstr(place.ToString()), HasSubstr("which is no pending sum over {a0}")));
}

TEST_F(VerifyPlanTest, RefusesTheWrongScale) {
  const Place place = FirstAllReduce(plan_);
  const int buffer = place.instruction().collective().results(0);
  plan_.mutable_programs(0)->mutable_buffers(buffer)->set_scale(0.5);
  ExpectRefused(AllOf(HasSubstr(place.ToString()), HasSubstr("scale 0.5")));
}

TEST_F(VerifyPlanTest, RefusesALaunchBeforeItsCollective) {
  const Place place = FirstAllReduce(plan_);
  const int sum = place.instruction().collective().results(0);
  const Place reader = Find(plan_, "forward", [&](const plan::Instruction& instruction) {
    const auto& operands = instruction.launch().operands();
    return std::count(operands.begin(), operands.end(), sum) > 0;
  });
  place.instructions().SwapElements(place.index, reader.index);
  ExpectRefused(AllOf(HasSubstr("segment forward, instruction " + std::to_string(place.index)),
                      HasSubstr(" reads ")));
}

TEST_F(VerifyPlanTest, RefusesTheWrongSlice) {
  const Place place = Find(plan_, "update", [](const plan::Instruction& instruction) {
    return instruction.has_slice();
  });
  auto& axis = *place.instruction().mutable_slice()->mutable_axes(0);
  axis = OtherAxis(axis);
  ExpectRefused(HasSubstr(place.ToString()));
}

TEST_F(VerifyPlanTest, RefusesAParameterThatIsNotUpdated) {
  ParameterWrite(plan_).Remove();
  ExpectRefused(AllOf(HasSubstr("update writes parameter"), HasSubstr(" 0 times, not once")));
}

TEST_F(VerifyPlanTest, RefusesAParameterThatIsUpdatedTwice) {
  ParameterWrite(plan_).Repeat();
  ExpectRefused(AllOf(HasSubstr("update writes parameter"), HasSubstr(" 2 times, not once")));
}

TEST_F(VerifyPlanTest, RefusesAnUnknownRule) {
  const Place place = Find(plan_, "backward", [](const plan::Instruction& instruction) {
    return instruction.launch().has_split();
  });
  place.instruction().mutable_launch()->mutable_split()->set_rule(1 << 20);
  ExpectRefused(AllOf(HasSubstr(place.ToString()), HasSubstr("names the rule 1048576")));
}

}  // namespace
}  // namespace oriel
