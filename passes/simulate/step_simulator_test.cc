#include "passes/simulate/step_simulator.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel {
namespace {

using Kind = SegmentPiece::Kind;
using testing::HasSubstr;

SegmentPiece Computing(double computing, double waiting = 0) {
  SegmentPiece piece;
  piece.computing = computing;
  piece.waiting = waiting;
  return piece;
}

SegmentPiece Transfer(Kind kind, const std::string& channel, double bytes = 1) {
  SegmentPiece piece;
  piece.kind = kind;
  piece.channel = channel;
  piece.bytes = bytes;
  return piece;
}

// Two stages, forwards and backwards of 1 s and 2 s, as 1F1B runs them.
std::vector<ProgramProfile> TwoStages() {
  ProgramProfile first, last;
  first.name = "p0";
  first.segments["forward.0"] = {Computing(1), Transfer(Kind::kSend, "f")};
  first.segments["backward.0"] = {Transfer(Kind::kReceive, "b"), Computing(2)};
  first.schedule = {{"forward.0", 0}, {"forward.0", 1},  {"backward.0", 0},
                    {"forward.0", 2}, {"backward.0", 1}, {"backward.0", 2}};
  last.name = "p1";
  last.segments["forward.1"] = {Transfer(Kind::kReceive, "f"), Computing(1)};
  last.segments["backward.1"] = {Computing(2), Transfer(Kind::kSend, "b")};
  last.schedule = {{"forward.1", 0},  {"backward.1", 0}, {"forward.1", 1},
                   {"backward.1", 1}, {"forward.1", 2},  {"backward.1", 2}};
  return {first, last};
}

TEST(StepSimulatorTest, OneProgramIsTheSumOfItsRuns) {
  ProgramProfile program;
  program.segments["forward"] = {Computing(1, 0.5)};
  program.segments["update"] = {Computing(0.25)};
  program.schedule = {{"forward", 0}, {"forward", 1}, {"update", 0}};
  auto step = simulateStep({program}, [](size_t, size_t, double) { return 0.; });
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_DOUBLE_EQ(step->seconds, 3.25);
  EXPECT_DOUBLE_EQ(step->programs[0].computing, 2.25);
  EXPECT_DOUBLE_EQ(step->programs[0].communicating, 1);
  EXPECT_DOUBLE_EQ(step->bubble(), 0);
  ASSERT_EQ(step->programs[0].runs.size(), 3);
  EXPECT_DOUBLE_EQ(step->programs[0].runs[1].start, 1.5);
  EXPECT_DOUBLE_EQ(step->programs[0].runs[1].end, 3);
}

TEST(StepSimulatorTest, APipelineHasTheBubbleOfItsSchedule) {
  auto step = simulateStep(TwoStages(), [](size_t, size_t, double) { return 0.; });
  ASSERT_TRUE(step.ok()) << step.status();
  // (m + p - 1) (F + B), and the part (p - 1) / (m + p - 1) of it.
  EXPECT_DOUBLE_EQ(step->seconds, 4 * 3);
  EXPECT_DOUBLE_EQ(step->bubble(), 0.25);
}

// A run has begun when it waits for what it reads.
TEST(StepSimulatorTest, ARunSaysWhenItWaits) {
  auto step = simulateStep(TwoStages(), [](size_t, size_t, double) { return 0.; });
  ASSERT_TRUE(step.ok()) << step.status();
  const TimedSegment& first = step->programs[1].runs[0];
  EXPECT_DOUBLE_EQ(first.start, 0);
  EXPECT_DOUBLE_EQ(first.end, 2);
  EXPECT_EQ(first.waits, (std::vector<std::pair<double, double>>{{0, 1}}));
  EXPECT_TRUE(step->programs[1].runs[1].waits.empty());
}

TEST(StepSimulatorTest, TransfersTakeTimeAndOneLinkCarriesOneAtATime) {
  ProgramProfile sender, receiver;
  sender.segments["forward.0"] = {Transfer(Kind::kSend, "a", 2), Transfer(Kind::kSend, "b", 3)};
  sender.schedule = {{"forward.0", 0}};
  receiver.segments["forward.1"] = {Transfer(Kind::kReceive, "b"), Transfer(Kind::kReceive, "a")};
  receiver.schedule = {{"forward.1", 0}};
  auto step = simulateStep({sender, receiver}, [](size_t from, size_t to, double bytes) {
    EXPECT_EQ(from, 0);
    EXPECT_EQ(to, 1);
    return bytes;
  });
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_DOUBLE_EQ(step->seconds, 5);
  EXPECT_DOUBLE_EQ(step->programs[0].runs[0].end, 0);  // a sender goes on
}

TEST(StepSimulatorTest, AStragglerSlowsAllDown) {
  std::vector<ProgramProfile> programs = TwoStages();
  programs[1].slowdown = 2;
  auto step = simulateStep(programs, [](size_t, size_t, double) { return 0.; });
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_DOUBLE_EQ(step->seconds, 1 + 3 * 6 + 2);
}

TEST(StepSimulatorTest, ProgramsThatWaitForEachOtherAreAnError) {
  std::vector<ProgramProfile> programs = TwoStages();
  programs[0].schedule = {{"backward.0", 0}, {"forward.0", 0}};
  programs[1].schedule = {{"forward.1", 0}, {"backward.1", 0}};
  auto step = simulateStep(programs, [](size_t, size_t, double) { return 0.; });
  EXPECT_EQ(step.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(step.status().message()),
              HasSubstr("program 'p0' waits for ever in its run 1 of 2 ('backward.0', microbatch "
                        "0) for the channel 'b'"));
}

TEST(StepSimulatorTest, AScheduleOfAnUnknownSegmentIsAnError) {
  ProgramProfile program;
  program.name = "p0";
  program.schedule = {{"forward", 0}};
  auto step = simulateStep({program}, [](size_t, size_t, double) { return 0.; });
  EXPECT_THAT(std::string(step.status().message()), HasSubstr("runs the segment 'forward'"));
}

}  // namespace
}  // namespace oriel
