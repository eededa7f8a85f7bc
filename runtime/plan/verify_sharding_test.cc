// How values lie over the ranks, from instruction to instruction.
#include "runtime/plan/verify_testing.h"

namespace oriel::runtime {
namespace {

// The plan of 2 ranks on 4: the grid has another axis, on which all is the same.
plan::Plan WidePlan() {
  plan::Plan plan = SmallTrainingPlan(2, 2);
  plan.set_world_size(4);
  Program(plan).set_rank_count(4);
  auto* axis = plan.mutable_grids(0)->add_axes();
  axis->set_name("a1");
  axis->set_size(2);
  return plan;
}
plan::Split& SplitOf(plan::Plan& plan, int segment, int index) {
  return *Launch(plan, segment, index).mutable_split();
}
plan::SplitRule& RuleOf(plan::Plan& plan, int segment, int index) {
  return *plan.mutable_rules(SplitOf(plan, segment, index).rule());
}

TEST(VerifyPlan, TakesAnAxisWithoutUse) { ORIEL_EXPECT_OK(VerifyPlan(WidePlan())); }

// Appends to eval a launch that takes the index where the rank's piece of 4 rows begins, from a
// table that is cut by ranks.
enum { kTable = kBuffers, kFirst, kFirstNumber, kNumbered };
plan::Plan IndexPlan() {
  plan::Plan plan = WidePlan();
  const auto add = [&](const char* name, const TensorSpec& spec) -> plan::Buffer& {
    plan::Buffer& buffer = *Program(plan).add_buffers();
    buffer.set_kind(plan::TEMPORARY);
    buffer.set_name(name);
    *buffer.mutable_local() = ToPlan(spec);
    buffer.set_offset(Program(plan).arena_bytes());
    Program(plan).set_arena_bytes(Program(plan).arena_bytes() + 64);
    return buffer;
  };
  plan::Buffer& table = add("table", {DType::kI64, {2}});
  table.set_kind(plan::CONSTANT);
  const int64_t begins[] = {0, 2};
  table.set_data(begins, sizeof begins);
  SplitBySamples(plan.grids(0), {"a0"}, &add("first", {DType::kI64, {1}}));
  const int64_t offset = Buffer(plan, kFirst).offset();
  add("number", {DType::kI64, {}}).set_offset(offset);
  SplitBySamples(plan.grids(0), {"a0"}, &add("numbered", {DType::kI64, {2}}));
  auto* slice = Program(plan).mutable_segments(kEval)->add_instructions()->mutable_slice();
  slice->set_source(kTable);
  slice->set_target(kFirst);
  slice->add_axes("a0");
  plan::Split& split = *AddLaunch(plan, kEval, {kFirstNumber}, {kNumbered}).mutable_split();
  split.set_rule(plan.rules_size());
  split.add_factors()->add_axes("a0");
  plan::SplitRule& rule = *plan.add_rules();
  rule.add_factors()->set_size(4);
  rule.mutable_factors(0)->set_kind(plan::SplitRule::PARALLEL);
  rule.add_operands()->set_first(true);
  rule.add_results()->add_dims()->add_factors(0);
  return plan;
}

TEST(VerifyPlan, TakesTheIndexOfAPiece) { ORIEL_EXPECT_OK(VerifyPlan(IndexPlan())); }

class VerifyBadIndex : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadIndex, SaysWhatIsWrong) { ExpectRefused(IndexPlan(), GetParam()); }

const BadPlan kIndices[] = {
    {"OtherTable",
     [](auto& plan) {
       const int64_t begins[] = {0, 1};
       Buffer(plan, kTable).set_data(begins, sizeof begins);
     },
     "segment eval, instruction 2 (test_added) reads temporary 'number' ([]), but there is "
     "temporary "
     "'first' ([2] cut [{a0}])"},
    {"OtherAxis",
     [](auto& plan) {
       Instruction(plan, kEval, 1).mutable_slice()->set_axes(0, "a1");
       *Buffer(plan, kFirst).mutable_sharding() = MakeSharding({{"a1"}});
     },
     "reads temporary 'number' ([]), but there is temporary 'first' ([2] cut [{a1}])"},
    {"NoIndex",
     [](auto& plan) { plan.mutable_rules(plan.rules_size() - 1)->mutable_operands(0)->Clear(); },
     "reads temporary 'number' ([]), but there is temporary 'first' ([2] cut [{a0}])"},
    {"IndexOfAnotherType",
     [](auto& plan) { Buffer(plan, kFirstNumber).mutable_local()->set_dtype(plan::F64); },
     "takes temporary 'number' ([]) for the index of a piece"},
    {"IndexOfAnUnknownFactor",
     [](auto& plan) {
       plan.mutable_rules(plan.rules_size() - 1)->mutable_operands(0)->set_factor(3);
     },
     "names the factor 3"},
};
INSTANTIATE_TEST_SUITE_P(Indices, VerifyBadIndex, ::testing::ValuesIn(kIndices), NameOf);

// Appends to eval a launch that makes two tensors of 4 rows, each cut by ranks.
plan::Plan ListPlan() {
  plan::Plan plan = WidePlan();
  for (const char* name : {"one", "other"}) {
    plan::Buffer& buffer = *Program(plan).add_buffers();
    buffer.set_kind(plan::TEMPORARY);
    buffer.set_name(name);
    *buffer.mutable_local() = ToPlan(TensorSpec{DType::kI64, {2}});
    buffer.set_offset(Program(plan).arena_bytes());
    Program(plan).set_arena_bytes(Program(plan).arena_bytes() + 64);
    SplitBySamples(plan.grids(0), {"a0"}, &buffer);
  }
  plan::Split& split = *AddLaunch(plan, kEval, {}, {kBuffers, kBuffers + 1}).mutable_split();
  split.set_rule(plan.rules_size());
  plan::SplitRule& rule = *plan.add_rules();
  for (const int factor : {0, 1}) {
    split.add_factors()->add_axes("a0");
    rule.add_factors()->set_size(4);
    rule.mutable_factors(factor)->set_kind(plan::SplitRule::PARALLEL);
    rule.add_results()->add_dims()->add_factors(factor);
  }
  return plan;
}

TEST(VerifyPlan, TakesAListThatOneAxisCuts) { ORIEL_EXPECT_OK(VerifyPlan(ListPlan())); }

class VerifyBadList : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadList, SaysWhatIsWrong) { ExpectRefused(ListPlan(), GetParam()); }

const BadPlan kLists[] = {
    {"FactorsOfOneTensor",
     [](auto& plan) {
       plan::SplitRule& rule = *plan.mutable_rules(plan.rules_size() - 1);
       for (const int factor : {0, 1}) {
         rule.mutable_results(0)->add_dims()->add_factors(factor);
       }
       rule.mutable_results(0)->mutable_dims()->DeleteSubrange(0, 1);
     },
     "is cut by the axis 'a0' twice"},
    {"Summands",
     [](auto& plan) {
       plan.mutable_rules(plan.rules_size() - 1)
           ->mutable_factors(1)
           ->set_kind(plan::SplitRule::SUM);
     },
     "is cut by the axis 'a0' twice"},
};
INSTANTIATE_TEST_SUITE_P(Lists, VerifyBadList, ::testing::ValuesIn(kLists), NameOf);

// The sum of the gradient over samples, and what is added to, by one launch.
plan::Plan AddedPlan() {
  plan::Plan plan = WidePlan();
  plan::Launch& sum = Launch(plan, kBackward, 1);
  sum.add_operands(kDw);
  sum.set_results(0, kDw);
  plan::SplitRule& rule = RuleOf(plan, kBackward, 1);
  *rule.add_operands() = rule.results(0);
  rule.mutable_linear(0)->add_operands(1);
  rule.add_added(1);
  Program(plan).mutable_segments(kBackward)->mutable_instructions()->DeleteSubrange(2, 1);
  return plan;
}

TEST(VerifyPlan, TakesASumThatIsAddedTo) { ORIEL_EXPECT_OK(VerifyPlan(AddedPlan())); }

class VerifyBadAdded : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadAdded, SaysWhatIsWrong) { ExpectRefused(AddedPlan(), GetParam()); }

const BadPlan kAdded[] = {
    {"UnknownOperand", [](auto& plan) { RuleOf(plan, kBackward, 1).set_added(0, 2); },
     "adds the operand 2"},
    {"NotSaidToBeAdded", [](auto& plan) { RuleOf(plan, kBackward, 1).clear_added(); },
     "(test_sum_rows) reads gradient 'w' ([4] sum {a0}), a pending sum over {a0} that has to be "
     "reduced first"},
    {"AddedToASumWithoutBeingOne",
     [](auto& plan) { Launch(plan, kBackward, 1).set_operands(1, kW); },
     "(test_sum_rows) makes a sum over {a0}, but adds parameter 'w' ([4]) to it"},
    {"ASumAddedToAWhole",
     [](auto& plan) {
       RuleOf(plan, kBackward, 1).mutable_factors(0)->set_kind(plan::SplitRule::PARALLEL);
     },
     "a pending sum over {a0} that has to be reduced first"},
};
INSTANTIATE_TEST_SUITE_P(Added, VerifyBadAdded, ::testing::ValuesIn(kAdded), NameOf);

class VerifyBadSharding : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadSharding, SaysWhatIsWrong) { ExpectRefused(WidePlan(), GetParam()); }

const BadPlan kSharding[] = {
    {"ReducedOverTheWrongAxis",
     [](auto& plan) { Instruction(plan, kUpdate, 0).mutable_collective()->set_axes(0, "a1"); },
     "program 0, segment update, instruction 0 (all_reduce) reduces gradient 'w' ([4] sum {a0}), "
     "which is no pending sum over {a1}"},
    {"ReducedOverOneAxisMore",
     [](auto& plan) { Instruction(plan, kUpdate, 0).mutable_collective()->add_axes("a1"); },
     "which is no pending sum over {a1}"},
    {"CutByTheWrongAxis",
     [](auto& plan) { SplitOf(plan, kForward, 0).mutable_factors(0)->set_axes(0, "a1"); },
     "segment forward, instruction 0 (test_multiply) reads input 'x' ([4, 4] cut [{a0}, {}]), "
     "whose "
     "dimension 0 should be cut over {a1}"},
    {"CutByAnUnknownAxis",
     [](auto& plan) { SplitOf(plan, kForward, 0).mutable_factors(0)->set_axes(0, "a7"); },
     "is cut by the axis 'a7', which the grid does not have"},
    {"CutByAnAxisTwice",
     [](auto& plan) { SplitOf(plan, kForward, 0).mutable_factors(1)->add_axes("a0"); },
     "is cut by the axis 'a0' twice"},
    {"FactorNotCut", [](auto& plan) { SplitOf(plan, kForward, 0).clear_factors(); },
     "whose dimension 0 should be cut over {}"},
    {"FactorDoesNotDivide",
     [](auto& plan) { RuleOf(plan, kForward, 0).mutable_factors(0)->set_size(3); },
     "cuts a factor of 3 over {a0}"},
    {"FactorsOfAnotherSize",
     [](auto& plan) { RuleOf(plan, kForward, 0).mutable_factors(1)->set_size(3); },
     "whose dimension 1 is not made of the rule's factors"},
    {"ResultCutOtherwise",
     [](auto& plan) { RuleOf(plan, kForward, 0).mutable_results(0)->mutable_dims(0)->Clear(); },
     "writes stash 'h' ([4, 4] cut [{a0}, {}]), whose dimension 0 should be cut over {}"},
    {"NoSplit", [](auto& plan) { Launch(plan, kForward, 0).clear_split(); },
     "reads input 'x' ([4, 4] cut [{a0}, {}]), but does not say how it splits"},
    {"UnknownRule", [](auto& plan) { SplitOf(plan, kForward, 0).set_rule(99); },
     "(test_multiply) names the rule 99 of 8"},
    {"UnknownFactor",
     [](auto& plan) {
       RuleOf(plan, kForward, 0).mutable_operands(0)->mutable_dims(0)->set_factors(0, 5);
     },
     "rule 0 names the factor 5"},
    {"FactorTwiceInATensor",
     [](auto& plan) {
       RuleOf(plan, kForward, 0).mutable_operands(0)->mutable_dims(1)->add_factors(0);
     },
     "rule 0 has the factor 0 twice"},
    {"LinearInAnUnknownOperand",
     [](auto& plan) { RuleOf(plan, kForward, 0).mutable_linear(0)->set_operands(0, -1); },
     "rule 0 is linear in the operand -1"},
    {"RuleOfOtherArity",
     [](auto& plan) {
       RuleOf(plan, kForward, 0).clear_linear();
       RuleOf(plan, kForward, 0).mutable_operands()->RemoveLast();
     },
     "has 2 operands and 1 results, its rule 1 and 1"},
    {"TooManyFactors", [](auto& plan) { SplitOf(plan, kForward, 0).add_factors(); },
     "cuts 3 factors; its rule has 2"},
    {"SumThatIsNotLinear", [](auto& plan) { RuleOf(plan, kForward, 3).clear_linear(); },
     "(test_add) reads accumulator 'loss_sum' ([] sum {a0}), a pending sum over {a0} that has to "
     "be "
     "reduced first"},
    {"SumAddedToAWhole", [](auto& plan) { Buffer(plan, kBatchLoss).clear_sharding(); },
     "(test_sum) writes temporary 'batch_loss' ([]), but makes a sum over {a0}"},
    {"MaximumInsteadOfSum",
     [](auto& plan) {
       RuleOf(plan, kForward, 2).mutable_factors(0)->set_kind(plan::SplitRule::MAX);
     },
     "but makes a sum over {} and a maximum over {a0}"},
    {"FactorThatIsNeverCut",
     [](auto& plan) {
       RuleOf(plan, kForward, 0).mutable_factors(0)->set_kind(plan::SplitRule::WHOLE);
     },
     "cuts a factor of 4 over {a0}"},
    {"ScaleOfAResult", [](auto& plan) { Buffer(plan, kH).set_scale(2); },
     "(test_multiply) writes stash 'h' ([4, 4] cut [{a0}, {}] scale 2), but makes the scale 1"},
    {"ScaleOfASummand",
     [](auto& plan) {
       for (const int i : {int{kProduct}, int{kBatchDw}}) Buffer(plan, i).set_scale(2);
     },
     "(test_add) reads temporary 'batch_dw' ([4] sum {a0} scale 2), whose scale it does not keep"},
    {"ScaleOfAGradient", [](auto& plan) { Buffer(plan, kReducedDw).set_scale(0.5); },
     "(all_reduce) writes temporary 'w reduced' ([4] scale 0.5), but makes [4]"},
    {"ScaleOfAParameter", [](auto& plan) { Buffer(plan, kW).set_scale(2); },
     "parameter 'w' ([4] scale 2) has another scale than 1"},
    {"PendingInput", [](auto& plan) { Buffer(plan, kX).mutable_sharding()->add_partial("a1"); },
     "is pending, but an input"},
    {"MaximumOverUnknownAxis",
     [](auto& plan) { Buffer(plan, kH).mutable_sharding()->add_partial_max("a7"); },
     "(stash 'h'): it is partial over the axis 'a7', which the grid does not have"},
    {"CopyOfASum", [](auto& plan) { Buffer(plan, kOut).mutable_sharding()->add_partial("a1"); },
     "(copy) copies temporary 'loss_sum reduced' ([]) to output 'loss' ([] sum {a1})"},
};
INSTANTIATE_TEST_SUITE_P(Sharding, VerifyBadSharding, ::testing::ValuesIn(kSharding), NameOf);

}  // namespace
}  // namespace oriel::runtime
