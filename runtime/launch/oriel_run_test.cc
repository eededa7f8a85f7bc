// The program as a user runs it, with plans made by hand.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/launch/oriel_run_testing.h"
#include "runtime/train/checkpoint/safetensors.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(OrielRunTest, LossFallsAndIsTheSameOnAllWorlds) {
  Run(Training(1, "one"));
  const auto reference = Metrics("one");
  ASSERT_THAT(reference, SizeIs(20));
  EXPECT_LT(reference[19][1], 0.8 * reference[0][1]);
  for (int64_t ranks : {2, 4}) {
    const std::string name = absl::StrCat("threads", ranks);
    Run(Training(ranks, name, {"-n", absl::StrCat(ranks)}));
    const auto metrics = Metrics(name);
    ASSERT_THAT(metrics, SizeIs(20));
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_NEAR(metrics[i][1], reference[i][1], 1e-5 * reference[i][1]);
      EXPECT_NEAR(metrics[i][2], reference[i][2], 1e-5 * reference[i][2]);
    }
  }
}

TEST_F(OrielRunTest, TwoStagesHaveTheLossesOfOne) {
  Run(Training(1, "one"));
  const auto reference = Metrics("one");
  for (const auto& [model_ranks, loss_ranks] : {std::pair{1, 1}, {2, 1}, {1, 4}}) {
    Run({kProgram, TwoStagePlanFor(model_ranks, loss_ranks), "--data", folder_ / "train",
         "--metrics", folder_ / "two.jsonl"});
    const auto metrics = Metrics("two");
    ASSERT_THAT(metrics, SizeIs(20));
    for (size_t i = 0; i < 20; ++i) {
      EXPECT_NEAR(metrics[i][1], reference[i][1], 1e-5 * reference[i][1]);
      EXPECT_NEAR(metrics[i][2], reference[i][2], 1e-5 * reference[i][2]);
    }
  }
}

TEST_F(OrielRunTest, TwoRunsAreBitwiseEqual) {
  Run(Training(2, "first"));
  Run(Training(2, "second"));
  EXPECT_EQ(Metrics("first"), Metrics("second"));
  EXPECT_THAT(Metrics("first"), SizeIs(20));
}

TEST_F(OrielRunTest, SeedChangesTheOrder) {
  Run(Training(1, "plan"));
  Run(Training(1, "same", {"--seed", "3"}));
  Run(Training(1, "other", {"--seed", "4"}));
  EXPECT_EQ(Metrics("plan"), Metrics("same"));
  EXPECT_NE(Metrics("plan"), Metrics("other"));
}

TEST_F(OrielRunTest, EvaluationAndDumps) {
  const std::string output =
      Run(Training(2, "run",
                   {"--steps", "60", "--eval", folder_ / "eval", "--eval-logits", folder_ / "l.npy",
                    "--dump-parameters", folder_ / "p.safetensors", "--dump-gradients",
                    folder_ / "g.safetensors", "--save-dir", folder_ / "ckpt", "--profile"}));
  const auto json = nlohmann::json::parse(output);
  EXPECT_EQ(json["samples"], 21);
  EXPECT_EQ(json["tokens"], 63);
  EXPECT_EQ(json["step"], 60);
  EXPECT_GT(json["token_accuracy"], 0.6);
  // The same from the checkpoint, on another number of ranks.
  const auto again = nlohmann::json::parse(
      Run(Command(1, {"--eval", folder_ / "eval", "--resume", folder_ / "ckpt"})));
  EXPECT_EQ(again["token_accuracy"], json["token_accuracy"]);
  EXPECT_EQ(again["step"], 60);
  EXPECT_NEAR(again["eval_loss"], json["eval_loss"], 1e-6);
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile parameters,
                             SafetensorsFile::Open(folder_ / "p.safetensors"));
  EXPECT_THAT(parameters.tensors(), SizeIs(2));
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile gradients,
                             SafetensorsFile::Open(folder_ / "g.safetensors"));
  EXPECT_THAT(gradients.tensors(), SizeIs(1));
}

// The files that two stages write, and what they evaluate, are those of one.
TEST_F(OrielRunTest, EvaluationAndDumpsOfTwoStages) {
  const auto run = [&](const std::string& plan, const std::string& name) {
    return nlohmann::json::parse(Run(
        {kProgram, plan, "--data", folder_ / "train", "--eval", folder_ / "eval", "--eval-logits",
         folder_ / (name + ".npy"), "--dump-parameters", folder_ / (name + ".p"),
         "--dump-gradients", folder_ / (name + ".g"), "--save-dir", folder_ / name, "--profile"}));
  };
  const auto one = run(PlanFor(1), "one"), two = run(TwoStagePlanFor(1, 2), "two");
  EXPECT_EQ(two["samples"], 21);
  EXPECT_EQ(two["tokens"], 63);
  EXPECT_EQ(two["token_accuracy"], one["token_accuracy"]);
  EXPECT_NEAR(two["eval_loss"], one["eval_loss"], 1e-5);
  for (const std::string kind : {".p", ".g"}) {
    ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile expected,
                               SafetensorsFile::Open(folder_ / ("one" + kind)));
    ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file,
                               SafetensorsFile::Open(folder_ / ("two" + kind)));
    EXPECT_THAT(file.tensors(), SizeIs(expected.tensors().size()));
    const TensorSpec spec{DType::kF32, {6, 5}};
    std::vector<float> values(30), expected_values(30);
    ORIEL_ASSERT_OK(file.Read("weight", spec, values.data()));
    ORIEL_ASSERT_OK(expected.Read("weight", spec, expected_values.data()));
    for (int i = 0; i < 30; ++i) EXPECT_NEAR(values[i], expected_values[i], 1e-5) << kind;
  }
  // Each evaluates what the other saved as its own.
  for (const auto& [plan, name] : {std::pair{PlanFor(1), "two"}, {TwoStagePlanFor(1, 2), "one"}}) {
    const auto again = nlohmann::json::parse(
        Run({kProgram, plan, "--eval", folder_ / "eval", "--resume", folder_ / name}));
    EXPECT_NEAR(again["eval_loss"], one["eval_loss"], 1e-5);
    EXPECT_EQ(again["step"], 20);
  }
}

TEST_F(OrielRunTest, WrongNumberOfRanks) {
  EXPECT_THAT(Fail(Training(2, "run", {"-n", "3"})),
              AllOf(HasSubstr("linear2.oplan is for 2 ranks, but -n 3 asks for 3"),
                    HasSubstr("oriel compile --world 3")));
}

TEST_F(OrielRunTest, TruncatedPlan) {
  Truncate(PlanFor(1), 10);
  EXPECT_THAT(Fail({kProgram, folder_ / "linear1.oplan", "--data", folder_ / "train"}),
              HasSubstr("linear1.oplan"));
}

TEST_F(OrielRunTest, NoData) {
  EXPECT_THAT(Fail(Command(1, {"--data", folder_ / "none"})),
              HasSubstr("there is no such folder of shards"));
}

TEST_F(OrielRunTest, CheckpointOfAnotherModel) {
  Run(Training(1, "run", {"--save-dir", folder_ / "ckpt"}));
  plan::Plan plan = LinearPlan(1, 8, 2);
  for (auto& state : *plan.mutable_optimizer_states()) state.set_parameter("renamed");
  plan.mutable_parameters(0)->set_name("renamed");
  for (auto& buffer : *plan.mutable_programs(0)->mutable_buffers()) {
    if (buffer.ref() == "weight") buffer.set_ref("renamed");
  }
  ORIEL_ASSERT_OK(WritePlan(plan, folder_ / "other.oplan"));
  EXPECT_THAT(Fail({kProgram, folder_ / "other.oplan", "--data", folder_ / "train", "--resume",
                    folder_ / "ckpt"}),
              AllOf(HasSubstr("is a checkpoint of another model"), HasSubstr("missing: renamed"),
                    HasSubstr("extra: weight")));
}

// The bad sample is read by one rank; the others are in a collective then.
TEST_F(OrielRunTest, BadSampleEndsAllRanks) {
  WriteTar(folder_ / "train/shard-0004.tar", {{"bad.x.npy", NpyBytes({1}, std::vector<float>{1})}});
  EXPECT_THAT(Fail(Training(4, "run")),
              ContainsRegex("oriel-run: error: rank [0-3]: step [0-9]+: .*train/shard-0004.tar: "
                            "sample bad: x has shape \\[1\\], the plan expects \\[4, 6\\]"));
}

TEST_F(OrielRunTest, InterruptWritesACheckpointAndResumes) {
  const std::vector<std::string> endless = {"--steps",        "1000000000",   "--save-dir",
                                            folder_ / "ckpt", "--save-every", "20"};
  TestProgram program(Training(2, "run", endless));
  ASSERT_TRUE(WaitForFile(folder_ / "ckpt/step-00000020/index.json")) << program.errors();
  kill(program.pid(), SIGINT);
  EXPECT_EQ(program.Wait(10), kExitInterrupted);
  EXPECT_THAT(program.errors(),
              ContainsRegex("interrupted after step ([0-9]+); checkpoint .*/ckpt/step-[0-9]+; go "
                            "on with --resume .*/ckpt"));
  const size_t done = Metrics("run").size();
  const std::string last = absl::StrCat(done + 10);
  Run(Training(2, "run", {"--steps", last, "--resume", folder_ / "ckpt"}));
  Run(Training(2, "whole", {"--steps", last}));
  EXPECT_THAT(Metrics("whole"), SizeIs(done + 10));
  EXPECT_EQ(Metrics("run"), Metrics("whole"));
}

// One rank finds it, and the error is told once.
TEST_F(OrielRunTest, DamagedCheckpoint) {
  Run(Training(2, "run", {"--steps", "3", "--save-dir", folder_ / "ckpt"}));
  const std::string file = folder_ / "ckpt/step-00000003/optimizer.safetensors";
  std::string bytes = ReadFileBytes(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteFileBytes(file, bytes);
  const std::string errors =
      Fail(Training(2, "run", {"--steps", "5", "--resume", folder_ / "ckpt"}));
  EXPECT_THAT(errors, ContainsRegex("oriel-run: error: rank [01]: .*/optimizer.safetensors is "
                                    "damaged: .* has the checksum"));
  EXPECT_THAT(errors, Not(HasSubstr("another rank")));
  Run(Training(2, "new", {"--steps", "5", "--init-from", folder_ / "ckpt"}));
}

// The second one waits for the first, and goes on from the last checkpoint that it saves.
TEST_F(OrielRunTest, TwoRunsDoNotSaveIntoOneFolder) {
  const std::vector<std::string> saves = {"--save-dir", folder_ / "ckpt", "--save-every", "20"};
  std::vector<std::string> endless = saves;
  endless.insert(endless.end(), {"--steps", "1000000000"});
  TestProgram first(Training(2, "first", endless));
  ASSERT_TRUE(WaitForFile(folder_ / "ckpt/step-00000020/index.json")) << first.errors();
  std::vector<std::string> resumes = saves;
  resumes.insert(resumes.end(), {"--resume", folder_ / "ckpt", "--steps", "1000000000"});
  TestProgram second(Training(1, "second", resumes));
  for (int i = 0; i < 3000; ++i) {
    if (absl::StrContains(second.errors(), "waiting for another run (process ")) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_THAT(second.errors(), HasSubstr("waiting for another run (process "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "second.jsonl"));
  kill(first.pid(), SIGINT);
  EXPECT_EQ(first.Wait(10), kExitInterrupted);
  ASSERT_TRUE(WaitForFile(folder_ / "second.jsonl")) << second.errors();
  kill(second.pid(), SIGINT);
  EXPECT_EQ(second.Wait(30), kExitInterrupted);
  const std::string last = absl::StrCat("(step ", Metrics("first").size(), ")");
  EXPECT_THAT(second.errors(), AllOf(HasSubstr("resuming from "), HasSubstr(last)));
}

TEST_F(OrielRunTest, TracedStepsMustBeAmongThoseOfTheRun) {
  EXPECT_THAT(
      Fail(Training(1, "run",
                    {"--steps", "3", "--trace", folder_ / "trace.json", "--trace-steps", "50-60"})),
      HasSubstr("--trace-steps 50-60: this run trains the steps 1 to 3"));
}

// timeout(1) signals the process, and then its group.
TEST_F(OrielRunTest, TwoSignalsAtOnceAreOneInterrupt) {
  TestProgram program(Training(1, "run", {"--steps", "1000000000"}));
  ASSERT_TRUE(WaitForFile(folder_ / "run.jsonl"));
  kill(program.pid(), SIGSTOP);
  kill(program.pid(), SIGINT);
  kill(program.pid(), SIGTERM);
  kill(program.pid(), SIGCONT);
  EXPECT_EQ(program.Wait(10), kExitInterrupted);
  EXPECT_THAT(program.errors(), ContainsRegex("interrupted after step [0-9]+; no checkpoint"));
}

TEST_F(OrielRunTest, FirstOpWithANanIsNamed) {
  std::vector<float> weight(30, 1), bias(5);
  weight[1] = std::numeric_limits<float>::quiet_NaN();
  ORIEL_ASSERT_OK(
      WriteSafetensors(folder_ / "weights.safetensors",
                       std::vector<NamedTensor>{{"weight", {DType::kF32, {6, 5}}, weight.data()},
                                                {"bias", {DType::kF32, {5}}, bias.data()}}));
  EXPECT_THAT(Fail(Training(1, "checked", {"--check-nan"})),
              ContainsRegex("step 1: rank 0, segment forward, instruction [0-9]+ \\(linear\\): the "
                            "result is the first with a NaN: element [0-9]+ of .*from onnx node "
                            "/linear/Gemm.*the microbatch's samples"));
  EXPECT_THAT(Fail(Training(1, "unchecked", {"--steps", "2"})),
              ContainsRegex("the loss of step 1 is not finite.*--check-nan"));
  Run(Training(1, "allowed", {"--steps", "2", "--allow-nan"}));
}

TEST_F(OrielRunTest, PlanForAnotherDevice) {
  EXPECT_THAT(Fail(Training(1, "run", {"--device", "cuda"})),
              HasSubstr("the plan is compiled for the device host, but --device asks for cuda; "
                        "compile it again: oriel compile --device cuda"));
  Run(Training(1, "run", {"--device", "host", "--steps", "1"}));
}

// Whatever this machine has, no device is to be seen.
TEST_F(OrielRunTest, PlanForCudaWithoutADevice) {
  plan::Plan plan = LinearPlan(1, 8, 2);
  plan.mutable_device()->set_kind("cuda");
  ORIEL_ASSERT_OK(WritePlan(plan, folder_ / "cuda.oplan"));
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  const std::string error = Fail({kProgram, folder_ / "cuda.oplan", "--data", folder_ / "train"});
  unsetenv("CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(error,
              AnyOf(HasSubstr("no CUDA backend: "), HasSubstr("driver"), HasSubstr("device")));
  EXPECT_THAT(error, HasSubstr("oriel-run: error: "));
  EXPECT_THAT(error, Not(HasSubstr("\n\n")));
}

TEST_F(OrielRunTest, DoctorNeedsNoPlan) {
  EXPECT_THAT(Run({kProgram, "--doctor"}), AllOf(HasSubstr("memory"), HasSubstr("CUDA plugin")));
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  EXPECT_THAT(Fail({kProgram, "--doctor", "--device", "cuda"}),
              HasSubstr("what was asked for can't run here without: "));
  unsetenv("CUDA_VISIBLE_DEVICES");
}

}  // namespace
}  // namespace oriel::runtime
