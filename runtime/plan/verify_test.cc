// Tables, programs, memory and training.
#include <algorithm>
#include <limits>

#include "runtime/plan/verify_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(VerifyPlan, TakesAGoodPlan) {
  ORIEL_EXPECT_OK(VerifyPlan(SmallTrainingPlan(1, 1)));
  ORIEL_EXPECT_OK(VerifyPlan(SmallTrainingPlan(4, 3)));
}

TEST(VerifyPlan, TakesAViewAndAnUpdateInPlace) {
  plan::Plan plan = SmallTrainingPlan(2, 1);
  // h is also known as a vector of 8, and doubled under that name.
  plan::Buffer view = Buffer(plan, kH);
  view.set_name("view");
  view.set_kind(plan::TEMPORARY);
  *view.mutable_local() = ToPlan({DType::kF32, {8}});
  view.clear_sharding();
  SplitBySamples(plan.grids(0), {"a0"}, &view);
  *Program(plan).add_buffers() = view;
  AddLaunch(plan, kForward, {kBuffers}, {kBuffers});
  plan::Split& split = *Launch(plan, kForward, 4).mutable_split();
  split.set_rule(plan.rules_size());
  split.add_factors()->add_axes("a0");
  plan::SplitRule& rule = *plan.add_rules();
  rule.add_factors()->set_size(16);
  rule.mutable_factors(0)->set_kind(plan::SplitRule::PARALLEL);
  rule.add_operands()->add_dims()->add_factors(0);
  rule.add_results()->add_dims()->add_factors(0);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
}

TEST(VerifyPlan, TakesOneRankWithoutAllReduce) {
  plan::Plan plan = SmallTrainingPlan(1, 1);
  RemoveInstruction(plan, kUpdate, 0);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
}

TEST(VerifyPlan, TakesALongSchedule) { ORIEL_EXPECT_OK(VerifyPlan(SmallTrainingPlan(1, 2000))); }

TEST(VerifyPlan, ListsSeveralProblems) {
  plan::Plan plan = SmallTrainingPlan(2, 1);
  Buffer(plan, kW).set_offset(1);
  Buffer(plan, kHalf).set_data("");
  EXPECT_THAT(VerifyPlan(plan), StatusIs(absl::StatusCode::kInvalidArgument,
                                         AllOf(HasSubstr("parameter 'w'"), HasSubstr("\n"),
                                               HasSubstr("'half'"), Not(HasSubstr("and more")))));
}

TEST(VerifyPlan, StopsAtTwentyProblems) {
  plan::Plan plan = SmallTrainingPlan(2, 1);
  for (int i = 0; i < 100; ++i) {
    AddLaunch(plan, kForward, {1000 + i}, {});
  }
  const std::string message(VerifyPlan(plan).message());
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 21);
  EXPECT_THAT(message, HasSubstr("and more"));
}

class VerifyBadPlan : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadPlan, SaysWhatIsWrong) { ExpectRefused(SmallTrainingPlan(2, 2), GetParam()); }

void AddMaster(plan::Plan& plan) {
  plan::OptimizerState* master = plan.add_optimizer_states();
  master->set_parameter("w");
  master->set_slot("master");
  *master->mutable_global() = plan.parameters(0).global();
  *master->mutable_storage() = plan.parameters(0).placements(0).storage();
}

const BadPlan kTables[] = {
    {"WorldSize", [](auto& plan) { plan.set_world_size(0); }, "the world size is 0"},
    {"WorldBeyondGrid", [](auto& plan) { plan.set_world_size(3); }, "rank 2 is in no grid"},
    {"GridBeyondWorld", [](auto& plan) { plan.mutable_grids(0)->mutable_axes(0)->set_size(4); },
     "rank 3 of grid 0 is beyond the world of 2 ranks"},
    {"RankInTwoGrids", [](auto& plan) { *plan.add_grids() = plan.grids(0); },
     "rank 0 is in grid 0 and in grid 1"},
    {"HugeAxis", [](auto& plan) { plan.mutable_grids(0)->mutable_axes(0)->set_size(kHuge); },
     "the axis 'a0' has the size 9223372036854775807"},
    {"AxisTwice",
     [](auto& plan) {
       plan.mutable_grids(0)->add_axes()->set_name("a0");
       plan.mutable_grids(0)->mutable_axes(1)->set_size(1);
     },
     "the axis 'a0' is not a name of its own"},
    {"MeshOfUnknownAxis",
     [](auto& plan) { plan.mutable_grids(0)->mutable_mesh(0)->add_axes("a7"); },
     "the mesh axis 'dp' names the unknown axis 'a7'"},
    {"AxisInTwoMeshAxes",
     [](auto& plan) {
       auto* mesh = plan.mutable_grids(0)->add_mesh();
       mesh->set_name("tp");
       mesh->add_axes("a0");
     },
     "the axis 'a0' is in two mesh axes"},
    {"ManyAxes",
     [](auto& plan) {
       for (int i = 0; i < 100; ++i) plan.mutable_grids(0)->add_axes()->set_size(1);
     },
     "grid 0 has 101 axes, more than 64"},
    {"ManyGrids",
     [](auto& plan) {
       for (int i = 0; i < 5000; ++i) plan.add_grids();
     },
     "there are 5001 grids"},
    {"NegativeFirstRank", [](auto& plan) { plan.mutable_grids(0)->set_first_rank(-1); },
     "its first rank is -1"},
    {"NoProgram", [](auto& plan) { plan.clear_programs(); }, "there is no program"},
    {"RankWithoutProgram", [](auto& plan) { Program(plan).set_rank_count(1); },
     "rank 1 is in no program"},
    {"RankInTwoPrograms", [](auto& plan) { *plan.add_programs() = plan.programs(0); },
     "rank 0 is in program 0 and in program 1"},
    {"ProgramOfManyRanks", [](auto& plan) { Program(plan).set_rank_count(kHuge); },
     "program 0 has 9223372036854775807 ranks"},
    {"ProgramAcrossGrids",
     [](auto& plan) {
       plan.mutable_grids(0)->mutable_axes(0)->set_size(1);
       *plan.add_grids() = plan.grids(0);
       plan.mutable_grids(1)->set_first_rank(1);
     },
     "program 0 has ranks of several grids"},
    {"ParameterTwice", [](auto& plan) { *plan.add_parameters() = plan.parameters(0); },
     "parameter 'w' is there twice"},
    {"ParameterWithoutName", [](auto& plan) { plan.mutable_parameters(0)->clear_name(); },
     "a parameter has no name"},
    {"ParameterType",
     [](auto& plan) { plan.mutable_parameters(0)->mutable_global()->set_dtype(plan::DType(77)); },
     "parameter 'w' has an unknown type or an impossible shape"},
    {"ParameterOverflow",
     [](auto& plan) {
       for (int i = 0; i < 3; ++i) {
         plan.mutable_parameters(0)->mutable_global()->add_shape(int64_t{1} << 40);
       }
     },
     "parameter 'w' has an unknown type or an impossible shape"},
    {"StorageOverUnknownAxis",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_placements(0)->mutable_storage()->add_dims()->add_axes(
           "a7");
     },
     "its sharding names the axis 'a7', which the grid does not have"},
    {"StorageDoesNotDivide",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_global()->set_shape(0, 5);
       plan.mutable_parameters(0)->mutable_placements(0)->mutable_storage()->add_dims()->add_axes(
           "a0");
     },
     "dimension 0 of size 5 does not divide over the axis 'a0' of size 2"},
    {"StorageUsesAxisTwice",
     [](auto& plan) {
       auto* dim = plan.mutable_parameters(0)->mutable_placements(0)->mutable_storage()->add_dims();
       dim->add_axes("a0");
       dim->add_axes("a0");
     },
     "its sharding uses the axis 'a0' twice"},
    {"StorageHasTooManyDimensions",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_placements(0)->mutable_storage()->add_dims();
       plan.mutable_parameters(0)->mutable_placements(0)->mutable_storage()->add_dims();
     },
     "its sharding has more dimensions than its shape"},
    {"StorageIsPartial",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_placements(0)->mutable_storage()->add_partial("a0");
     },
     "parameter 'w': its storage is a pending reduction"},
    {"PartialOverUnknownAxis",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_placements(0)->mutable_storage()->add_partial("a7");
     },
     "it is partial over the axis 'a7'"},
    {"FileElsewhere",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_initial()->set_file("../weights.safetensors");
     },
     "which is not the plain name of a file beside the plan"},
    {"FileAbove", [](auto& plan) { plan.mutable_parameters(0)->mutable_initial()->set_file(".."); },
     "which is not the plain name of a file beside the plan"},
    {"NoTensorName",
     [](auto& plan) { plan.mutable_parameters(0)->mutable_initial()->clear_tensor(); },
     "its initial value has no tensor name"},
    {"ImagesThatDoNotFit",
     [](auto& plan) {
       plan.mutable_inputs(0)->mutable_images()->set_per_sample(3);
       plan.mutable_inputs(0)->mutable_images()->set_rows(1);
     },
     "3 images of 1 rows for each of 4 samples don't fit its shape"},
    {"ImagesThatNothingCounts",
     [](auto& plan) { plan.mutable_inputs(0)->mutable_images()->set_count("labels"); },
     "its images are counted by 'labels', which counts none"},
    {"ImagesThatAnyCounts",
     [](auto& plan) {
       plan.mutable_inputs(0)->mutable_images()->set_per_sample(1);
       for (int i = 0; i < 2; ++i) plan.add_inputs()->set_image_count(true);
     },
     "its images may be counted by any of several inputs"},
    {"ImageCountOfAnotherType", [](auto& plan) { plan.mutable_inputs(0)->set_image_count(true); },
     "it counts images, but is not i64[4]"},
    {"SampleBitsOfAnotherType", [](auto& plan) { plan.mutable_inputs(0)->set_sample_bits(true); },
     "it holds bits of samples, but is not i64[4]"},
    {"InfiniteConstant",
     [](auto& plan) { plan.mutable_parameters(0)->mutable_initial()->set_constant(1e300); },
     "its initial constant is 1e+300"},
    {"NegativeDeviation",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_initial()->mutable_normal()->set_deviation(-1);
     },
     "its initial values have the mean 0 and the deviation -1"},
    {"MeanIsNoNumber",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_initial()->mutable_normal()->set_mean(NAN);
     },
     "its initial values have the mean nan"},
    {"EmptyInterval",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_initial()->mutable_uniform()->set_low(0);
     },
     "its initial values are from 0 to 0"},
    {"IntervalBeyondFloats",
     [](auto& plan) {
       auto* uniform = plan.mutable_parameters(0)->mutable_initial()->mutable_uniform();
       uniform->set_low(-3e38);
       uniform->set_high(3e38);
     },
     "its initial values are from -3e+38 to 3e+38"},
    {"RandomIntegers",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_initial()->set_constant(1);
       plan.mutable_parameters(0)->mutable_global()->set_dtype(plan::I64);
     },
     "its initial value is to be made, but it is no float"},
    {"StateOfNoParameter", [](auto& plan) { plan.add_optimizer_states()->set_parameter("v"); },
     "of 'v': there is no such parameter"},
    {"StateOfFrozenParameter",
     [](auto& plan) {
       plan.mutable_parameters(0)->set_trainable(false);
       plan.add_optimizer_states()->set_parameter("w");
     },
     "the parameter is frozen"},
    {"NarrowParameterWithoutMaster",
     [](auto& plan) { plan.mutable_parameters(0)->mutable_global()->set_dtype(plan::BF16); },
     "and has a gradient, but no f32 master"},
    {"MasterOfF32", [](auto& plan) { AddMaster(plan); }, "has a master, but is not of 16 bits"},
    {"RemainderOfHalf",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_global()->set_dtype(plan::F16);
       AddMaster(plan);
       plan.mutable_optimizer_states(0)->mutable_global()->set_dtype(plan::I16);
     },
     "parameter 'w' has a remainder, but is not bf16"},
    {"RemainderStoredOtherwise",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_global()->set_dtype(plan::BF16);
       AddMaster(plan);
       plan.mutable_optimizer_states(0)->mutable_global()->set_dtype(plan::I16);
       *plan.mutable_optimizer_states(0)->mutable_storage() = MakeSharding({{"a0"}});
     },
     "parameter 'w' and its remainder are not stored alike"},
    {"NarrowMaster",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_global()->set_dtype(plan::BF16);
       AddMaster(plan);
     },
     "parameter 'w' has the master bf16"},
    {"GlobalBatch", [](auto& plan) { plan.mutable_training()->set_global_batch(9); },
     "the global batch of 9 is not 2 samples x 2 microbatches x 2 data-parallel ranks"},
    {"HugeBatch",
     [](auto& plan) {
       plan.mutable_training()->set_micro_batch(kHuge);
       plan.mutable_training()->set_microbatches(kHuge);
     },
     "the global batch of 8 is not"},
    {"NegativeLabelShift", [](auto& plan) { plan.mutable_training()->set_label_shift(-1); },
     "the label shift is -1"},
    {"NegativeSteps", [](auto& plan) { plan.mutable_training()->set_steps(-1); },
     "the number of steps is -1"},
    {"LearningRateIsNan",
     [](auto& plan) {
       plan.mutable_training()->mutable_learning_rate()->set_peak(
           std::numeric_limits<double>::quiet_NaN());
     },
     "the learning-rate schedule"},
    {"InputTwice", [](auto& plan) { *plan.add_inputs() = plan.inputs(0); },
     "input 'x': not a name of its own"},
    {"InputOfOtherBatch",
     [](auto& plan) { plan.mutable_inputs(0)->mutable_microbatch()->set_shape(0, 3); },
     "its first dimension is not a multiple of the microbatch's 4 samples"},
};
INSTANTIATE_TEST_SUITE_P(Tables, VerifyBadPlan, ::testing::ValuesIn(kTables), NameOf);

const BadPlan kPrograms[] = {
    {"HugeArena", [](auto& plan) { Program(plan).set_arena_bytes(kHuge); }, "has an arena of"},
    {"OffsetNotAligned", [](auto& plan) { Buffer(plan, kH).set_offset(32); },
     "is at the offset 32, not a multiple of 64"},
    {"NegativeOffset", [](auto& plan) { Buffer(plan, kH).set_offset(-64); },
     "is at the offset -64"},
    {"BeyondArena", [](auto& plan) { Buffer(plan, kH).set_offset(kHuge - 63); },
     "ends beyond the arena"},
    {"LastBytesBeyondArena",
     [](auto& plan) { Program(plan).set_arena_bytes(Buffer(plan, kPredictions).offset() + 31); },
     "buffer 10 (output 'h') ends beyond the arena: 32 bytes"},
    {"BufferShape", [](auto& plan) { Buffer(plan, kSquares).mutable_local()->set_shape(0, -2); },
     "(temporary 'squares') has an unknown type or an impossible shape"},
    {"UnknownKind", [](auto& plan) { Buffer(plan, kSquares).set_kind(plan::BufferKind(55)); },
     "is of an unknown kind"},
    {"ConstantWithoutData", [](auto& plan) { Buffer(plan, kHalf).clear_data(); },
     "has 0 bytes of data for a tensor of 4"},
    {"DataOfNoConstant", [](auto& plan) { Buffer(plan, kH).set_data("x"); },
     "has data, but is not a constant"},
    {"LocalShapeOfSharding", [](auto& plan) { Buffer(plan, kH).clear_sharding(); },
     "has the shape [2, 4]; its part of [4, 4] is [4, 4]"},
    {"ParameterShape", [](auto& plan) { Buffer(plan, kW).mutable_local()->set_shape(0, 2); },
     "has the shape [2]; its part of [4] is [4]"},
    {"ParameterShardedOtherwise",
     [](auto& plan) {
       *plan.mutable_parameters(0)->mutable_placements(0)->mutable_storage() =
           MakeSharding({{"a0"}});
       Buffer(plan, kW).mutable_local()->set_shape(0, 2);
     },
     "(parameter 'w') is not sharded as the plan's table says"},
    {"ParameterOfOtherGlobalShape", [](auto& plan) { Buffer(plan, kW).set_global_shape(0, 8); },
     "(parameter 'w') is of the global shape [8], not [4]"},
    {"PaddingOfAllForEachRank",
     [](auto& plan) { plan.mutable_parameters(0)->add_padded_shape(12); },
     "parameter 'w' of the shape [4] is padded to [12] for 2 ranks"},
    {"GroupsWithoutPadding", [](auto& plan) { plan.mutable_parameters(0)->add_padded_groups(2); },
     "parameter 'w' has groups, but no padding"},
    {"GroupsThatDoNotDivide",
     [](auto& plan) {
       plan.mutable_parameters(0)->add_padded_shape(6);
       plan.mutable_parameters(0)->add_padded_groups(3);
     },
     "does not have groups [3] of dimensions on ranks of their own"},
    {"PaddingThatCutsOff", [](auto& plan) { plan.mutable_parameters(0)->add_padded_shape(3); },
     "parameter 'w' of the shape [4] is padded to [3]"},
    {"BufferWithoutThePadding", [](auto& plan) { plan.mutable_parameters(0)->add_padded_shape(5); },
     "(parameter 'w') has the shape [4]; its part of [5] is [5]"},
    {"GradientShape", [](auto& plan) { Buffer(plan, kDw).mutable_local()->set_shape(0, 2); },
     "(gradient 'w') has the shape [2]; its part of [4] is [4]"},
    {"AxisCutsAndIsPartial",
     [](auto& plan) {
       SplitBySamples(plan.grids(0), {"a0"}, &Buffer(plan, kH));
       Buffer(plan, kH).mutable_sharding()->add_partial("a0");
     },
     "(stash 'h'): its sharding uses the axis 'a0' twice"},
    {"InputsOfAllRanks",
     [](auto& plan) {
       Buffer(plan, kX).clear_sharding();
       Buffer(plan, kX).clear_global_shape();
     },
     "its inputs are split over 1 ranks, no multiple of the 2 data-parallel ones"},
    {"InputSplitWithinSamples",
     [](auto& plan) {
       *Buffer(plan, kX).mutable_sharding() = MakeSharding({{}, {"a0"}});
       Buffer(plan, kX).set_global_shape(0, 2);
       Buffer(plan, kX).set_global_shape(1, 8);
     },
     "input 'x' is split along dimension 1, not by samples"},
    {"ParameterDtype", [](auto& plan) { Buffer(plan, kW).mutable_local()->set_dtype(plan::I32); },
     "is not of the type in the plan's table"},
    {"NoSuchParameter", [](auto& plan) { Buffer(plan, kW).set_ref("v"); },
     "there is no such parameter"},
    {"GradientOfFrozen", [](auto& plan) { plan.mutable_parameters(0)->set_trainable(false); },
     "(gradient 'w'): the parameter is frozen"},
    {"NoSuchState",
     [](auto& plan) {
       Buffer(plan, kLoss).set_kind(plan::OPTIMIZER_STATE);
       Buffer(plan, kLoss).set_ref("w");
     },
     "there is no such optimizer state"},
    {"NoSuchInput", [](auto& plan) { Buffer(plan, kX).set_ref("y"); }, "there is no such input"},
    {"InputShape",
     [](auto& plan) {
       Buffer(plan, kX).mutable_local()->set_shape(1, 2);
       Buffer(plan, kX).set_global_shape(1, 2);
     },
     "is not of the type and shape in the table of inputs"},
    {"ScalarType", [](auto& plan) { Buffer(plan, kRate).mutable_local()->set_dtype(plan::I32); },
     "is not f32 of rank 0"},
    {"ScalarName", [](auto& plan) { Buffer(plan, kRate).set_ref("momentum"); },
     "is neither learning_rate nor step"},
    {"OutputWithoutName", [](auto& plan) { Buffer(plan, kOut).clear_ref(); }, "has no name"},
    {"RoleTwice", [](auto& plan) { Buffer(plan, kPredictions).set_ref("loss"); },
     "buffer 10 (output 'loss') is there twice"},
    {"SegmentTwice", [](auto& plan) { Program(plan).mutable_segments(1)->set_name("forward"); },
     "segment 'forward': not a name of its own"},
    {"IndexBeyond", [](auto& plan) { Launch(plan, kForward, 1).set_operands(0, kBuffers); },
     "program 0, segment forward, instruction 1 (test_multiply) names the buffer 15 of 15"},
    {"IndexNegative", [](auto& plan) { Launch(plan, kForward, 1).set_results(0, -1); },
     "names the buffer -1 of 15"},
    {"NoKernel", [](auto& plan) { Launch(plan, kForward, 0).clear_kernel(); }, "names no kernel"},
    {"AttributeWithoutValue",
     [](auto& plan) { (*Launch(plan, kForward, 0).mutable_attributes())["axis"]; },
     "the attribute 'axis' has no value"},
    {"EmptyInstruction", [](auto& plan) { Instruction(plan, kForward, 0).Clear(); },
     "is not known to this version"},
    {"CopyOfOtherSize",
     [](auto& plan) { Instruction(plan, kUpdate, 2).mutable_copy()->set_target(kPredictions); },
     "copies between tensors of different type or size"},
    {"UnknownCollective",
     [](auto& plan) { Instruction(plan, kUpdate, 0).mutable_collective()->clear_kind(); },
     "is a collective that this version does not know"},
    {"UnknownReduction",
     [](auto& plan) { Instruction(plan, kUpdate, 0).mutable_collective()->clear_reduction(); },
     "has a reduction that this version does not know"},
    {"CollectiveOverUnknownAxis",
     [](auto& plan) { Instruction(plan, kUpdate, 0).mutable_collective()->add_axes("a7"); },
     "is over the axis 'a7', which the grid does not have"},
    {"CollectiveOverAxisTwice",
     [](auto& plan) { Instruction(plan, kUpdate, 0).mutable_collective()->add_axes("a0"); },
     "is over the axis 'a0', and that twice"},
    {"CollectiveArity",
     [](auto& plan) { Instruction(plan, kUpdate, 0).mutable_collective()->add_results(kLoss); },
     "has 2 operands and 3 results"},
    {"CollectiveSizes",
     [](auto& plan) { Instruction(plan, kUpdate, 0).mutable_collective()->set_results(0, kLoss); },
     "operand and result 0 differ in type or size"},
    {"CollectiveType",
     [](auto& plan) {
       for (const int i : {kLoss, kOut}) Buffer(plan, i).mutable_local()->set_dtype(plan::BOOL);
     },
     "operand 1 is of a type that cannot be reduced"},
    {"EmptySchedule", [](auto& plan) { Program(plan).clear_schedule(); }, "has an empty schedule"},
    {"UnknownSegment",
     [](auto& plan) { Program(plan).mutable_schedule(1)->set_segment("sideward"); },
     "the schedule names the segment 'sideward', which is not there"},
    {"MicrobatchBeyond", [](auto& plan) { Program(plan).mutable_schedule(0)->set_microbatch(2); },
     "the schedule names microbatch 2 of 2"},
    {"UpdateNotLast", [](auto& plan) { Program(plan).mutable_schedule()->SwapElements(3, 4); },
     "the schedule goes on after update"},
    {"BackwardBeforeForward",
     [](auto& plan) { Program(plan).mutable_schedule()->SwapElements(0, 1); },
     "the schedule has backward of microbatch 0 before its forward"},
    {"MicrobatchTwice", [](auto& plan) { Program(plan).mutable_schedule(2)->set_microbatch(0); },
     "the schedule has forward of microbatch 0 twice"},
    {"MicrobatchMissing",
     [](auto& plan) { Program(plan).mutable_schedule()->DeleteSubrange(2, 2); },
     "the schedule has forward of 1 microbatches out of 2"},
    {"NoUpdate", [](auto& plan) { Program(plan).mutable_schedule()->RemoveLast(); },
     "the schedule has no update"},
};
INSTANTIATE_TEST_SUITE_P(Programs, VerifyBadPlan, ::testing::ValuesIn(kPrograms), NameOf);

const BadPlan kMemory[] = {
    {"PersistentOverlap",
     [](auto& plan) { Buffer(plan, kLoss).set_offset(Buffer(plan, kW).offset()); },
     "accumulator 'loss_sum' and parameter 'w' lie in the same memory"},
    {"GradientOnParameter",
     [](auto& plan) { Buffer(plan, kDw).set_offset(Buffer(plan, kW).offset()); },
     "parameter 'w' and gradient 'w' lie in the same memory"},
    {"TemporaryPartlyInParameter",
     [](auto& plan) { Buffer(plan, kSquares).set_offset(Buffer(plan, kW).offset()); },
     "temporary 'squares' lies partly in the memory of parameter 'w'"},
    {"ResultsOverlap", [](auto& plan) { Launch(plan, kForward, 0).add_results(kH); },
     "segment forward, instruction 0 (test_multiply): its results stash 'h' and stash 'h' overlap"},
    {"ResultPartlyOnOperand",
     [](auto& plan) {
       Buffer(plan, kOut).set_offset(Buffer(plan, kH).offset());
       AddLaunch(plan, kEval, {kPredictions}, {kH});
       AddLaunch(plan, kEval, {kH}, {kOut});
     },
     "its result output 'loss' overlaps its operand stash 'h' in part"},
    {"NeverWritten", [](auto& plan) { RemoveInstruction(plan, kForward, 1); },
     "segment forward, instruction 1 (test_sum) reads temporary 'squares', which nothing has "
     "written"},
    {"WrittenByAnotherSegment",
     [](auto& plan) { Launch(plan, kBackward, 0).set_operands(0, kSquares); },
     "reads temporary 'squares', which this segment has not written"},
    {"StashPartlyOverwritten",
     [](auto& plan) {
       Buffer(plan, kOut).set_offset(Buffer(plan, kH).offset());
       AddLaunch(plan, kForward, {}, {kOut});
     },
     "segment backward, instruction 0 (test_multiply) reads stash 'h', whose memory output 'loss' "
     "has overwritten"},
    {"StashOfAnotherMicrobatch",
     [](auto& plan) { Program(plan).mutable_schedule()->SwapElements(1, 2); },
     "reads stash 'h' of microbatch 0, but there is that of microbatch 1"},
    {"OutputOverwritten",
     [](auto& plan) {
       Buffer(plan, kOut).set_offset(Buffer(plan, kPredictions).offset());
       AddLaunch(plan, kEval, {}, {kOut});
     },
     "segment eval: output 'h' is overwritten before the segment ends"},
    {"OutputNeverWritten", [](auto& plan) { RemoveInstruction(plan, kEval, 0); },
     "nothing writes output 'h'"},
};
INSTANTIATE_TEST_SUITE_P(Memory, VerifyBadPlan, ::testing::ValuesIn(kMemory), NameOf);

const BadPlan kTraining[] = {
    {"ParameterNotWritten", [](auto& plan) { RemoveInstruction(plan, kUpdate, 1); },
     "update writes parameter 'w' 0 times, not once"},
    {"ParameterWrittenTwice", [](auto& plan) { AddLaunch(plan, kUpdate, {kW}, {kW}); },
     "update writes parameter 'w' 2 times, not once"},
    {"ParameterWrittenInForward", [](auto& plan) { AddLaunch(plan, kForward, {}, {kW}); },
     "segment forward, instruction 4 (test_added) writes parameter 'w', which only update may"},
    {"FrozenParameterWritten",
     [](auto& plan) {
       plan.mutable_parameters(0)->set_trainable(false);
       Buffer(plan, kDw).set_kind(plan::ACCUMULATOR);
     },
     "writes parameter 'w', which is frozen"},
    {"GradientWrittenInEval", [](auto& plan) { AddLaunch(plan, kEval, {}, {kDw}); },
     "writes gradient 'w', which eval may not"},
    {"InputWritten", [](auto& plan) { AddLaunch(plan, kForward, {}, {kX}); },
     "writes input 'x', which the host fills"},
    {"ConstantWritten", [](auto& plan) { AddLaunch(plan, kForward, {}, {kHalf}); },
     "writes constant 'half', which does not change"},
    {"GradientNotReduced", [](auto& plan) { RemoveInstruction(plan, kUpdate, 0); },
     "(test_descend) reads temporary 'w reduced' ([4]), but there is gradient 'w' ([4] sum {a0})"},
    {"GradientReadBefore",
     [](auto& plan) {
       Program(plan).mutable_segments(kUpdate)->mutable_instructions()->SwapElements(0, 1);
     },
     "program 0, segment update, instruction 0 (test_descend) reads temporary 'w reduced' ([4]), "
     "but "
     "there is gradient 'w' ([4] sum {a0})"},
    {"AccumulatorReadBefore",
     [](auto& plan) {
       auto* collective = Instruction(plan, kUpdate, 0).mutable_collective();
       collective->mutable_operands()->RemoveLast();
       collective->mutable_results()->RemoveLast();
     },
     "(copy) reads temporary 'loss_sum reduced' ([]), but there is accumulator 'loss_sum' ([] sum "
     "{a0})"},
    {"GradientReducedTwice",
     [](auto& plan) {
       auto* instructions = Program(plan).mutable_segments(kUpdate)->mutable_instructions();
       *instructions->Add() = instructions->Get(0);
       instructions->SwapElements(1, 5);
     },
     "segment update, instruction 1 (all_reduce) reads gradient 'w' ([4] sum {a0}), but there is "
     "temporary 'w reduced' ([4])"},
    {"SumReducedTwice",
     [](auto& plan) {
       Instruction(plan, kUpdate, 0).mutable_collective()->set_operands(0, kReducedDw);
     },
     "(all_reduce) reduces temporary 'w reduced' ([4]), which is no pending sum over {a0}"},
    {"GradientReducedElsewhere",
     [](auto& plan) {
       plan::Buffer other = Buffer(plan, kReducedDw);
       other.set_offset(Buffer(plan, kSquares).offset());
       *Program(plan).add_buffers() = other;
       Instruction(plan, kUpdate, 0).mutable_collective()->set_results(0, kBuffers);
     },
     "(test_descend) reads temporary 'w reduced' ([4]), but there is gradient 'w' ([4] sum {a0})"},
    {"GradientReducedOverTooLittle",
     [](auto& plan) { Instruction(plan, kUpdate, 0).mutable_collective()->clear_axes(); },
     "(all_reduce) writes temporary 'w reduced' ([4]), but makes [4] sum {a0}"},
    {"GradientMaximum",
     [](auto& plan) {
       Instruction(plan, kUpdate, 0).mutable_collective()->set_reduction(plan::Collective::MAX);
     },
     "reduces gradient 'w' ([4] sum {a0}), which is no pending maximum over {a0}"},
    {"GradientNotReset", [](auto& plan) { RemoveInstruction(plan, kUpdate, 3); },
     "update does not reset gradient 'w'"},
    {"AccumulatorNotReset", [](auto& plan) { RemoveInstruction(plan, kUpdate, 4); },
     "update does not reset accumulator 'loss_sum'"},
    {"GradientReset",
     [](auto& plan) { (*Launch(plan, kUpdate, 3).mutable_attributes())["value"].set_f(1); },
     "(fill) writes gradient 'w' ([4] sum {a0}), but does not say how it splits"},
    {"GradientReadAfterReset",
     [](auto& plan) {
       Program(plan).mutable_segments(kUpdate)->mutable_instructions()->SwapElements(1, 3);
     },
     "instruction 3 (test_descend) reads temporary 'w reduced' after its reset"},
    {"GradientNotAddedTo", [](auto& plan) { RemoveInstruction(plan, kBackward, 2); },
     "nothing adds to gradient 'w'"},
    {"GradientOverwritten",
     [](auto& plan) {
       auto* copy = Instruction(plan, kBackward, 2).mutable_copy();
       copy->set_source(kBatchDw);
       copy->set_target(kDw);
     },
     "segment backward overwrites gradient 'w' instead of adding to it"},
};
INSTANTIATE_TEST_SUITE_P(Training, VerifyBadPlan, ::testing::ValuesIn(kTraining), NameOf);

}  // namespace
}  // namespace oriel::runtime
