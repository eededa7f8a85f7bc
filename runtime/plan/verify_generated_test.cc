// Generated kernels, of which the verifier never runs anything.
#include "runtime/plan/verify_testing.h"

namespace oriel::runtime {
namespace {

plan::GeneratedKernel& Kernel(plan::Plan& plan) { return *plan.mutable_generated(0); }

// The first launch of forward is one of generated code.
plan::Plan PlanWithGenerated() {
  plan::Plan plan = SmallTrainingPlan(1, 1);
  plan::Launch& launch = Launch(plan, kForward, 0);
  plan::GeneratedKernel& kernel = *plan.add_generated();
  kernel.set_name("k");
  for (const int index : launch.operands()) *kernel.add_operands() = Buffer(plan, index).local();
  for (const int index : launch.results()) *kernel.add_results() = Buffer(plan, index).local();
  kernel.set_units(FromPlan(kernel.results(0)).num_elements());
  kernel.set_unit_elements(1);
  plan::GeneratedKernel::Image& image = *kernel.add_images();
  image.set_target("x86-64");
  image.set_code("\xc3");
  launch.set_kernel("generated");
  launch.clear_attributes();
  launch.set_generated(0);
  return plan;
}

TEST(VerifyGenerated, TakesAGoodPlan) { ORIEL_EXPECT_OK(VerifyPlan(PlanWithGenerated())); }

class VerifyBadGenerated : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadGenerated, SaysWhatIsWrong) { ExpectRefused(PlanWithGenerated(), GetParam()); }

const BadPlan kBad[] = {
    {"NoName", [](auto& plan) { Kernel(plan).clear_name(); },
     "the generated kernel '' has no name of its own"},
    {"NameTwice", [](auto& plan) { *plan.add_generated() = plan.generated(0); },
     "the generated kernel 'k' has no name of its own"},
    {"NoResult", [](auto& plan) { Kernel(plan).clear_results(); }, "'k' has no result"},
    {"ImpossibleTensor",
     [](auto& plan) { Kernel(plan).mutable_operands(0)->set_dtype(plan::DTYPE_UNSPECIFIED); },
     "'k' is for an impossible tensor"},
    {"FewUnits", [](auto& plan) { Kernel(plan).set_units(1); }, "'k' computes 1 units of 1"},
    {"OneElementOfSeveral", [](auto& plan) { Kernel(plan).set_unit_elements(2); },
     "units of 2 elements, but has a result"},
    {"NegativeBlock", [](auto& plan) { Kernel(plan).set_block_units(-1); },
     "computes -1 units with a block of CUDA"},
    {"LargeBlock", [](auto& plan) { Kernel(plan).set_block_units(257); },
     "computes 257 units with a block of CUDA"},
    {"NegativeThread", [](auto& plan) { Kernel(plan).set_thread_elements(-1); },
     "computes -1 elements with a thread of CUDA"},
    {"ThreadsThatDoNotDivide",
     [](auto& plan) { Kernel(plan).set_thread_elements(Kernel(plan).units() + 1); },
     "elements with a thread of CUDA, of"},
    {"ThreadsOfRows",
     [](auto& plan) {
       Kernel(plan).set_block_units(1);
       Kernel(plan).set_thread_elements(Kernel(plan).units());
     },
     "elements with a thread of CUDA, of"},
    {"NoUnits", [](auto& plan) { Kernel(plan).set_units(0); }, "'k' computes 0 units"},
    {"NegativeUnits",
     [](auto& plan) {
       Kernel(plan).set_units(-Kernel(plan).units());
       Kernel(plan).set_unit_elements(-1);
     },
     "units of -1 elements"},
    {"NoCode", [](auto& plan) { Kernel(plan).clear_images(); }, "'k' has no code"},
    {"EmptyCode", [](auto& plan) { Kernel(plan).mutable_images(0)->clear_code(); },
     "'k' has 0 bytes of code for 'x86-64'"},
    {"EntryBeyondCode", [](auto& plan) { Kernel(plan).mutable_images(0)->set_entry(1); },
     "begins outside of it"},
    {"NegativeEntry", [](auto& plan) { Kernel(plan).mutable_images(0)->set_entry(-1); },
     "begins outside of it"},
    {"TargetTwice", [](auto& plan) { *Kernel(plan).add_images() = Kernel(plan).images(0); },
     "'k' has code for 'x86-64' twice"},
    {"LaunchOfNoKernel", [](auto& plan) { Launch(plan, kForward, 0).set_generated(1); },
     "names the generated kernel 1 of 1"},
    {"LaunchOfNegativeKernel", [](auto& plan) { Launch(plan, kForward, 0).set_generated(-1); },
     "names the generated kernel -1 of 1"},
    {"LaunchWithoutCode", [](auto& plan) { Launch(plan, kForward, 0).clear_generated(); },
     "of the kernel 'generated', and no other, names generated code"},
    {"OtherKernelWithCode", [](auto& plan) { Launch(plan, kForward, 0).set_kernel("add"); },
     "of the kernel 'generated', and no other, names generated code"},
    {"OtherType", [](auto& plan) { Kernel(plan).mutable_operands(0)->set_dtype(plan::I32); },
     "has other operands or results than the code of 'k' is made for"},
    {"OtherShape", [](auto& plan) { Kernel(plan).mutable_operands(0)->add_shape(1); },
     "has other operands or results than the code of 'k' is made for"},
    {"OtherCount", [](auto& plan) { *Kernel(plan).add_operands() = Kernel(plan).operands(0); },
     "has other operands or results than the code of 'k' is made for"},
    {"Attributes",
     [](auto& plan) { (*Launch(plan, kForward, 0).mutable_attributes())["units"].set_i(9); },
     "gives attributes to generated code"},
};
INSTANTIATE_TEST_SUITE_P(Generated, VerifyBadGenerated, ::testing::ValuesIn(kBad), NameOf);

}  // namespace
}  // namespace oriel::runtime
