// Collectives that move pieces, and whether the ranks meet in them.
#include <random>
#include <string>

#include "google/protobuf/stubs/logging.h"
#include "runtime/plan/verify_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

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
    PlanBuilder::AddOperand(operand, result, 0, collective);
    return collective;
  };
  add(plan::Collective::ALL_GATHER, kPiece, kWhole);
  add(plan::Collective::REDUCE_SCATTER, kSummed, kPiece)->set_reduction(plan::Collective::SUM);
  add(plan::Collective::ALL_TO_ALL, kRows, kSwapped)->set_split_dims(0, 1);
  auto* slice = Program(plan).mutable_segments(kEval)->add_instructions()->mutable_slice();
  slice->set_source(kWhole);
  slice->set_target(kPiece);
  slice->add_axes("a0");
  return plan;
}
plan::Collective& PieceCollective(plan::Plan& plan, int index) {
  return *Instruction(plan, kEval, index).mutable_collective();
}

void AddWait(plan::Plan& plan, int collective) {
  auto* instruction = Program(plan).mutable_segments(kEval)->add_instructions();
  instruction->mutable_wait()->set_collective(collective);
}

TEST(VerifyPlan, TakesWhatIsStartedAndWaitedFor) {
  plan::Plan plan = PiecesPlan();
  PieceCollective(plan, kSwap).set_stream(2);
  AddWait(plan, kSwap);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
}

TEST(VerifyPlan, TakesWhatMovesPieces) {
  plan::Plan plan = PiecesPlan();
  ORIEL_EXPECT_OK(VerifyPlan(plan));
  Split(plan);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
}

class VerifyBadPieces : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadPieces, SaysWhatIsWrong) { ExpectRefused(PiecesPlan(), GetParam()); }

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
     [](auto& plan) { PieceCollective(plan, kGather).set_concat_dims(0, -1); },
     "is along dimension -1 of 2"},
    {"GatherOnOneRank", [](auto& plan) { PieceCollective(plan, kGather).set_axes(0, "a1"); },
     "(all_gather) makes f32[4, 6] of f32[2, 6] on 1 ranks"},
    {"GatherOfOtherType",
     [](auto& plan) { Buffer(plan, kPiece).mutable_local()->set_dtype(plan::I32); },
     "(all_gather) makes f32[4, 6] of i32[2, 6] on 2 ranks"},
    {"GatherOfTwoAlongOneDim",
     [](auto& plan) {
       PieceCollective(plan, kGather).add_operands(kPiece);
       PieceCollective(plan, kGather).add_results(kWhole);
     },
     "(all_gather) has 2 operands, but cuts along 0 dimensions and joins along 1"},
    {"GatherThatCuts", [](auto& plan) { PieceCollective(plan, kGather).add_split_dims(0); },
     "(all_gather) has 1 operands, but cuts along 1 dimensions and joins along 1"},
    {"GatherOfTwoInOnePlace",
     [](auto& plan) {
       PlanBuilder::AddOperand(kPiece, kWhole, 0, &PieceCollective(plan, kGather));
     },
     "(all_gather): its results temporary '[4, 6]' and temporary '[4, 6]' overlap in memory"},
    {"OnNoStream", [](auto& plan) { PieceCollective(plan, kGather).set_stream(-1); },
     "(all_gather) is on the stream -1"},
    {"NotWaitedFor", [](auto& plan) { PieceCollective(plan, kGather).set_stream(1); },
     "(all_gather) is started, but the segment does not wait for it"},
    {"WaitForNoCollective", [](auto& plan) { AddWait(plan, kSlice); },
     "(wait) waits for instruction 7, which is no collective on its way"},
    {"WaitForWhatIsNotStarted", [](auto& plan) { AddWait(plan, kGather); },
     "(wait) waits for instruction 4, which is no collective on its way"},
    {"WaitTwice",
     [](auto& plan) {
       PieceCollective(plan, kSwap).set_stream(1);
       AddWait(plan, kSwap);
       AddWait(plan, kSwap);
     },
     "instruction 9 (wait) waits for instruction 6, which is no collective on its way"},
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
    {"SwapOfOneDim", [](auto& plan) { PieceCollective(plan, kSwap).set_concat_dims(0, 1); },
     "(all_to_all) cuts and joins the same dimension 1"},
    {"SwapTheOtherWay",
     [](auto& plan) {
       PieceCollective(plan, kSwap).set_split_dims(0, 0);
       PieceCollective(plan, kSwap).set_concat_dims(0, 1);
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
       collective->set_split_dims(0, 0);
       collective->set_concat_dims(0, 1);
     },
     "would not meet in collective 2: all_to_all over a0 of f32[4, 6] cut along 1 joined along 0 "
     "against all_to_all over a0 of f32[4, 6] cut along 0 joined along 1"},
};
INSTANTIATE_TEST_SUITE_P(Pieces, VerifyBadPieces, ::testing::ValuesIn(kPieces), NameOf);

class VerifyBadMeeting : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadMeeting, SaysWhatIsWrong) { ExpectRefused(SmallTrainingPlan(2, 2), GetParam()); }

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
INSTANTIATE_TEST_SUITE_P(Collectives, VerifyBadMeeting, ::testing::ValuesIn(kCollectives), NameOf);

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
