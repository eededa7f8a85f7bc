// Plans of several grids: channels, rings of copies, stages, schedules, and who waits for whom.
#include "runtime/plan/two_stage_plan_testing.h"
#include "runtime/plan/verify_testing.h"

namespace oriel::runtime {
namespace {

constexpr TwoStageOptions kPlan = {{2, 2}, 4, 4, 2, false};

plan::Segment& SegmentOf(plan::Plan& plan, int program, const std::string& name) {
  for (auto& segment : *plan.mutable_programs(program)->mutable_segments()) {
    if (segment.name() == name) return segment;
  }
  throw std::runtime_error("no segment " + name);
}

int Index(const plan::Plan& plan, int program, plan::BufferKind kind, const std::string& name) {
  const auto& buffers = plan.programs(program).buffers();
  for (int i = 0; i < buffers.size(); ++i) {
    if (buffers[i].kind() == kind && buffers[i].name() == name) return i;
  }
  throw std::runtime_error("no buffer " + name);
}

plan::Buffer& BufferOf(plan::Plan& plan, int program, plan::BufferKind kind,
                       const std::string& name) {
  return *plan.mutable_programs(program)->mutable_buffers(Index(plan, program, kind, name));
}
plan::Buffer& Transfer(plan::Plan& plan, int program, const std::string& name) {
  return BufferOf(plan, program, plan::TRANSFER, name);
}

// "F0 B0 U" of the program's stage; its number is the program's.
void SetSchedule(plan::Plan& plan, int program, const std::string& runs) {
  auto* schedule = plan.mutable_programs(program)->mutable_schedule();
  schedule->Clear();
  for (size_t i = 0; i < runs.size(); i += 3) {
    auto* entry = schedule->Add();
    const std::string stage = "." + std::to_string(program);
    entry->set_segment(runs[i] == 'U'   ? "update"
                       : runs[i] == 'F' ? "forward" + stage
                       : runs[i] == 'E' ? "eval" + stage
                                        : "backward" + stage);
    entry->set_microbatch(runs[i + 1] - '0');
  }
}

// The first so many of the copies that it has.
void KeepCopies(plan::Buffer& buffer, int copies) {
  buffer.mutable_copy_offsets()->Truncate(copies - 1);
}

void AddFill(plan::Plan& plan, int program, const std::string& segment, int buffer) {
  auto* launch = SegmentOf(plan, program, segment).add_instructions()->mutable_launch();
  launch->set_kernel("fill");
  launch->add_results(buffer);
  (*launch->mutable_attributes())["value"].set_f(0);
}

TEST(VerifyStages, TakesAPipeline) {
  ORIEL_EXPECT_OK(VerifyPlan(TwoStagePlan({})));
  ORIEL_EXPECT_OK(VerifyPlan(TwoStagePlan(kPlan)));
  // A copy for each microbatch.
  ORIEL_EXPECT_OK(VerifyPlan(TwoStagePlan({{2, 2}, 4, 4, 4, true})));
}

TEST(VerifyStages, TakesGridsOfDifferentSizes) {
  ORIEL_EXPECT_OK(VerifyPlan(TwoStagePlan({{1, 4}, 4, 3, 2, false})));
  ORIEL_EXPECT_OK(VerifyPlan(TwoStagePlan({{4, 2}, 4, 3, 2, false})));
}

// One copy of what is sent is enough: the ranks wait, but not for ever.
TEST(VerifyPlan, TakesWhatSendsInTheLastMicrobatchToo) {
  plan::Plan plan = TwoStagePlan({});
  plan::Program& program = *plan.mutable_programs(1);
  plan::Segment last;
  for (const plan::Segment& segment : program.segments()) {
    if (segment.name() == "backward.1") last = segment;
  }
  last.set_name("backward_last.1");
  *program.add_segments() = last;
  for (plan::ScheduleEntry& entry : *program.mutable_schedule()) {
    if (entry.segment() == "backward.1" && entry.microbatch() == 3) {
      entry.set_segment("backward_last.1");
    }
  }
  ORIEL_EXPECT_OK(VerifyPlan(plan));
  program.mutable_segments(program.segments_size() - 1)->set_name("forward_last.1");
  EXPECT_THAT(
      VerifyPlan(plan),
      StatusIs(absl::StatusCode::kInvalidArgument,
               ::testing::HasSubstr("'forward_last.1': not the name of a segment of a stage")));
}

TEST(VerifyStages, TakesOneCopy) {
  plan::Plan plan = TwoStagePlan(kPlan);
  for (auto& program : *plan.mutable_programs()) {
    for (auto& buffer : *program.mutable_buffers()) buffer.clear_copy_offsets();
  }
  ORIEL_EXPECT_OK(VerifyPlan(plan));
}

TEST(VerifyStages, TakesABackwardInTwoParts) {
  plan::Plan plan = TwoStagePlan(kPlan);
  auto& program = *plan.mutable_programs(1);
  plan::Segment& backward = SegmentOf(plan, 1, "backward.1");
  plan::Segment& weight = *program.add_segments();
  weight.set_name("backward_weight.1");
  for (int i = 2; i < backward.instructions_size(); ++i) {
    *weight.add_instructions() = backward.instructions(i);
  }
  backward.set_name("backward_input.1");
  backward.mutable_instructions()->DeleteSubrange(2, backward.instructions_size() - 2);
  google::protobuf::RepeatedPtrField<plan::ScheduleEntry> schedule;
  for (const auto& entry : program.schedule()) {
    *schedule.Add() = entry;
    if (entry.segment() != "backward.1") continue;
    schedule.rbegin()->set_segment("backward_input.1");
    *schedule.Add() = entry;
    schedule.rbegin()->set_segment("backward_weight.1");
  }
  *program.mutable_schedule() = schedule;
  ORIEL_EXPECT_OK(VerifyPlan(plan));

  for (int i = 1; i < program.schedule_size(); ++i) {
    if (program.schedule(i).segment() == "backward_weight.1") {
      program.mutable_schedule()->SwapElements(i - 1, i);
      break;
    }
  }
  EXPECT_THAT(VerifyPlan(plan),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       ::testing::HasSubstr("the schedule has backward_weight.1 of microbatch 0 "
                                            "before its backward_input.1")));
}

// Sixteen stages on 512 ranks, one after the other and back.
TEST(VerifyStages, TakesManyStages) {
  constexpr int kStages = 16, kMicrobatches = 64;
  const TensorSpec batch{DType::kF32, {1, 4}};
  PlanBuilder builder(32);
  builder.Batch(1, kMicrobatches, 32);
  struct Ends {
    int in, out, gradient_in, gradient_out;
  };
  std::vector<Ends> ends;
  std::vector<int> forward, backward;
  for (int stage = 0; stage < kStages; ++stage) {
    if (stage > 0) builder.AddGrid(32);
    const auto ring = [&](const char* name) {
      const int index = builder.Ring(plan::TRANSFER, name, batch, kStages - stage);
      builder.CutByRanks(index);
      return index;
    };
    ends.push_back({ring("in"), ring("out"), ring("gradient_in"), ring("gradient_out")});
    if (stage == 0) continue;
    forward.push_back(builder.Channel("f" + std::to_string(stage), stage - 1, ends[stage - 1].out,
                                      stage, ends[stage].in));
    backward.push_back(builder.Channel("b" + std::to_string(stage), stage, ends[stage].gradient_out,
                                       stage - 1, ends[stage - 1].gradient_in));
  }
  for (int stage = 0; stage < kStages; ++stage) {
    builder.UseGrid(stage);
    const std::string name = "." + std::to_string(stage);
    builder.Segment("forward" + name);
    if (stage > 0) builder.Receive(forward[stage - 1], ends[stage].in);
    builder.FillZero(ends[stage].out);
    if (stage + 1 < kStages) builder.Send(forward[stage], ends[stage].out);
    builder.Segment("backward" + name);
    if (stage + 1 < kStages) builder.Receive(backward[stage], ends[stage].gradient_in);
    builder.FillZero(ends[stage].gradient_out);
    if (stage > 0) builder.Send(backward[stage - 1], ends[stage].gradient_out);
    builder.Segment("update");
    const int ahead = kStages - 1 - stage;
    for (int i = 0; i < kMicrobatches + ahead; ++i) {
      if (i < kMicrobatches) builder.Entry("forward" + name, i);
      if (i >= ahead) builder.Entry("backward" + name, i - ahead);
    }
    builder.Entry("update", 0);
  }
  ORIEL_EXPECT_OK(VerifyPlan(builder.plan()));
}

TEST(VerifyStages, PlacementBlocksAreOfEqualGrids) {
  plan::Plan plan = TwoStagePlan(kPlan);
  plan.set_placement_block(1);
  ORIEL_EXPECT_OK(VerifyPlan(plan));
  const auto refused = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr(text));
  };
  PlanBuilder unequal(2);
  unequal.AddGrid(4);
  unequal.plan().set_placement_block(2);
  EXPECT_THAT(
      VerifyPlan(unequal.plan()),
      refused("the placement block is 2, but grid 1 has 4 ranks: it must divide them, and all "
              "grids have as many"));
  PlanBuilder one(2);
  one.plan().set_placement_block(1);
  EXPECT_THAT(VerifyPlan(one.plan()), refused("the placement block is 1, of 1 grid"));
}

class VerifyBadStages : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadStages, SaysWhatIsWrong) { ExpectRefused(TwoStagePlan(kPlan), GetParam()); }

const BadPlan kTables[] = {
    {"PlacementBlockBelowZero", [](auto& plan) { plan.set_placement_block(-1); },
     "the placement block is -1, of 2 grids"},
    {"PlacementBlockDividesNoGrid", [](auto& plan) { plan.set_placement_block(3); },
     "the placement block is 3, but grid 0 has 2 ranks: it must divide them"},
    {"ChannelTwice", [](auto& plan) { plan.mutable_channels(1)->set_name("h"); },
     "channel 'h': not a name of its own"},
    {"ChannelOfNoGrid", [](auto& plan) { plan.mutable_channels(0)->set_target_grid(2); },
     "channel 'h' is of grid 2 of 2"},
    {"ChannelToItself", [](auto& plan) { plan.mutable_channels(0)->set_target_grid(0); },
     "channel 'h' goes from grid 0 to itself"},
    {"ChannelType",
     [](auto& plan) { plan.mutable_channels(0)->mutable_global()->set_dtype(plan::DType(77)); },
     "channel 'h' has an unknown type or an impossible shape"},
    {"ChannelOfNothing",
     [](auto& plan) { plan.mutable_channels(0)->mutable_global()->set_shape(0, 0); },
     "channel 'h' carries a tensor without elements"},
    {"ChannelIsPending",
     [](auto& plan) { plan.mutable_channels(3)->mutable_source()->add_partial("a0"); },
     "channel 'loss', where it is sent: its storage is a pending reduction"},
    {"ChannelOverUnknownAxis",
     [](auto& plan) {
       plan.mutable_channels(0)->mutable_target()->mutable_dims(0)->add_axes("a7");
     },
     "channel 'h', where it is received: its sharding names the axis 'a7'"},
    {"ManyChannels",
     [](auto& plan) {
       for (int i = 0; i < 40000; ++i) plan.add_channels();
     },
     "there are 40004 channels, more than 32767"},
    {"TwoProgramsOfAGrid",
     [](auto& plan) {
       plan.mutable_programs(1)->set_rank_count(1);
       *plan.add_programs() = plan.programs(1);
       plan.mutable_programs(2)->set_first_rank(3);
     },
     "there are 2 grids and 3 programs; the ranks of each of several grids run one"},
    {"ProgramOfTwoGrids",
     [](auto& plan) {
       plan.mutable_programs(0)->set_rank_count(4);
       plan.mutable_programs()->RemoveLast();
     },
     "program 0 has ranks of several grids"},
};
INSTANTIATE_TEST_SUITE_P(Tables, VerifyBadStages, ::testing::ValuesIn(kTables), NameOf);

const BadPlan kPrograms[] = {
    {"CopiesOfAParameter",
     [](auto& plan) { BufferOf(plan, 0, plan::PARAMETER, "w").add_copy_offsets(0); },
     "(parameter 'w') has 2 copies"},
    {"CopyNotAligned", [](auto& plan) { Transfer(plan, 0, "h").set_copy_offsets(0, 32); },
     "(transfer 'h') is at the offset 32, not a multiple of 64"},
    {"CopyAtANegativeOffset", [](auto& plan) { Transfer(plan, 0, "h").set_copy_offsets(0, -64); },
     "(transfer 'h') is at the offset -64, not a multiple of 64"},
    {"CopyBeyondArena",
     [](auto& plan) { Transfer(plan, 0, "h").set_copy_offsets(0, int64_t{1} << 40); },
     "(transfer 'h') ends beyond the arena: 32 bytes at 1099511627776"},
    {"UnknownChannel",
     [](auto& plan) {
       SegmentOf(plan, 0, "forward.0").mutable_instructions(1)->mutable_send()->set_channel(4);
     },
     "program 0, segment forward.0, instruction 1 (send) names the channel 4 of 4"},
    {"SentByTheReceiver",
     [](auto& plan) {
       SegmentOf(plan, 0, "forward.0").mutable_instructions(1)->mutable_send()->set_channel(1);
     },
     "the channel 'dh' is sent by grid 1, not by grid 0"},
    {"SentTwice",
     [](auto& plan) {
       auto& segment = SegmentOf(plan, 0, "forward.0");
       *segment.add_instructions() = segment.instructions(1);
     },
     "instruction 2 (send): the channel 'h' is sent elsewhere too"},
    {"NotSent",
     [](auto& plan) { SegmentOf(plan, 0, "forward.0").mutable_instructions()->RemoveLast(); },
     "program 0: nothing sends the channel 'h'"},
    {"NotReceived",
     [](auto& plan) {
       SegmentOf(plan, 1, "forward.1").mutable_instructions()->DeleteSubrange(0, 1);
     },
     "program 1: nothing receives the channel 'h'"},
    {"SentFromATemporary",
     [](auto& plan) {
       SegmentOf(plan, 0, "forward.0")
           .mutable_instructions(1)
           ->mutable_send()
           ->set_buffer(Index(plan, 0, plan::TEMPORARY, "product"));
     },
     "temporary 'product' is not a transfer buffer"},
    {"SentOfOtherType",
     [](auto& plan) { plan.mutable_channels(0)->mutable_global()->set_dtype(plan::BF16); },
     "transfer 'h' is not of the type and shape of the channel 'h', bf16[4, 4]"},
    {"StateElsewhere",
     [](auto& plan) {
       auto* state = plan.add_optimizer_states();
       state->set_parameter("v");
       state->set_slot("exp_avg");
       *state->mutable_global() = plan.parameters(1).global();
       plan::Buffer buffer = BufferOf(plan, 0, plan::PARAMETER, "w");
       buffer.set_kind(plan::OPTIMIZER_STATE);
       buffer.set_ref("v");
       buffer.set_slot("exp_avg");
       *plan.mutable_programs(0)->add_buffers() = buffer;
     },
     "the ranks of grid 1 step the parameter, not these"},
    {"ParameterElsewhere",
     [](auto& plan) { plan.mutable_parameters(0)->mutable_placements(0)->set_grid(1); },
     "(parameter 'w'): the parameter has no placement on the program's grid"},
    {"StageWithoutNumber", [](auto& plan) { SegmentOf(plan, 0, "eval.0").set_name("eval"); },
     "program 0, segment 'eval': not the name of a segment of a stage"},
    {"StageOfAnotherKind", [](auto& plan) { SegmentOf(plan, 0, "eval.0").set_name("sideward.0"); },
     "program 0, segment 'sideward.0': not the name of a segment of a stage"},
    {"StageWithZeros", [](auto& plan) { SegmentOf(plan, 0, "eval.0").set_name("eval.00"); },
     "program 0, segment 'eval.00': not the name of a segment of a stage"},
    {"EvalElsewhere", [](auto& plan) { SegmentOf(plan, 0, "eval.0").set_name("eval.1"); },
     "program 0 has eval.1, but not forward.1"},
    {"BackwardWholeAndInParts",
     [](auto& plan) { SegmentOf(plan, 0, "eval.0").set_name("backward_input.0"); },
     "program 0 has backward.0 whole and in parts"},
    {"HalfABackward",
     [](auto& plan) { SegmentOf(plan, 0, "backward.0").set_name("backward_weight.0"); },
     "program 0 has backward_weight.0, but not backward_input.0"},
    {"ProgramWithoutUpdate", [](auto& plan) { SegmentOf(plan, 0, "update").set_name("forward.7"); },
     "program 0 has no update"},
    {"StageTwice",
     [](auto& plan) {
       for (auto& segment : *plan.mutable_programs(1)->mutable_segments()) {
         if (segment.name() != "update") segment.mutable_name()->back() = '0';
       }
     },
     "stage 0 is in programs 0 and 1"},
    {"StageMissing",
     [](auto& plan) {
       for (auto& segment : *plan.mutable_programs(1)->mutable_segments()) {
         if (segment.name() != "update") segment.mutable_name()->back() = '2';
       }
     },
     "stage 1 is in no program, but stage 2"},
    {"BackwardBeforeForward",
     [](auto& plan) { SetSchedule(plan, 1, "B0 F0 F1 B1 F2 B2 F3 B3 U0"); },
     "program 1: the schedule has backward.1 of microbatch 0 before its forward.1"},
    {"RunMissing", [](auto& plan) { SetSchedule(plan, 1, "F0 B0 F1 B1 F2 B2 F3 U0"); },
     "program 1: the schedule has backward.1 of 3 microbatches out of 4"},
    {"RunTwice", [](auto& plan) { SetSchedule(plan, 1, "F0 B0 F1 B1 F2 B2 F3 B3 B3 U0"); },
     "program 1: the schedule has backward.1 of microbatch 3 twice"},
    {"EvalInAStep", [](auto& plan) { SetSchedule(plan, 1, "E0 F0 B0 F1 B1 F2 B2 F3 B3 U0"); },
     "program 1: the schedule has eval.1, which is no part of a step"},
    {"UpdateOfAMicrobatch", [](auto& plan) { SetSchedule(plan, 1, "F0 B0 F1 B1 F2 B2 F3 B3 U1"); },
     "program 1: the schedule has update of microbatch 1"},
};
INSTANTIATE_TEST_SUITE_P(Programs, VerifyBadStages, ::testing::ValuesIn(kPrograms), NameOf);

const BadPlan kRings[] = {
    {"RingsOverlap",
     [](auto& plan) {
       BufferOf(plan, 1, plan::STASH, "y").add_copy_offsets(Transfer(plan, 1, "dh").offset());
     },
     "program 1: stash 'y' lies partly in the memory of transfer 'dh'"},
    {"CopiesOfATransferOverlap",
     [](auto& plan) {
       Transfer(plan, 1, "h").set_copy_offsets(0, Transfer(plan, 1, "h").offset());
     },
     "program 1: copies of transfer 'h' lie in the same memory"},
    {"TemporaryInARing",
     [](auto& plan) {
       auto& ring = BufferOf(plan, 1, plan::STASH, "y");
       BufferOf(plan, 1, plan::TEMPORARY, "squares").set_offset(ring.offset() + 64);
     },
     "segment backward.1, instruction 0 (test_multiply) reads stash 'y', whose memory temporary "
     "'squares' has overwritten"},
    // A view says of how many copies.
    {"ViewOfARing",
     [](auto& plan) {
       auto& ring = BufferOf(plan, 1, plan::STASH, "y");
       BufferOf(plan, 1, plan::TEMPORARY, "squares").set_offset(ring.offset());
     },
     "segment backward.1, instruction 0 (test_multiply) reads stash 'y', whose memory temporary "
     "'squares' has overwritten"},
    {"TooFewCopies",
     [](auto& plan) {
       plan = TwoStagePlan({{2, 2}, 4, 4, 4, true});
       KeepCopies(BufferOf(plan, 1, plan::STASH, "y"), 3);
     },
     "segment backward.1, instruction 0 (test_multiply) reads stash 'y' of microbatch 0, but there "
     "is that of microbatch 3"},
    {"TooFewCopiesToReceive",
     [](auto& plan) {
       plan = TwoStagePlan({{2, 2}, 4, 4, 4, true});
       KeepCopies(Transfer(plan, 1, "h"), 3);
     },
     "reads transfer 'h' of microbatch 0, but there is that of microbatch 3"},
    {"SentBeforeItIsWritten",
     [](auto& plan) { SegmentOf(plan, 0, "forward.0").mutable_instructions()->SwapElements(0, 1); },
     "segment forward.0, instruction 0 (send) reads transfer 'h', which nothing has written"},
    {"WrittenWhileItIsSent",
     [](auto& plan) { AddFill(plan, 0, "forward.0", Index(plan, 0, plan::TRANSFER, "h")); },
     "segment forward.0, instruction 2 (fill) writes transfer 'h', which is being sent"},
    {"ReceivedOverWhatIsUsed",
     [](auto& plan) { SegmentOf(plan, 1, "forward.1").mutable_instructions()->SwapElements(0, 1); },
     "segment forward.1, instruction 1 (receive) receives transfer 'h', which the segment has used "
     "before"},
    {"ReceivedAndSent",
     [](auto& plan) {
       SegmentOf(plan, 1, "backward.1")
           .mutable_instructions(1)
           ->mutable_send()
           ->set_buffer(Index(plan, 1, plan::TRANSFER, "h"));
     },
     "transfer 'h' is both received and sent"},
    // The second copy is free before the first.
    {"ReceivedOutOfOrder",
     [](auto& plan) {
       plan = TwoStagePlan({{2, 2}, 4, 4, 4, true});
       KeepCopies(Transfer(plan, 1, "h"), 2);
       SetSchedule(plan, 0, "F0 F1 F2 F3 B1 B0 B2 B3 U0");
       SetSchedule(plan, 1, "F0 F1 B1 B0 F2 F3 B2 B3 U0");
     },
     "program 1, segment forward.1, instruction 0 (receive): in microbatch 3 'h' could be received "
     "before that of the microbatch before it in the schedule"},
};
INSTANTIATE_TEST_SUITE_P(Rings, VerifyBadStages, ::testing::ValuesIn(kRings), NameOf);

const BadPlan kWaits[] = {
    {"OtherOrder",
     [](auto& plan) {
       plan = TwoStagePlan({{2, 2}, 4, 4, 4, true});
       SetSchedule(plan, 1, "F1 B1 F0 B0 F2 B2 F3 B3 U0");
     },
     "channel 'h': what is sent as number 0 is of microbatch 0, but what is received is of "
     "microbatch 1"},
    {"SentInEvalOnly",
     [](auto& plan) {
       SegmentOf(plan, 0, "eval.0")
           .mutable_instructions()
           ->AddAllocated(SegmentOf(plan, 0, "forward.0").mutable_instructions()->ReleaseLast());
       auto& send = *SegmentOf(plan, 0, "eval.0").mutable_instructions(2)->mutable_send();
       AddFill(plan, 0, "eval.0", send.buffer());
       SegmentOf(plan, 0, "eval.0").mutable_instructions()->SwapElements(2, 3);
     },
     "channel 'h' is sent 0 times and received 4 times"},
    // The first stage waits for a gradient, the second one for another microbatch.
    {"EachReceivesFirst",
     [](auto& plan) {
       plan = TwoStagePlan({{2, 2}, 4, 4, 4, true});
       SetSchedule(plan, 0, "F0 F1 B0 F2 B1 F3 B2 B3 U0");
     },
     "the ranks would wait for each other for ever: ranks 0 to 1, in backward.0 of microbatch 0, "
     "instruction 0 (receive), for 'dh' from ranks 2 to 3; ranks 2 to 3, in forward.1 of "
     "microbatch 2, instruction 0 (receive), for 'h' from ranks 0 to 1"},
    // The first stage runs all forwards, but nobody has room for what they send.
    {"EachSendsFirst",
     [](auto& plan) {
       plan = TwoStagePlan({{2, 2}, 4, 5, 2, false});
       for (auto& program : *plan.mutable_programs()) {
         for (auto& buffer : *program.mutable_buffers()) buffer.clear_copy_offsets();
       }
       SetSchedule(plan, 0, "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4 U0");
     },
     "the ranks would wait for each other for ever: ranks 0 to 1, before forward.0 of microbatch "
     "4, for ranks 2 to 3 to take 'h' of microbatch 3; ranks 2 to 3, before backward.1 of "
     "microbatch 2, for ranks 0 to 1 to take 'dh' of microbatch 1"},
};
INSTANTIATE_TEST_SUITE_P(Waits, VerifyBadStages, ::testing::ValuesIn(kWaits), NameOf);

const BadPlan kShardings[] = {
    {"SentOtherwise", [](auto& plan) { plan.mutable_channels(0)->clear_source(); },
     "segment forward.0, instruction 1 (send) sends transfer 'h' ([4, 4] cut [{a0}, {}]), but its "
     "channel is for [2, 4]"},
    {"ReceivedOtherwise", [](auto& plan) { plan.mutable_channels(0)->clear_target(); },
     "segment forward.1, instruction 0 (receive) receives transfer 'h' ([4, 4] cut [{a0}, {}])"},
    {"SentAtAnotherScale",
     [](auto& plan) {
       for (const char* name : {"h", "eval_h"}) Transfer(plan, 0, name).set_scale(2);
     },
     "channel 'h' is sent at the scale 2 and received at the scale 1"},
    {"SentPending",
     [](auto& plan) {
       const int pending = Index(plan, 1, plan::ACCUMULATOR, "loss_sum");
       SegmentOf(plan, 1, "update").mutable_instructions(1)->mutable_copy()->set_source(pending);
     },
     "segment update, instruction 1 (copy)"},
};
INSTANTIATE_TEST_SUITE_P(Shardings, VerifyBadStages, ::testing::ValuesIn(kShardings), NameOf);

// The second grid keeps w too; it gets the new value from the first one.
plan::Plan TiedPlan() {
  plan::Plan plan = TwoStagePlan(kPlan);
  plan.mutable_parameters(0)->add_placements()->set_grid(1);
  const auto add_buffer = [&](int program, plan::BufferKind kind, const std::string& name) {
    auto& target = *plan.mutable_programs(program);
    plan::Buffer buffer = BufferOf(plan, 0, plan::PARAMETER, "w");
    buffer.set_kind(kind);
    buffer.set_name(name);
    if (kind == plan::TRANSFER) buffer.clear_ref();
    buffer.set_offset(target.arena_bytes());
    target.set_arena_bytes(target.arena_bytes() + 64);
    *target.add_buffers() = buffer;
    return target.buffers_size() - 1;
  };
  const auto add_copy = [&](int program, int source, int to) {
    auto* copy = SegmentOf(plan, program, "update").add_instructions()->mutable_copy();
    copy->set_source(source);
    copy->set_target(to);
  };
  const int sent = add_buffer(0, plan::TRANSFER, "sent_w");
  const int received = add_buffer(1, plan::TRANSFER, "received_w");
  const int w = add_buffer(1, plan::PARAMETER, "w");
  auto* channel = plan.add_channels();
  channel->set_name("w");
  channel->set_target_grid(1);
  *channel->mutable_global() = plan.parameters(0).global();
  add_copy(0, Index(plan, 0, plan::PARAMETER, "w"), sent);
  auto* send = SegmentOf(plan, 0, "update").add_instructions()->mutable_send();
  send->set_channel(4);
  send->set_buffer(sent);
  auto* receive = SegmentOf(plan, 1, "update").add_instructions()->mutable_receive();
  receive->set_channel(4);
  receive->set_buffer(received);
  add_copy(1, received, w);
  return plan;
}

TEST(VerifyStages, TakesAParameterOnTwoGrids) { ORIEL_EXPECT_OK(VerifyPlan(TiedPlan())); }

class VerifyBadTies : public ::testing::TestWithParam<BadPlan> {};

TEST_P(VerifyBadTies, SaysWhatIsWrong) { ExpectRefused(TiedPlan(), GetParam()); }

const BadPlan kTies[] = {
    {"NotWritten",
     [](auto& plan) { SegmentOf(plan, 1, "update").mutable_instructions()->RemoveLast(); },
     "program 1: update writes parameter 'w' 0 times, not once"},
    {"OldValue",
     [](auto& plan) {
       auto* instructions = SegmentOf(plan, 0, "update").mutable_instructions();
       for (int i = 5; i > 0; --i) instructions->SwapElements(i, i - 1);
     },
     "program 1, segment update: parameter 'w' becomes what arrives over the channel 'w', which is "
     "not the new value that it has on grid 0"},
    {"SteppedTwice",
     [](auto& plan) {
       auto& update = SegmentOf(plan, 1, "update");
       plan::Instruction step = update.instructions(3);
       const int w = update.instructions(update.instructions_size() - 1).copy().target();
       step.mutable_launch()->set_operands(0, w);
       step.mutable_launch()->set_results(0, w);
       update.mutable_instructions()->RemoveLast();
       *update.add_instructions() = step;
       update.mutable_instructions()->SwapElements(4, update.instructions_size() - 1);
     },
     "parameter 'w' does not become what grid 0, which steps it, sends"},
};
INSTANTIATE_TEST_SUITE_P(Ties, VerifyBadTies, ::testing::ValuesIn(kTies), NameOf);

}  // namespace
}  // namespace oriel::runtime
