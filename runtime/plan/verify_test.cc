#include "runtime/plan/verify.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// Buffers of SmallTrainingPlan, in its order.
enum { kW, kDw, kLoss, kX, kRate, kHalf, kH, kSquares, kProduct, kOut, kPredictions };
enum { kBatchLoss = kPredictions + 1, kBatchDw, kReducedDw, kReducedLoss, kBuffers };
enum { kForward, kBackward, kUpdate, kEval };

plan::Program& Program(plan::Plan& plan) { return *plan.mutable_programs(0); }
plan::Buffer& Buffer(plan::Plan& plan, int index) { return *Program(plan).mutable_buffers(index); }
plan::Instruction& Instruction(plan::Plan& plan, int segment, int index) {
  return *Program(plan).mutable_segments(segment)->mutable_instructions(index);
}
plan::Launch& Launch(plan::Plan& plan, int segment, int index) {
  return *Instruction(plan, segment, index).mutable_launch();
}
plan::Launch& AddLaunch(plan::Plan& plan, int segment, const std::vector<int>& operands,
                        const std::vector<int>& results) {
  auto* launch = Program(plan).mutable_segments(segment)->add_instructions()->mutable_launch();
  launch->set_kernel("test_added");
  launch->mutable_operands()->Add(operands.begin(), operands.end());
  launch->mutable_results()->Add(results.begin(), results.end());
  return *launch;
}
void RemoveInstruction(plan::Plan& plan, int segment, int index) {
  Program(plan).mutable_segments(segment)->mutable_instructions()->DeleteSubrange(index, 1);
}

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

// A change to a good plan of 2 ranks and 2 microbatches, and what the verifier says about it.
struct BadPlan {
  const char* name;
  std::function<void(plan::Plan&)> damage;
  const char* message;
};

class VerifyBadPlan : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadPlan, SaysWhatIsWrong) {
  plan::Plan plan = SmallTrainingPlan(2, 2);
  GetParam().damage(plan);
  EXPECT_THAT(VerifyPlan(plan),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

void PrintTo(const BadPlan& bad, std::ostream* out) { *out << bad.name; }
std::string NameOf(const ::testing::TestParamInfo<BadPlan>& info) { return info.param.name; }

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
     [](auto& plan) { plan.mutable_parameters(0)->mutable_storage()->add_dims()->add_axes("a7"); },
     "its sharding names the axis 'a7', which the grid does not have"},
    {"StorageDoesNotDivide",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_global()->set_shape(0, 5);
       plan.mutable_parameters(0)->mutable_storage()->add_dims()->add_axes("a0");
     },
     "dimension 0 of size 5 does not divide over the axis 'a0' of size 2"},
    {"StorageUsesAxisTwice",
     [](auto& plan) {
       auto* dim = plan.mutable_parameters(0)->mutable_storage()->add_dims();
       dim->add_axes("a0");
       dim->add_axes("a0");
     },
     "its sharding uses the axis 'a0' twice"},
    {"StorageHasTooManyDimensions",
     [](auto& plan) {
       plan.mutable_parameters(0)->mutable_storage()->add_dims();
       plan.mutable_parameters(0)->mutable_storage()->add_dims();
     },
     "its sharding has more dimensions than its shape"},
    {"StorageIsPartial",
     [](auto& plan) { plan.mutable_parameters(0)->mutable_storage()->add_partial("a0"); },
     "parameter 'w': its storage is a pending reduction"},
    {"PartialOverUnknownAxis",
     [](auto& plan) { plan.mutable_parameters(0)->mutable_storage()->add_partial("a7"); },
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
     "3 images of 1 rows for each of 2 samples don't fit its shape"},
    {"ImageCountOfAnotherType", [](auto& plan) { plan.mutable_inputs(0)->set_image_count(true); },
     "it counts images, but is not i64[2]"},
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
     "its first dimension is not a multiple of the microbatch's 2 samples"},
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
       *plan.mutable_parameters(0)->mutable_storage() = MakeSharding({{"a0"}});
       Buffer(plan, kW).mutable_local()->set_shape(0, 2);
     },
     "(parameter 'w') is not sharded as the plan's table says"},
    {"ParameterOfOtherGlobalShape", [](auto& plan) { Buffer(plan, kW).set_global_shape(0, 8); },
     "(parameter 'w') is of the global shape [8], not [4]"},
    {"PaddingOfAnElementForEachRank",
     [](auto& plan) { plan.mutable_parameters(0)->add_padded_shape(6); },
     "parameter 'w' of the shape [4] is padded to [6] for 2 ranks"},
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
     "its inputs are split over 1 ranks, not over 2 data-parallel ones"},
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
    {"InputShape", [](auto& plan) { Buffer(plan, kX).mutable_local()->set_shape(1, 2); },
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

TEST_P(VerifyBadIndex, SaysWhatIsWrong) {
  plan::Plan plan = IndexPlan();
  GetParam().damage(plan);
  EXPECT_THAT(VerifyPlan(plan),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

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

class VerifyBadSharding : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadSharding, SaysWhatIsWrong) {
  plan::Plan plan = WidePlan();
  GetParam().damage(plan);
  EXPECT_THAT(VerifyPlan(plan),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

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

// One program for each of the two ranks.
void Split(plan::Plan& plan) {
  Program(plan).set_rank_count(1);
  *plan.add_programs() = plan.programs(0);
  plan.mutable_programs(1)->set_first_rank(1);
}

TEST(VerifyPlan, TakesProgramsThatMeet) {
  plan::Plan plan = SmallTrainingPlan(2, 2);
  Split(plan);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
}

// Appends to eval of a plan on 2 ranks, whose grid also has the axis a1 of size 1: what moves
// pieces between buffers of [2, 6], [4, 6] and [8, 3].
enum { kGather = 4, kScatter, kSwap, kSlice };
enum { kPiece = kBuffers, kWhole, kSwapped, kSummed, kRows };
plan::Plan PiecesPlan() {
  plan::Plan plan = SmallTrainingPlan(2, 2);
  auto* axis = plan.mutable_grids(0)->add_axes();
  axis->set_name("a1");
  axis->set_size(1);
  for (const Shape& shape : {Shape{2, 6}, Shape{4, 6}, Shape{8, 3}, Shape{4, 6}, Shape{4, 6}}) {
    auto* buffer = Program(plan).add_buffers();
    buffer->set_kind(plan::TEMPORARY);
    buffer->set_name(ShapeToString(shape));
    *buffer->mutable_local() = ToPlan({DType::kF32, shape});
    buffer->set_offset(Program(plan).arena_bytes());
    Program(plan).set_arena_bytes(Program(plan).arena_bytes() + 128);
  }
  SplitBySamples(plan.grids(0), {"a0"}, &Buffer(plan, kPiece));
  SplitBySamples(plan.grids(0), {"a0"}, &Buffer(plan, kRows));
  *Buffer(plan, kSwapped).mutable_sharding() = MakeSharding({{}, {"a0"}});
  for (const int64_t size : {8, 6}) Buffer(plan, kSwapped).add_global_shape(size);
  Buffer(plan, kSummed).mutable_sharding()->add_partial("a0");
  for (const int made : {kPiece, kSummed, kRows}) {
    auto& fill = AddLaunch(plan, kEval, {}, {made});
    fill.set_kernel("fill");
    (*fill.mutable_attributes())["value"].set_f(made == kSummed ? 0 : 1);
  }
  const auto add = [&](plan::Collective::Kind kind, int operand, int result) {
    auto* collective =
        Program(plan).mutable_segments(kEval)->add_instructions()->mutable_collective();
    collective->set_kind(kind);
    collective->add_axes("a0");
    collective->add_operands(operand);
    collective->add_results(result);
    return collective;
  };
  add(plan::Collective::ALL_GATHER, kPiece, kWhole);
  add(plan::Collective::REDUCE_SCATTER, kSummed, kPiece)->set_reduction(plan::Collective::SUM);
  add(plan::Collective::ALL_TO_ALL, kRows, kSwapped)->set_split_dim(1);
  auto* slice = Program(plan).mutable_segments(kEval)->add_instructions()->mutable_slice();
  slice->set_source(kWhole);
  slice->set_target(kPiece);
  slice->add_axes("a0");
  return plan;
}
plan::Collective& PieceCollective(plan::Plan& plan, int index) {
  return *Instruction(plan, kEval, index).mutable_collective();
}

TEST(VerifyPlan, TakesWhatMovesPieces) {
  plan::Plan plan = PiecesPlan();
  ORIEL_EXPECT_OK(VerifyPlan(plan));
  Split(plan);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
}

class VerifyBadPieces : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadPieces, SaysWhatIsWrong) {
  plan::Plan plan = PiecesPlan();
  GetParam().damage(plan);
  EXPECT_THAT(VerifyPlan(plan),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

const BadPlan kPieces[] = {
    {"AxesOutOfOrder",
     [](auto& plan) {
       PieceCollective(plan, kGather).set_axes(0, "a1");
       PieceCollective(plan, kGather).add_axes("a0");
     },
     "segment eval, instruction 4 (all_gather) is over the axis 'a0', which is not in the grid's "
     "order"},
    {"SliceOverUnknownAxis",
     [](auto& plan) { Instruction(plan, kEval, kSlice).mutable_slice()->set_axes(0, "a7"); },
     "(slice_local) is over the axis 'a7', which the grid does not have"},
    {"SliceAlongDimBeyond",
     [](auto& plan) { Instruction(plan, kEval, kSlice).mutable_slice()->set_dim(2); },
     "is along dimension 2 of 2"},
    {"SliceAlongOtherDim",
     [](auto& plan) { Instruction(plan, kEval, kSlice).mutable_slice()->set_dim(1); },
     "(slice_local) makes f32[2, 6] of f32[4, 6] on 2 ranks"},
    {"SliceOfUnknownBuffer",
     [](auto& plan) { Instruction(plan, kEval, kSlice).mutable_slice()->set_source(99); },
     "names the buffer 99 of 20"},
    {"GatherAlongNegativeDim",
     [](auto& plan) { PieceCollective(plan, kGather).set_concat_dim(-1); },
     "is along dimension -1 of 2"},
    {"GatherOnOneRank", [](auto& plan) { PieceCollective(plan, kGather).set_axes(0, "a1"); },
     "(all_gather) makes f32[4, 6] of f32[2, 6] on 1 ranks"},
    {"GatherOfOtherType",
     [](auto& plan) { Buffer(plan, kPiece).mutable_local()->set_dtype(plan::I32); },
     "(all_gather) makes f32[4, 6] of i32[2, 6] on 2 ranks"},
    {"GatherOfTwo",
     [](auto& plan) {
       PieceCollective(plan, kGather).add_operands(kPiece);
       PieceCollective(plan, kGather).add_results(kWhole);
     },
     "(all_gather) has 2 operands and 2 results"},
    {"GatherThatReduces",
     [](auto& plan) { PieceCollective(plan, kGather).set_reduction(plan::Collective::SUM); },
     "(all_gather) has a reduction, but reduces nothing"},
    {"ScatterWithoutReduction",
     [](auto& plan) { PieceCollective(plan, kScatter).clear_reduction(); },
     "(reduce_scatter) has a reduction that this version does not know"},
    {"ScatterOfFlags",
     [](auto& plan) {
       for (const int i : {kPiece, kSummed}) {
         Buffer(plan, i).mutable_local()->set_dtype(plan::BOOL);
       }
     },
     "(reduce_scatter): operand 0 is of a type that cannot be reduced"},
    {"SwapOfOneDim", [](auto& plan) { PieceCollective(plan, kSwap).set_concat_dim(1); },
     "(all_to_all) cuts and joins the same dimension 1"},
    {"SwapTheOtherWay",
     [](auto& plan) {
       PieceCollective(plan, kSwap).set_split_dim(0);
       PieceCollective(plan, kSwap).set_concat_dim(1);
     },
     "(all_to_all) makes f32[8, 3] of f32[4, 6] on 2 ranks"},
    {"SwapInPlace",
     [](auto& plan) { Buffer(plan, kSwapped).set_offset(Buffer(plan, kRows).offset()); },
     "(all_to_all): its result temporary '[8, 3]' lies in the memory of its operand temporary "
     "'[4, 6]'"},
    {"SliceWithinItsOperand",
     [](auto& plan) { Buffer(plan, kPiece).set_offset(Buffer(plan, kWhole).offset()); },
     "(slice_local): its result temporary '[2, 6]' lies in the memory"},
    {"SliceOfNothingWritten",
     [](auto& plan) {
       for (int i = 0; i < 3; ++i) RemoveInstruction(plan, kEval, kGather);
     },
     "(slice_local) reads temporary '[4, 6]', which nothing has written"},
    {"SliceOfWhatIsCut",
     [](auto& plan) { Instruction(plan, kEval, kSlice).mutable_slice()->set_source(kRows); },
     "program 0, segment eval, instruction 7 (slice_local) takes pieces of temporary '[4, 6]' ([8, "
     "6] cut [{a0}, {}]), which is not the same on {a0}"},
    {"SliceForAnotherPlace",
     [](auto& plan) {
       plan::Buffer& piece = Buffer(plan, kPiece);
       *piece.mutable_sharding() = MakeSharding({{"a1"}});
       piece.set_global_shape(0, 2);
     },
     "(slice_local) writes temporary '[2, 6]' ([2, 6]), but makes [4, 6] cut [{a0}, {}]"},
    {"GatherOfWhatIsWhole",
     [](auto& plan) {
       Buffer(plan, kPiece).clear_sharding();
       Buffer(plan, kPiece).clear_global_shape();
     },
     "(all_gather) joins temporary '[2, 6]' ([2, 6]), whose dimension 0 is not cut last over {a0}"},
    {"ScatterOfWhatIsWhole",
     [](auto& plan) { PieceCollective(plan, kScatter).set_operands(0, kWhole); },
     "(reduce_scatter) reduces temporary '[4, 6]' ([4, 6]), which is no pending sum over {a0}"},
    {"SwapOfWhatIsWhole", [](auto& plan) { PieceCollective(plan, kSwap).set_operands(0, kWhole); },
     "(all_to_all) joins temporary '[4, 6]' ([4, 6]), whose dimension 0 is not cut last over {a0}"},
    {"OtherDimOnAnotherRank",
     [](auto& plan) {
       Split(plan);
       auto* collective = plan.mutable_programs(1)
                              ->mutable_segments(kEval)
                              ->mutable_instructions(kSwap)
                              ->mutable_collective();
       auto* swapped = plan.mutable_programs(1)->mutable_buffers(kSwapped);
       *swapped->mutable_local() = ToPlan({DType::kF32, {2, 12}});
       SplitBySamples(plan.grids(0), {"a0"}, swapped);
       collective->set_split_dim(0);
       collective->set_concat_dim(1);
     },
     "would not meet in collective 2: all_to_all over a0 of f32[4, 6] cut along 1 joined along 0 "
     "against all_to_all over a0 of f32[4, 6] cut along 0 joined along 1"},
};
INSTANTIATE_TEST_SUITE_P(Pieces, VerifyBadPieces, ::testing::ValuesIn(kPieces), NameOf);

const BadPlan kCollectives[] = {
    {"OtherOrder",
     [](auto& plan) {
       Split(plan);
       auto* collective = plan.mutable_programs(1)
                              ->mutable_segments(kUpdate)
                              ->mutable_instructions(0)
                              ->mutable_collective();
       collective->mutable_operands()->SwapElements(0, 1);
       collective->mutable_results()->SwapElements(0, 1);
     },
     "programs 0 and 1, segment update: the ranks would not meet in collective 0: all_reduce sum "
     "over a0 of 4 f32, 1 f32 against all_reduce sum over a0 of 1 f32, 4 f32"},
    {"OneHasMore",
     [](auto& plan) {
       Split(plan);
       auto* instructions =
           plan.mutable_programs(1)->mutable_segments(kEval)->mutable_instructions();
       auto* collective = instructions->Add()->mutable_collective();
       *collective = plan.programs(0).segments(kUpdate).instructions(0).collective();
       for (auto* list : {collective->mutable_operands(), collective->mutable_results()}) {
         list->Clear();
         list->Add(kPredictions);
       }
     },
     "segment eval: the ranks would not meet in collective 0: nothing against all_reduce"},
};
INSTANTIATE_TEST_SUITE_P(Collectives, VerifyBadPlan, ::testing::ValuesIn(kCollectives), NameOf);

// Programs with collectives in the backward of two microbatches, whose order differs.
TEST(VerifyPlan, RefusesSchedulesThatMeetInAnotherOrder) {
  plan::Plan plan = SmallTrainingPlan(2, 2);
  for (const int segment : {kForward, kBackward}) {
    auto* collective =
        Program(plan).mutable_segments(segment)->add_instructions()->mutable_collective();
    *collective = plan.programs(0).segments(kUpdate).instructions(0).collective();
    collective->clear_axes();
    for (auto* list : {collective->mutable_operands(), collective->mutable_results()}) {
      list->Clear();
      list->Add(segment == kForward ? kH : kProduct);
    }
  }
  Split(plan);
  ORIEL_ASSERT_OK(VerifyPlan(plan));
  plan.mutable_programs(1)->mutable_schedule()->SwapElements(1, 2);
  EXPECT_THAT(VerifyPlan(plan),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("their schedules run segments with collectives in different "
                                 "orders")));
}

// Damaged messages must be refused or taken, never crash (run under the sanitizers).
TEST(VerifyPlan, SurvivesDamagedMessages) {
  const std::string bytes = PiecesPlan().SerializeAsString();
  google::protobuf::LogSilencer silencer;
  std::mt19937 random(7);
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = bytes;
    for (int change = random() % 4; change >= 0; --change) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    plan::Plan plan;
    if (!plan.ParseFromString(damaged)) continue;
    ++parsed;
    VerifyPlan(plan).IgnoreError();
  }
  EXPECT_GT(parsed, 1000);
}

}  // namespace
}  // namespace oriel::runtime
