#include "passes/simulate/program_profile.h"

#include "gtest/gtest.h"

namespace oriel {
namespace {

const MemoryPlace kEnd = {nullptr, nullptr, nullptr, 0};

ProgramCost CostOf(double forward, double update, double stash) {
  ProgramCost cost;
  SegmentPiece run;
  run.computing = forward;
  SegmentPiece send;
  send.kind = SegmentPiece::Kind::kSend;
  send.channel = "c";
  cost.profile.segments["forward.3"] = {run, send};
  run.computing = update;
  cost.profile.segments["update"] = {run};
  cost.profile.schedule = {{"forward.3", 0}, {"forward.3", 1}, {"update", 0}};
  cost.work = {{"forward.3", {10 * forward, {{"linear", forward}}}}, {"update", {}}};
  cost.memory[kEnd][static_cast<size_t>(MemoryUse::kStash)] = stash;
  cost.bytes = peakOf(cost.memory);
  return cost;
}

TEST(ExtrapolateTest, ASegmentGrowsWithItsStageAndTheRestWithTheProgram) {
  const ProgramCost two = CostOf(2, 10, 100), three = CostOf(3, 14, 120);
  BlockDifference difference;
  difference.withOneMore = &three;
  difference.times = 2.5;
  difference.ofStage = {{3, 5}};
  std::optional<ProgramCost> cost = extrapolate(two, {difference});
  ASSERT_TRUE(cost);
  EXPECT_DOUBLE_EQ(cost->profile.segments["forward.3"][0].computing, 7);
  EXPECT_DOUBLE_EQ(cost->profile.segments["update"][0].computing, 20);
  EXPECT_DOUBLE_EQ(cost->peakBytes(), 150);
  EXPECT_DOUBLE_EQ(cost->flopsOfStep(), 2 * 70);
  EXPECT_DOUBLE_EQ(cost->kernelsOfStep().at("linear"), 2 * 7);
}

// The peak with the difference between the two so many times.
std::optional<double> PeakOf(const ProgramCost& one, const ProgramCost& two, double times) {
  BlockDifference more;
  more.withOneMore = &two;
  more.times = times;
  const std::optional<ProgramCost> many = extrapolate(one, {more});
  return many ? std::optional<double>(many->peakBytes()) : std::nullopt;
}

TEST(ExtrapolateTest, ThePeakMayBeAtAnotherPlace) {
  const MemoryPlace update = {nullptr, nullptr, nullptr, 1};
  ProgramCost one = CostOf(1, 1, 100), two = CostOf(2, 1, 110);
  for (ProgramCost* cost : {&one, &two}) {
    cost->memory[update][static_cast<size_t>(MemoryUse::kTemporaries)] = 500;
    cost->bytes = peakOf(cost->memory);
    ASSERT_EQ(cost->peakBytes(), 500);
  }
  EXPECT_EQ(PeakOf(one, two, 90), 100 + 90 * 10);
}

// Ops that come from no node are told apart by their order alone.
TEST(ExtrapolateTest, APlaceThatIsThereInAnotherNumberDoesNotCount) {
  const int node = 0;  // of the others
  const auto like = [&](int number) { return MemoryPlace{&node, &node, &node, number}; };
  constexpr auto kStash = static_cast<size_t>(MemoryUse::kStash);
  ProgramCost one = CostOf(1, 1, 100), two = CostOf(2, 1, 110);
  one.memory[like(0)][kStash] = 0;
  two.memory[like(0)][kStash] = 90;
  two.memory[like(1)][kStash] = 0;
  EXPECT_EQ(PeakOf(one, two, 10), 100 + 10 * 10);
}

TEST(ExtrapolateTest, AnotherStageIsNone) {
  const ProgramCost two = CostOf(2, 10, 100), three = CostOf(3, 14, 120);
  BlockDifference difference;
  difference.withOneMore = &three;
  difference.ofStage = {{2, 5}};
  std::optional<ProgramCost> cost = extrapolate(two, {difference});
  ASSERT_TRUE(cost);
  EXPECT_DOUBLE_EQ(cost->profile.segments["forward.3"][0].computing, 2);
}

TEST(ExtrapolateTest, ProgramsOfDifferentPiecesAreNotExtrapolated) {
  const ProgramCost two = CostOf(2, 10, 100);
  ProgramCost three = CostOf(3, 14, 120);
  three.profile.segments["forward.3"].pop_back();
  BlockDifference difference;
  difference.withOneMore = &three;
  EXPECT_FALSE(extrapolate(two, {difference}));
}

TEST(StageOfSegmentTest, IsTheNumberAtTheEnd) {
  EXPECT_EQ(stageOfSegment("backward_input.12"), 12);
  EXPECT_EQ(stageOfSegment("update"), std::nullopt);
}

}  // namespace
}  // namespace oriel
