// `oriel verify` on damaged plans of a real model in two pipeline stages of two ranks each, which
// share a weight.
#include <string>

#include "tests/damaged_plans/damaged_plan_testing.h"

namespace oriel {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct TwoStages {
  static constexpr char kName[] = "qwen_vl_tiny";
  static std::vector<const char*> Options() {
    return {"--mesh", "dp=2",           "--stages", "0-3,4-5",   "--schedule",
            "1f1b",   "--microbatches", "2",        "--overlap", "off"};
  }
};
class VerifyPipelineTest : public DamagedPlanTest<TwoStages> {
 protected:
  Place FirstSend(const std::string& segment) {
    return Find(plan_, segment, [](const auto& instruction) { return instruction.has_send(); });
  }
  Place FirstReceive(const std::string& segment) {
    return Find(plan_, segment, [](const auto& instruction) { return instruction.has_receive(); });
  }
  void SwapRuns(int program, int a, int b) {
    plan_.mutable_programs(program)->mutable_schedule()->SwapElements(a, b);
  }
};

TEST_F(VerifyPipelineTest, TakesTheCompiledPlan) { ExpectTaken(); }

TEST_F(VerifyPipelineTest, RefusesAMissingSend) {
  FirstSend("forward.0").Remove();
  ExpectRefused(HasSubstr("program 0: nothing sends the channel"));
}

TEST_F(VerifyPipelineTest, RefusesAMissingReceive) {
  FirstReceive("backward.0").Remove();
  ExpectRefused(HasSubstr("program 0: nothing receives the channel"));
}

TEST_F(VerifyPipelineTest, RefusesAReceiveBehindItsUse) {
  const Place place = FirstReceive("forward.1");
  for (int i = place.index; i + 1 < place.instructions().size(); ++i) {
    place.instructions().SwapElements(i, i + 1);
  }
  ExpectRefused(AllOf(HasSubstr("segment forward.1, instruction"), HasSubstr("(receive) receives"),
                      HasSubstr("which the segment has used before")));
}

// 1F1B: the first grid has two microbatches in flight.
TEST_F(VerifyPipelineTest, RefusesACopyLess) {
  int rings = 0;
  for (auto& buffer : *plan_.mutable_programs(0)->mutable_buffers()) {
    if (buffer.kind() != plan::STASH || buffer.copy_offsets().empty()) continue;
    buffer.clear_copy_offsets();
    ++rings;
  }
  EXPECT_GT(rings, 0);
  ExpectRefused(AllOf(HasSubstr("segment backward.0, instruction"), HasSubstr(" reads stash "),
                      HasSubstr(" of microbatch 0, but there is that of microbatch 1")));
}

// The first grid waits for a gradient before it sends the second microbatch, which the second grid
// waits for before it sends that gradient.
TEST_F(VerifyPipelineTest, RefusesSchedulesInWhichRanksWaitForEachOther) {
  SwapRuns(0, 1, 2);
  SwapRuns(1, 1, 2);
  ExpectRefused(AllOf(HasSubstr("the ranks would wait for each other for ever"),
                      HasSubstr("ranks 0 to 1, in backward.0 of microbatch 0"),
                      HasSubstr("ranks 2 to 3, in forward.1 of microbatch 1")));
}

TEST_F(VerifyPipelineTest, RefusesAnotherOrderOfMicrobatches) {
  for (int i = 0; i < 4; ++i) {
    auto& entry = *plan_.mutable_programs(1)->mutable_schedule(i);
    entry.set_microbatch(1 - entry.microbatch());
  }
  ExpectRefused(
      HasSubstr("what is sent as number 0 is of microbatch 0, but what is received is of "
                "microbatch 1"));
}

TEST_F(VerifyPipelineTest, RefusesOtherPieces) {
  const Place place = FirstReceive("forward.1");
  plan_.mutable_channels(place.instruction().receive().channel())->clear_target();
  ExpectRefused(AllOf(HasSubstr(place.ToString() + " receives"), HasSubstr("its channel is for")));
}

// The first grid steps it and sends the new value to the second: here the old one.
TEST_F(VerifyPipelineTest, RefusesAnOldValueOfATiedWeight) {
  const Place place = Find(plan_, "update", [&](const auto& instruction) {
    return instruction.has_copy() &&
           plan_.programs(0).buffers(instruction.copy().source()).kind() == plan::PARAMETER;
  });
  place.instructions().SwapElements(place.index - 1, place.index);
  ExpectRefused(AllOf(HasSubstr("program 1, segment update: parameter"),
                      HasSubstr("which is not the new value that it has on grid 0")));
}

}  // namespace
}  // namespace oriel
