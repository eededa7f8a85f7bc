#include "passes/overlap/list_scheduler.h"

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel {
namespace {

constexpr OverlapBounds kWide = {1 << 30, 1 << 30};

// "r1 s2 w2": runs op 1, starts collective 2, waits for it.
std::string textOf(const OverlapSchedule& schedule) {
  std::string text;
  for (const OverlapStep& step : schedule.steps) {
    const char kind = step.kind == OverlapStep::Kind::kRun     ? 'r'
                      : step.kind == OverlapStep::Kind::kStart ? 's'
                                                               : 'w';
    absl::StrAppend(&text, text.empty() ? "" : " ", std::string(1, kind), step.op);
  }
  return text;
}

OverlapOp computing(std::vector<int> operands, double seconds = 1) {
  return {std::move(operands), seconds};
}
OverlapOp collective(std::vector<int> operands, int64_t bytes = 0, double seconds = 1,
                     int stream = 1) {
  return {std::move(operands), seconds, stream, bytes};
}

TEST(ScheduleOverlap, KeepsTheOrderOfWhatComputes) {
  const OverlapSchedule schedule =
      scheduleOverlap({computing({}), computing({}), computing({0})}, kWide);
  EXPECT_EQ(textOf(schedule), "r0 r1 r2");
  EXPECT_EQ(schedule.seconds, 3);
}

TEST(ScheduleOverlap, WaitsBeforeTheFirstUser) {
  // 2 does not need what is on its way, 3 does.
  const OverlapSchedule schedule = scheduleOverlap(
      {computing({}), collective({0}), computing({0}), computing({1, 2}), computing({1})}, kWide);
  EXPECT_EQ(textOf(schedule), "r0 s1 r2 w1 r3 r4");
  EXPECT_EQ(schedule.seconds, 4);
}

TEST(ScheduleOverlap, GathersAhead) {
  // 0 and 2 bring what 1 and 3 need.
  const OverlapSchedule schedule = scheduleOverlap(
      {collective({}, 8), computing({0}), collective({}, 8), computing({1, 2})}, kWide);
  EXPECT_EQ(textOf(schedule), "s0 w0 s2 r1 w2 r3");
  EXPECT_EQ(schedule.seconds, 3);
}

TEST(ScheduleOverlap, GathersNoFurtherAheadThanTheBound) {
  std::vector<OverlapOp> ops;
  for (int i = 0; i < 4; ++i) {
    ops.push_back(collective({}, 8, /*seconds=*/0));
    ops.push_back(i == 0 ? computing({0}) : computing({2 * i - 1, 2 * i}));
  }
  EXPECT_EQ(textOf(scheduleOverlap(ops, {16, 0})), "s0 s2 w0 s4 r1 w2 s6 r3 w4 r5 w6 r7");
  EXPECT_EQ(textOf(scheduleOverlap(ops, {8, 0})), "s0 w0 s2 r1 w2 s4 r3 w4 s6 r5 w6 r7");
  // Where not even one fits, each is started where it is used.
  EXPECT_EQ(textOf(scheduleOverlap(ops, {7, 0})), "s0 w0 r1 s2 w2 r3 s4 w4 r5 s6 w6 r7");
}

TEST(ScheduleOverlap, GathersWhenTheStreamIsIdle) {
  // The long one keeps the stream, so that the second gather would not come sooner.
  const OverlapSchedule schedule =
      scheduleOverlap({collective({}, 1, /*seconds=*/3), computing({}), computing({}),
                       computing({0}), collective({}, 1), computing({4})},
                      kWide);
  EXPECT_EQ(textOf(schedule), "s0 r1 r2 w0 s4 r3 w4 r5");
}

TEST(ScheduleOverlap, StepsBackForWhatIsMoreUrgent) {
  // The chain 0, 3, 6 makes what the collectives reduce; 2 and 5 only keep it.
  const std::vector<OverlapOp> ops = {computing({}),  collective({0}, 8, 2), computing({1}, 0.1),
                                      computing({0}), collective({3}, 8, 2), computing({4}, 0.1),
                                      computing({3})};
  EXPECT_EQ(textOf(scheduleOverlap(ops, kWide)), "r0 s1 r3 s4 r6 w1 r2 w4 r5");
  // With room for one on its way, the oldest is waited for.
  EXPECT_EQ(textOf(scheduleOverlap(ops, {0, 8})), "r0 s1 r3 s4 w1 r2 r6 w4 r5");
}

TEST(ScheduleOverlap, WhatIsUrgentDoesNotStepBack) {
  // 2 goes on for long, 3 does not.
  const OverlapSchedule schedule =
      scheduleOverlap({computing({}), collective({0}), computing({1}, 5), computing({0})}, kWide);
  EXPECT_EQ(textOf(schedule), "r0 s1 w1 r2 r3");
}

TEST(ScheduleOverlap, WhatLeavesIsUrgent) {
  std::vector<OverlapOp> ops = {computing({}), collective({0}), computing({1}, 0), computing({0})};
  EXPECT_EQ(textOf(scheduleOverlap(ops, kWide)), "r0 s1 r3 w1 r2");
  ops[2].leaves = true;
  EXPECT_EQ(textOf(scheduleOverlap(ops, kWide)), "r0 s1 w1 r2 r3");
}

TEST(ScheduleOverlap, StartsABucketWithItsLastMember) {
  // The first member of 3 is made by 0, and used by 1.
  const OverlapSchedule schedule = scheduleOverlap(
      {computing({}), computing({3}, 0), computing({0}), collective({0, 2}), computing({2}, 2)},
      kWide);
  EXPECT_EQ(textOf(schedule), "r0 r2 s3 r4 w3 r1");
}

TEST(ScheduleOverlap, StreamsRunAtTheSameTime) {
  const std::vector<OverlapOp> ops = {computing({}), collective({0}, 0, 4),
                                      collective({0}, 0, 4, /*stream=*/2)};
  EXPECT_EQ(scheduleOverlap(ops, kWide).seconds, 5);
  std::vector<OverlapOp> same = ops;
  same[2].stream = 1;
  EXPECT_EQ(scheduleOverlap(same, kWide).seconds, 9);
}

TEST(ScheduleOverlap, CollectivesFollowEachOther) {
  // 2 reduces further what 1 has reduced.
  const OverlapSchedule schedule = scheduleOverlap(
      {computing({}), collective({0}), collective({1}, 0, 1, 2), computing({0}, 5)}, kWide);
  EXPECT_EQ(textOf(schedule), "r0 s1 r3 w1 s2 w2");
}

// Whatever the ops: each runs once and after its operands, each collective is waited for once and
// before its users, and the bounds hold.
TEST(ScheduleOverlap, RandomSegmentsAreInOrder) {
  for (int seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    auto upTo = [&](int n) { return static_cast<int>(random() % n); };
    std::vector<OverlapOp> ops(2 + upTo(40));
    for (size_t i = 0; i < ops.size(); ++i) {
      std::set<int> operands;
      for (int k = upTo(4); k > 0 && i > 0; --k) operands.insert(upTo(static_cast<int>(i)));
      ops[i].operands.assign(operands.begin(), operands.end());
      ops[i].seconds = upTo(5);
      ops[i].stream = upTo(3) == 0 ? 1 + upTo(2) : 0;
      ops[i].bytes = ops[i].stream > 0 ? upTo(10) : 0;
      ops[i].leaves = ops[i].stream == 0 && upTo(20) == 0;
    }
    const OverlapBounds bounds{upTo(30), upTo(30)};
    std::set<int> there, started, done;
    int64_t behind = 0;
    for (const OverlapStep& step : scheduleOverlap(ops, bounds).steps) {
      const OverlapOp& op = ops[step.op];
      if (step.kind == OverlapStep::Kind::kWait) {
        ASSERT_EQ(started.count(step.op), 1) << seed;
        ASSERT_TRUE(there.insert(step.op).second) << seed;
        if (!op.operands.empty()) behind -= op.bytes;
        continue;
      }
      ASSERT_TRUE(done.insert(step.op).second) << seed;
      for (int operand : op.operands) ASSERT_EQ(there.count(operand), 1) << seed;
      const bool starts = step.kind == OverlapStep::Kind::kStart;
      ASSERT_EQ(starts, op.stream > 0) << seed;
      (starts ? started : there).insert(step.op);
      if (!starts || op.operands.empty()) continue;
      // One more may be started before the oldest is waited for.
      ASSERT_LE(behind, bounds.behind + 9) << seed;
      behind += op.bytes;
    }
    EXPECT_EQ(done.size(), ops.size()) << seed;
    EXPECT_EQ(there.size(), ops.size()) << seed;
  }
}

}  // namespace
}  // namespace oriel
