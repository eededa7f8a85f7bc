// `oriel verify` on damaged plans of a real model that communicates while it computes.
#include <string>

#include "tests/damaged_plans/damaged_plan_testing.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

bool IsWait(const plan::Instruction& instruction) { return instruction.has_wait(); }
bool IsStart(const plan::Instruction& instruction) { return instruction.collective().stream() > 0; }

// Moves it behind all others. Those behind it move up, which waits for them follow.
void MoveToTheEnd(const Place& place) {
  const int last = place.instructions().size() - 1;
  for (int i = place.index; i < last; ++i) place.instructions().SwapElements(i, i + 1);
  for (plan::Instruction& instruction : place.instructions()) {
    if (!IsWait(instruction) || instruction.wait().collective() <= place.index) continue;
    instruction.mutable_wait()->set_collective(instruction.wait().collective() - 1);
  }
}

struct Overlapped {
  static constexpr char kName[] = "llava_tiny";
  static std::vector<const char*> Options() {
    return {"--mesh", "dp=2", "--zero", "1", "--overlap", "bucket=16KiB"};
  }
};
class VerifyOverlapPlanTest : public DamagedPlanTest<Overlapped> {};

TEST_F(VerifyOverlapPlanTest, TakesTheCompiledPlan) { ExpectTaken(); }

TEST_F(VerifyOverlapPlanTest, RefusesAMissingWait) {
  const Place wait = Find(plan_, "backward_last", IsWait);
  MoveToTheEnd(wait);
  wait.instructions().RemoveLast();
  ExpectRefused(HasSubstr("is started, but the segment does not wait for it"));
}

TEST_F(VerifyOverlapPlanTest, RefusesAWaitForAnother) {
  const Place wait = Find(plan_, "backward_last", IsWait);
  wait.instruction().mutable_wait()->set_collective(wait.index);
  ExpectRefused(HasSubstr(wait.ToString() + " waits for instruction " + std::to_string(wait.index) +
                          ", which is no collective on its way"));
}

// What it brings, and the memory that it reads, is used again before the segment ends.
TEST_F(VerifyOverlapPlanTest, RefusesAWaitThatComesTooLate) {
  const Place wait = Find(plan_, "update", IsWait);
  const int start = wait.instruction().wait().collective();
  MoveToTheEnd(wait);
  ExpectRefused(
      HasSubstr("whose memory instruction " + std::to_string(start) + ", which is on its way, "));
}

TEST_F(VerifyOverlapPlanTest, RefusesASecondStreamOfAGroup) {
  const Place start = Find(plan_, "backward_last", IsStart);
  start.instruction().mutable_collective()->set_stream(9);
  ExpectRefused(AllOf(HasSubstr("is on the stream "), HasSubstr("but others over {a0} are")));
}

TEST_F(VerifyOverlapPlanTest, RefusesACollectiveOfTheGroupMeanwhile) {
  const Place start = Find(plan_, "backward_last", IsStart);
  const Place wait = Find(plan_, "backward_last", [&](const plan::Instruction& instruction) {
    return IsWait(instruction) && instruction.wait().collective() == start.index;
  });
  plan::Instruction added = start.instruction();
  added.mutable_collective()->set_stream(0);
  *start.instructions().Add() = added;
  MoveToTheEnd(wait);
  ExpectRefused(HasSubstr("which is over {a0} too, is on its way"));
}

TEST_F(VerifyOverlapPlanTest, RefusesAReductionBeforeTheLastMicrobatch) {
  plan::ScheduleEntry *plain = nullptr, *last = nullptr;
  for (plan::ScheduleEntry& entry : *plan_.mutable_programs(0)->mutable_schedule()) {
    if (entry.segment() == "backward") plain = &entry;
    if (entry.segment() == "backward_last") last = &entry;
  }
  ASSERT_TRUE(plain != nullptr && last != nullptr);
  std::swap(*plain->mutable_segment(), *last->mutable_segment());
  ExpectRefused(HasSubstr("the schedule has backward of microbatch 1 after the last run"));
}

}  // namespace
}  // namespace oriel
