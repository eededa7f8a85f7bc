// Collectives that are started, and segments for the last microbatch.
#include "runtime/plan/verify_testing.h"

namespace oriel::runtime {
namespace {

// Of SmallTrainingPlan with a reduction behind the last microbatch.
enum { kLast = kBackward + 1, kUpdateBehind, kEvalBehind };
enum { kSumUp = 2, kStart, kWait };  // instructions of backward_last
constexpr int64_t kMicrobatches = 3;

plan::Plan InLast() { return SmallTrainingPlan(2, kMicrobatches, ReduceGradient::kInLast); }
plan::Plan Scattered() {
  return SmallTrainingPlan(2, kMicrobatches, ReduceGradient::kInLastScattered);
}

plan::Instruction& Add(plan::Plan& plan, int segment) {
  return *Program(plan).mutable_segments(segment)->add_instructions();
}

// Moves an instruction of backward_last; the start stays in its place.
void Move(plan::Plan& plan, int from, int to) {
  auto* instructions = Program(plan).mutable_segments(kLast)->mutable_instructions();
  for (; from > to; --from) instructions->SwapElements(from, from - 1);
  for (; from < to; ++from) instructions->SwapElements(from, from + 1);
}

void AddCopy(plan::Plan& plan, int segment, int source, int target) {
  auto* copy = Add(plan, segment).mutable_copy();
  copy->set_source(source);
  copy->set_target(target);
}

void AddFill(plan::Plan& plan, int segment, int buffer) {
  auto* launch = Add(plan, segment).mutable_launch();
  launch->set_kernel("fill");
  launch->add_results(buffer);
  (*launch->mutable_attributes())["value"].set_f(0);
}

// A buffer like another one, in memory of its own; or in that of the other.
int AddBufferLike(plan::Plan& plan, int like, bool own) {
  plan::Buffer buffer = Buffer(plan, like);
  buffer.set_name("added");
  buffer.set_kind(plan::TEMPORARY);
  buffer.clear_ref();
  if (own) {
    buffer.set_offset(Program(plan).arena_bytes());
    Program(plan).set_arena_bytes(buffer.offset() + 64);
  }
  *Program(plan).add_buffers() = buffer;
  return Program(plan).buffers_size() - 1;
}

void AddAllReduce(plan::Plan& plan, int segment, int operand, int result, int stream) {
  auto* collective = Add(plan, segment).mutable_collective();
  collective->set_kind(plan::Collective::ALL_REDUCE);
  collective->set_reduction(plan::Collective::SUM);
  collective->add_axes("a0");
  collective->add_operands(operand);
  collective->add_results(result);
  collective->set_stream(stream);
}

// In the last segment: starts the reduction of a batch's sum too.
void StartAnother(plan::Plan& plan, int stream) {
  AddAllReduce(plan, kLast, kBatchDw, AddBufferLike(plan, kReducedDw, true), stream);
}

TEST(VerifyOverlap, TakesReductionsBehindTheLastMicrobatch) {
  for (const int64_t microbatches : {1, 2, 5}) {
    for (const ReduceGradient reduce :
         {ReduceGradient::kInLast, ReduceGradient::kInLastScattered}) {
      ORIEL_EXPECT_OK(VerifyPlan(SmallTrainingPlan(2, microbatches, reduce)));
    }
  }
}

// Its operand may be read meanwhile, and other memory used; another one of the group may follow it
// on the stream, and one on no stream once it is done.
TEST(VerifyOverlap, TakesWhatKeepsOffWhatIsOnItsWay) {
  plan::Plan plan = Scattered();
  AddCopy(plan, kLast, kBatchDw, AddBufferLike(plan, kBatchDw, true));
  AddCopy(plan, kLast, kDw, AddBufferLike(plan, kDw, true));
  AddAllReduce(plan, kLast, kBatchDw, AddBufferLike(plan, kW, true), 1);
  const int last = Program(plan).segments(kLast).instructions_size() - 1;
  Add(plan, kLast).mutable_wait()->set_collective(last - 1);
  Move(plan, kWait, last + 1);  // the wait for the first; what was behind it moves up
  AddAllReduce(plan, kLast, kBatchDw, AddBufferLike(plan, kW, true), 0);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
}

class VerifyBadOverlap : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadOverlap, SaysWhatIsWrong) { ExpectRefused(InLast(), GetParam()); }

const BadPlan kOnItsWay[] = {
    {"WritesTheOperand",
     [](auto& plan) {
       plan = Scattered();
       AddFill(plan, kLast, kDw);
       Move(plan, kWait, kWait + 1);
     },
     "segment backward_last, instruction 4 (fill) writes gradient 'w', whose memory instruction 3, "
     "which is on its way, reads"},
    {"WritesTheResult",
     [](auto& plan) {
       AddFill(plan, kLast, kReducedDw);
       Move(plan, kWait, kWait + 1);
     },
     "instruction 4 (fill) writes temporary 'w reduced', whose memory instruction 3, which is on "
     "its "
     "way, writes"},
    {"ReadsTheResult",
     [](auto& plan) {
       AddCopy(plan, kLast, kReducedDw, AddBufferLike(plan, kReducedDw, true));
       Move(plan, kWait, kWait + 1);
     },
     "instruction 4 (copy) reads temporary 'w reduced', whose memory instruction 3, which is on "
     "its "
     "way, writes"},
    {"WritesMemoryOfAnother",
     [](auto& plan) {
       // A temporary whose memory is used again too early.
       StartAnother(plan, 1);
       AddFill(plan, kLast, AddBufferLike(plan, kBatchDw, false));
       Add(plan, kLast).mutable_wait()->set_collective(5);
     },
     "instruction 6 (fill) writes temporary 'added', whose memory instruction 5, which is on its "
     "way, reads"},
    {"StartsWhatIsOnItsWay",
     [](auto& plan) {
       AddAllReduce(plan, kLast, kReducedDw, AddBufferLike(plan, kReducedDw, true), 1);
       Move(plan, kWait, kWait + 1);
       Add(plan, kLast).mutable_wait()->set_collective(4);
     },
     "instruction 4 (all_reduce) reads temporary 'w reduced', whose memory instruction 3"},
    {"OnAnotherStream",
     [](auto& plan) {
       StartAnother(plan, 2);
       Add(plan, kLast).mutable_wait()->set_collective(5);
     },
     "instruction 5 (all_reduce) is on the stream 2, but others over {a0} are on the stream 1"},
    {"OnAnotherStreamInAnotherSegment",
     [](auto& plan) {
       Instruction(plan, kUpdateBehind, 0).mutable_collective()->set_stream(7);
       Add(plan, kUpdateBehind).mutable_wait()->set_collective(0);
     },
     "segment update, instruction 0 (all_reduce) is on the stream 7, but others over {a0} are on "
     "the stream 1"},
    {"OnNoStreamMeanwhile",
     [](auto& plan) {
       StartAnother(plan, 0);
       Move(plan, kWait, kWait + 1);
     },
     "instruction 4 (all_reduce) runs while instruction 3, which is over {a0} too, is on its way"},
};
INSTANTIATE_TEST_SUITE_P(OnItsWay, VerifyBadOverlap, ::testing::ValuesIn(kOnItsWay), NameOf);

void SetSchedule(plan::Plan& plan, const std::vector<std::pair<const char*, int64_t>>& entries) {
  Program(plan).clear_schedule();
  for (const auto& [segment, microbatch] : entries) {
    auto* entry = Program(plan).add_schedule();
    entry->set_segment(segment);
    entry->set_microbatch(microbatch);
  }
}

const BadPlan kLastMicrobatch[] = {
    {"ReducedInTheMiddle",
     [](auto& plan) {
       SetSchedule(plan, {{"forward", 0},
                          {"backward_last", 0},
                          {"forward", 1},
                          {"backward", 1},
                          {"forward", 2},
                          {"backward", 2},
                          {"update", 0}});
     },
     "the schedule has backward of microbatch 1 after the last run of backward"},
    {"LastTwice",
     [](auto& plan) {
       SetSchedule(plan, {{"forward", 0},
                          {"backward", 0},
                          {"forward", 1},
                          {"backward_last", 1},
                          {"forward", 2},
                          {"backward_last", 2},
                          {"update", 0}});
     },
     "the schedule has backward_last of microbatch 2 after the last run of backward"},
    {"NoLast",
     [](auto& plan) {
       SetSchedule(plan, {{"forward", 0},
                          {"backward", 0},
                          {"forward", 1},
                          {"backward", 1},
                          {"forward", 2},
                          {"backward", 2},
                          {"update", 0}});
     },
     "the schedule has no backward_last"},
    {"LastBeforeItsForward",
     [](auto& plan) {
       SetSchedule(plan, {{"forward", 0},
                          {"backward", 0},
                          {"forward", 1},
                          {"backward", 1},
                          {"backward_last", 2},
                          {"forward", 2},
                          {"update", 0}});
     },
     "the schedule has backward_last of microbatch 2 before its forward"},
    {"OneMicrobatchLess",
     [](auto& plan) {
       SetSchedule(plan, {{"forward", 0},
                          {"forward", 1},
                          {"backward", 1},
                          {"forward", 2},
                          {"backward_last", 2},
                          {"update", 0}});
     },
     "the schedule has backward of 2 microbatches out of 3"},
    {"UpdateOfAnotherMicrobatch",
     [](auto& plan) { Program(plan).mutable_schedule()->rbegin()->set_microbatch(1); },
     "the schedule has update of microbatch 1"},
    {"ReducedInEveryBackward",
     [](auto& plan) { AddAllReduce(plan, kBackward, kDw, kReducedDw, 0); },
     "segment backward leaves temporary 'w reduced' ([4]) in the memory of gradient 'w'"},
    {"UpdateReducesAgain",
     [](auto& plan) {
       auto* collective = Instruction(plan, kUpdateBehind, 0).mutable_collective();
       collective->add_operands(kDw);
       collective->add_results(kReducedDw);
     },
     "segment update, instruction 0 (all_reduce) reads gradient 'w' ([4] sum {a0}), but there is "
     "temporary 'w reduced' ([4])"},
    {"UpdateReadsWhatIsNotReduced",
     [](auto& plan) {
       auto* instructions = Program(plan).mutable_segments(kLast)->mutable_instructions();
       instructions->DeleteSubrange(kStart, 2);
     },
     "reads temporary 'w reduced' ([4]), but there is gradient 'w' ([4] sum {a0})"},
    {"LastOverwrites", [](auto& plan) { AddFill(plan, kLast, kReducedDw); },
     "segment backward_last overwrites gradient 'w' instead of adding to it"},
    {"StashOfAnotherMicrobatch",
     [](auto& plan) {
       plan = Scattered();
       Program(plan).mutable_schedule()->rbegin()->set_microbatch(0);
     },
     "(all_gather) reads stash 'dw_piece' of microbatch 0, but there is that of microbatch 2"},
};
INSTANTIATE_TEST_SUITE_P(LastMicrobatch, VerifyBadOverlap, ::testing::ValuesIn(kLastMicrobatch),
                         NameOf);

// Programs of the ranks of a grid wait elsewhere, and start in the same order.
TEST(VerifyOverlap, WaitsMayDifferBetweenRanks) {
  plan::Plan plan = Scattered();
  Split(plan);
  auto* instructions = plan.mutable_programs(1)->mutable_segments(kLast)->mutable_instructions();
  auto* other = instructions->Add();
  *other->mutable_copy() = plan::Copy();
  other->mutable_copy()->set_source(kBatchDw);
  other->mutable_copy()->set_target(AddBufferLike(plan, kBatchDw, true));
  *plan.mutable_programs(1)->mutable_buffers() = plan.programs(0).buffers();
  plan.mutable_programs(1)->set_arena_bytes(plan.programs(0).arena_bytes());
  instructions->SwapElements(kWait, kWait + 1);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
  plan.mutable_programs(1)
      ->mutable_segments(kLast)
      ->mutable_instructions(kStart)
      ->mutable_collective()
      ->set_stream(2);
  EXPECT_THAT(VerifyPlan(plan),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("programs 0 and 1, segment backward_last: the ranks "
                                            "would not meet in collective 0")));
}

}  // namespace
}  // namespace oriel::runtime
