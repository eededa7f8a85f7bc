#include "passes/simulate/repeat_grids.h"

#include "gtest/gtest.h"

namespace oriel {
namespace {

using Kind = SegmentPiece::Kind;

SegmentPiece Computing(double seconds) {
  SegmentPiece piece;
  piece.computing = seconds;
  return piece;
}

SegmentPiece Transfer(Kind kind, const std::string& channel, size_t peer) {
  SegmentPiece piece;
  piece.kind = kind;
  piece.channel = channel;
  piece.peer = peer;
  return piece;
}

// Three grids with a forward of 1 s, a backward of 2 s and an update of 1 s, as a compilation
// leaves them; all tell the first their gradients' norms.
std::vector<ProgramCost> Compiled() {
  std::vector<ProgramCost> programs(3);
  for (size_t i = 0; i < 3; ++i) {
    ProgramCost& program = programs[i];
    const std::string own = std::to_string(i);
    std::vector<SegmentPiece>& forward = program.profile.segments["forward." + own];
    std::vector<SegmentPiece>& backward = program.profile.segments["backward." + own];
    std::vector<SegmentPiece>& update = program.profile.segments["update"];
    if (i > 0)
      forward.push_back(Transfer(Kind::kReceive, "forward." + std::to_string(i - 1), i - 1));
    forward.push_back(Computing(1));
    if (i < 2) forward.push_back(Transfer(Kind::kSend, "forward." + own, i + 1));
    if (i < 2) backward.push_back(Transfer(Kind::kReceive, "backward." + own, i + 1));
    backward.push_back(Computing(2));
    if (i > 0)
      backward.push_back(Transfer(Kind::kSend, "backward." + std::to_string(i - 1), i - 1));
    for (size_t other = 1; other < 3 && i == 0; ++other) {
      update.push_back(Transfer(Kind::kReceive, "update." + std::to_string(other), other));
    }
    if (i > 0) update.push_back(Transfer(Kind::kSend, "update." + own, 0));
    update.push_back(Computing(1));
    program.work = {{"forward." + own, {1, {}}}, {"backward." + own, {2, {}}}, {"update", {}}};
    program.bytes[static_cast<size_t>(MemoryUse::kParameters)] = 10;
    program.bytes[static_cast<size_t>(MemoryUse::kStash)] = 3;
  }
  // Where its peak is not that of the second grid.
  MemoryByPlace& memory = programs[1].memoryOn[3];
  memory[{nullptr, nullptr, nullptr, 0}][static_cast<size_t>(MemoryUse::kStash)] = 4;
  memory[{nullptr, nullptr, nullptr, 1}][static_cast<size_t>(MemoryUse::kTemporaries)] = 20;
  return programs;
}

RepeatedGrids Six() {
  RepeatedGrids repeated;
  repeated.kept = {0, 1, 5};
  repeated.keptOf = {0, 1, 1, 1, 1, 2};
  repeated.firstRanks = {0, 4, 8, 12, 16, 20};
  repeated.microbatches = 10;
  repeated.keptMicrobatches = 6;
  return repeated;
}

TEST(RepeatGridsTest, ThreeStandForSix) {
  std::optional<std::vector<ProgramCost>> programs = repeatGrids(Compiled(), Six());
  ASSERT_TRUE(programs);
  ASSERT_EQ(programs->size(), 6);
  std::vector<ProgramProfile> profiles;
  for (const ProgramCost& program : *programs) profiles.push_back(program.profile);
  auto step = simulateStep(profiles, [](size_t from, size_t to, double) {
    EXPECT_TRUE(from + 1 == to || to + 1 == from || to == 0);
    return 0.;
  });
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_DOUBLE_EQ(step->seconds, (10 + 6 - 1) * 3 + 1);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(profiles[i].firstRank, static_cast<int64_t>(4 * i));
    EXPECT_DOUBLE_EQ((*programs)[i].flopsOfStep(), 30);
    EXPECT_DOUBLE_EQ((*programs)[i].peakBytes(), i == 3 ? 20 : 10 + 3);
  }
}

TEST(RepeatGridsTest, ASkipConnectionStandsForNoOther) {
  std::vector<ProgramCost> programs = Compiled();
  programs[0].profile.segments["forward.0"].push_back(Transfer(Kind::kSend, "forward.9", 2));
  programs[2].profile.segments["forward.2"].insert(
      programs[2].profile.segments["forward.2"].begin(), Transfer(Kind::kReceive, "forward.9", 0));
  EXPECT_FALSE(repeatGrids(programs, Six()));
}

TEST(RepeatGridsTest, WhatOnlyOneBoundaryCarriesStandsForNoOther) {
  std::vector<ProgramCost> programs = Compiled();
  programs[0].profile.segments["forward.0"].push_back(Transfer(Kind::kSend, "forward.9", 1));
  programs[1].profile.segments["forward.1"].insert(
      programs[1].profile.segments["forward.1"].begin(), Transfer(Kind::kReceive, "forward.9", 0));
  EXPECT_FALSE(repeatGrids(programs, Six()));
}

}  // namespace
}  // namespace oriel
