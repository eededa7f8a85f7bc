#include "runtime/train/trainer.h"

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/in_process.h"
#include "runtime/train/checkpoint/best_checkpoint.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/data/npy.h"
#include "runtime/train/data_testing.h"
#include "runtime/train/evaluator.h"
#include "runtime/train/toy_executor_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::_;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class TrainerTest : public ::testing::Test {
 protected:
  struct Run {
    int64_t ranks = 1;       // with samples of their own
    int64_t copies = 1;      // of each, with the same samples
    int64_t last_ranks = 0;  // of a second grid, which has the labels; 0: there is none
    int64_t micro_batch = 8;
    TrainerOptions options;
    int64_t plan_steps = 0;  // over which the rate falls; 0: those of the options
    double rate = 0.05;      // at first
    std::string resume;
    int64_t interrupt_rank = -1;  // from the second question on
    bool evaluate = false;
    bool global_sums = false;  // of eval
    std::string logits;
    std::string data;
    ToyExecutor::Memory memory = ToyExecutor::Memory::kHost;
  };
  struct Result {
    absl::Status status;
    TrainingOutcome outcome;
    Evaluation evaluation;
  };

  TrainerTest() {
    WriteToyWeights(folder_.path());
    WriteCountingShards(folder_ / "train", 35, 10);
    WriteCountingShards(folder_ / "eval", 11, 10);
  }

  Result RunRank(const Run& run, const plan::Plan& plan, int64_t rank, Communicator* world) {
    Result result;
    result.status = [&]() -> absl::Status {
      ToyExecutor executor(plan, rank, world, run.memory);
      ORIEL_ASSIGN_OR_RETURN(ModelState state, ModelState::Bind(plan, rank, executor));
      ORIEL_RETURN_IF_ERROR(state.Initialize(folder_.path(), 1));
      std::optional<CheckpointReader> checkpoint;
      if (!run.resume.empty()) {
        ORIEL_ASSIGN_OR_RETURN(checkpoint, CheckpointReader::Open(run.resume));
        ORIEL_RETURN_IF_ERROR(state.Restore(*checkpoint, true));
      }
      int asked = 0;
      RankContext context;
      context.plan = &plan;
      context.rank = rank;
      context.world = world;
      context.executor = &executor;
      context.interrupted = [&] { return ++asked > 1 && rank == run.interrupt_rank; };
      ORIEL_ASSIGN_OR_RETURN(ShardIndex train,
                             ShardIndex::Read(run.data.empty() ? folder_ / "train" : run.data));
      ORIEL_ASSIGN_OR_RETURN(
          result.outcome,
          Train(context, state, std::make_shared<const ShardIndex>(std::move(train)),
                checkpoint ? &checkpoint->index().progress : nullptr, run.options));
      if (!run.evaluate) return absl::OkStatus();
      ORIEL_ASSIGN_OR_RETURN(ShardIndex eval, ShardIndex::Read(folder_ / "eval"));
      ORIEL_ASSIGN_OR_RETURN(
          result.evaluation,
          Evaluate(context, std::make_shared<const ShardIndex>(std::move(eval)), run.logits));
      return absl::OkStatus();
    }();
    if (!result.status.ok() && world != nullptr) world->Abort(result.status);
    return result;
  }

  // The result of each rank.
  std::vector<Result> Launch(const Run& run) {
    const int64_t steps = run.plan_steps > 0 ? run.plan_steps : run.options.steps;
    plan::Plan plan = run.last_ranks == 0 ? MakeToyPlan(run.ranks, 8, run.micro_batch, steps)
                                          : MakeTwoGridToyPlan(run.ranks, run.last_ranks, 8,
                                                               run.micro_batch, steps);
    plan.mutable_training()->mutable_learning_rate()->set_peak(run.rate);
    if (run.copies > 1) AddCopies(run.copies, &plan);
    for (plan::Buffer& buffer : *plan.mutable_programs(0)->mutable_buffers()) {
      if (run.global_sums && buffer.kind() == plan::OUTPUT) {
        buffer.mutable_sharding()->clear_partial();
      }
    }
    const int64_t ranks = plan.world_size();
    std::vector<Result> results(ranks);
    if (ranks == 1) {
      results[0] = RunRank(run, plan, 0, nullptr);
      return results;
    }
    std::vector<std::unique_ptr<Communicator>> world = MakeInProcessWorld(ranks);
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back(
          [&, rank] { results[rank] = RunRank(run, plan, rank, world[rank].get()); });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }

  std::vector<nlohmann::json> Lines(const std::string& path) {
    std::vector<nlohmann::json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  // A run that writes metrics to NAME.jsonl and saves to NAME/.
  Run Named(const std::string& name, int64_t steps) {
    Run run;
    run.options.steps = steps;
    run.options.seed = 5;
    run.options.metrics = folder_ / (name + ".jsonl");
    run.options.save_dir = folder_ / name;
    return run;
  }

  TempFolder folder_;
};

TEST_F(TrainerTest, LossFallsAndMetricsTell) {
  Run run = Named("run", 60);
  const std::vector<Result> results = Launch(run);
  ORIEL_ASSERT_OK(results[0].status);
  EXPECT_EQ(results[0].outcome.step, 60);
  const std::vector<nlohmann::json> lines = Lines(run.options.metrics);
  ASSERT_EQ(lines.size(), 60u);
  EXPECT_EQ(lines[0]["step"], 1);
  EXPECT_DOUBLE_EQ(lines[29]["lr"], 0.025);
  EXPECT_GT(lines[0]["tokens_per_second"].get<double>(), 0);
  EXPECT_LT(lines[59]["loss"].get<double>(), 0.5 * lines[0]["loss"].get<double>());
}

TEST_F(TrainerTest, RanksAndMicrobatchesDoNotChangeTheLosses) {
  Run reference = Named("reference", 12);
  ORIEL_ASSERT_OK(Launch(reference)[0].status);
  const auto expected = Lines(reference.options.metrics);
  for (auto [ranks, micro] : {std::pair{1, 2}, {2, 4}, {4, 1}}) {
    Run run = Named("other", 12);
    run.ranks = ranks;
    run.micro_batch = micro;
    for (const Result& result : Launch(run)) ORIEL_ASSERT_OK(result.status);
    const auto lines = Lines(run.options.metrics);
    ASSERT_EQ(lines.size(), expected.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_NEAR(lines[i]["loss"], expected[i]["loss"], 1e-5 * expected[i]["loss"].get<double>());
      EXPECT_EQ(lines[i]["lr"], expected[i]["lr"]);
    }
  }
}

// The first step is finite, but what its update makes of the weights is too large.
TEST_F(TrainerTest, DivergedStepIsNotSaved) {
  Run run = Named("run", 6);
  run.ranks = 2;
  run.micro_batch = 2;
  run.rate = 1e30;
  run.options.save_every = 1;
  const std::vector<Result> results = Launch(run);
  EXPECT_THAT(
      results[0].status,
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("of step 2 is not finite"),
                     HasSubstr("the last checkpoint is " + run.options.save_dir + "/step-00000001"),
                     HasSubstr("--allow-nan"))));
  EXPECT_THAT(results[1].status, StatusIs(absl::StatusCode::kAborted, HasSubstr("step 2")));
  EXPECT_FALSE(std::filesystem::exists(run.options.save_dir + "/step-00000002"));
  EXPECT_EQ(Lines(run.options.metrics).size(), 2u);
}

TEST_F(TrainerTest, DivergedRunGoesOnIfAllowed) {
  Run run = Named("run", 6);
  run.rate = 1e30;
  run.options.allow_nan = true;
  const std::vector<Result> results = Launch(run);
  ORIEL_ASSERT_OK(results[0].status);
  EXPECT_EQ(results[0].outcome.step, 6);
  EXPECT_TRUE(Lines(run.options.metrics)[5]["loss"].is_null());
}

// Of a device, the host reads and writes the same.
TEST_F(TrainerTest, DeviceTrainsAsTheHostDoes) {
  std::vector<std::string> saved, gradients, logits;
  std::vector<std::vector<nlohmann::json>> lines;
  for (const auto memory : {ToyExecutor::Memory::kHost, ToyExecutor::Memory::kDevice}) {
    Run run = Named(memory == ToyExecutor::Memory::kHost ? "host" : "device", 6);
    run.ranks = 2;
    run.micro_batch = 2;
    run.memory = memory;
    run.evaluate = true;
    run.logits = folder_ / "logits.npy";
    run.options.dump_gradients = folder_ / "gradients.safetensors";
    const std::vector<Result> results = Launch(run);
    for (const Result& result : results) ORIEL_ASSERT_OK(result.status);
    EXPECT_EQ(results[0].evaluation.samples, 11);
    saved.push_back(ReadFileBytes(results[0].outcome.checkpoint + "/model.safetensors"));
    gradients.push_back(ReadFileBytes(run.options.dump_gradients));
    logits.push_back(ReadFileBytes(run.logits));
    lines.push_back(Lines(run.options.metrics));
  }
  EXPECT_EQ(saved[0], saved[1]);
  EXPECT_EQ(gradients[0], gradients[1]);
  EXPECT_EQ(logits[0], logits[1]);
  ASSERT_EQ(lines[1].size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(lines[0][i]["loss"], lines[1][i]["loss"]);
    EXPECT_EQ(lines[0][i]["grad_norm"], lines[1][i]["grad_norm"]);
  }
}

// Grids cut the samples into different shares, and several microbatches are in flight.
TEST_F(TrainerTest, GridsDoNotChangeTheLosses) {
  Run reference = Named("reference", 12);
  ORIEL_ASSERT_OK(Launch(reference)[0].status);
  const auto expected = Lines(reference.options.metrics);
  for (auto [ranks, last_ranks, micro] :
       {std::tuple{1, 1, 2}, {1, 1, 8}, {2, 1, 2}, {1, 4, 4}, {4, 2, 2}, {2, 2, 1}}) {
    Run run = Named("other", 12);
    run.ranks = ranks;
    run.last_ranks = last_ranks;
    run.micro_batch = micro;
    for (const Result& result : Launch(run)) {
      ORIEL_ASSERT_OK(result.status);
      EXPECT_EQ(result.outcome.step, 12);
    }
    const auto lines = Lines(run.options.metrics);
    ASSERT_EQ(lines.size(), expected.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      for (const char* key : {"loss", "grad_norm"}) {
        EXPECT_NEAR(lines[i][key], expected[i][key], 1e-5 * expected[i][key].get<double>());
      }
      EXPECT_EQ(lines[i]["lr"], expected[i]["lr"]);
    }
  }
}

TEST_F(TrainerTest, CheckpointOfTwoGridsGoesOnOnOneAndBack) {
  Run whole = Named("whole", 12);
  whole.micro_batch = 2;
  ORIEL_ASSERT_OK(Launch(whole)[0].status);
  const auto expected = Lines(whole.options.metrics);
  Run run = Named("run", 12);
  run.plan_steps = 12;
  run.micro_batch = 2;
  for (const auto& [last_ranks, steps] : {std::pair{2, 4}, {0, 8}, {1, 12}}) {
    run.last_ranks = last_ranks;
    run.options.steps = steps;
    for (const Result& result : Launch(run)) ORIEL_ASSERT_OK(result.status);
    run.resume = folder_ / "run";
  }
  const auto lines = Lines(run.options.metrics);
  ASSERT_EQ(lines.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(lines[i]["loss"], expected[i]["loss"], 1e-5 * expected[i]["loss"].get<double>());
  }
}

// Bit for bit, from a checkpoint in the middle of the second epoch.
TEST_F(TrainerTest, ResumedRunIsTheUninterruptedOne) {
  for (const auto& [ranks, last_ranks] : {std::pair{1, 0}, {2, 0}, {2, 1}}) {
    Run whole = Named("whole", 12);
    whole.ranks = ranks;
    whole.last_ranks = last_ranks;
    whole.micro_batch = 2;
    whole.options.save_every = 6;
    for (const Result& result : Launch(whole)) ORIEL_ASSERT_OK(result.status);
    Run rest = whole;
    rest.resume = folder_ / "whole/step-00000006";
    rest.options.save_dir = folder_ / "rest";
    rest.options.metrics = folder_ / "rest.jsonl";
    for (const Result& result : Launch(rest)) ORIEL_ASSERT_OK(result.status);
    const auto expected = Lines(whole.options.metrics), lines = Lines(rest.options.metrics);
    ASSERT_EQ(lines.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(lines[i]["step"], i + 7);
      EXPECT_EQ(lines[i]["loss"], expected[i + 6]["loss"]);
      EXPECT_EQ(lines[i]["grad_norm"], expected[i + 6]["grad_norm"]);
    }
    const std::string last = "/step-00000012/";
    for (const auto& entry : std::filesystem::directory_iterator((folder_ / "whole") + last)) {
      const std::string file = entry.path().filename();
      EXPECT_EQ(ReadFileBytes((folder_ / "rest") + last + file), ReadFileBytes(entry.path()));
    }
  }
}

TEST_F(TrainerTest, OldCheckpointsGo) {
  Run run = Named("run", 5);
  run.options.save_every = 2;
  run.options.keep = 2;
  ORIEL_ASSERT_OK(Launch(run)[0].status);
  for (const auto& [step, is_there] : {std::pair{2, false}, {4, true}, {5, true}}) {
    EXPECT_EQ(std::filesystem::exists(absl::StrCat(run.options.save_dir, "/step-0000000", step)),
              is_there);
  }
}

// Behind steps, but not the last one; one that is interrupted ends the training, with a checkpoint.
TEST_F(TrainerTest, EvaluatesInBetween) {
  for (const int64_t interrupted : {0, 4}) {
    Run run = Named(absl::StrCat("run", interrupted), 6);
    std::vector<int64_t> steps;
    run.options.eval_every = 2;
    run.options.evaluate = [&](int64_t step) -> absl::StatusOr<std::optional<double>> {
      steps.push_back(step);
      return step == interrupted ? std::optional<double>() : 1.0;
    };
    const Result result = Launch(run)[0];
    ORIEL_ASSERT_OK(result.status);
    EXPECT_THAT(steps, ElementsAre(2, 4));
    EXPECT_EQ(result.outcome.interrupted, interrupted > 0);
    EXPECT_EQ(result.outcome.step, interrupted > 0 ? 4 : 6);
    EXPECT_THAT(result.outcome.checkpoint, HasSubstr(interrupted > 0 ? "00004" : "00006"));
  }
}

// The lowest loss, not the last one nor a NaN; what another run has left does not count.
TEST_F(TrainerTest, TheBestCheckpointStays) {
  const std::map<int64_t, double> losses = {{2, HUGE_VAL}, {4, 1}, {6, std::nan("")}, {8, 2}};
  Run run = Named("best", 9);
  run.ranks = 2;
  run.micro_batch = 4;
  run.options.save_every = 3;
  run.options.keep = 1;
  run.options.eval_every = 2;
  run.options.keep_best = true;
  run.options.evaluate = [&](int64_t step) -> absl::StatusOr<std::optional<double>> {
    return std::optional(losses.at(step));
  };
  const std::string& folder = run.options.save_dir;
  std::filesystem::create_directories(folder);
  ORIEL_ASSERT_OK(WriteBestCheckpoint(folder, {7, 0.5}));
  for (const Result& result : Launch(run)) ORIEL_ASSERT_OK(result.status);
  ORIEL_ASSERT_OK_AND_ASSIGN(const auto best, FindBestCheckpoint(folder, 9));
  ASSERT_TRUE(best.has_value());
  EXPECT_EQ(best->step, 4);
  EXPECT_EQ(best->loss, 1);
  ORIEL_ASSERT_OK_AND_ASSIGN(const auto checkpoints, CheckpointsIn(folder));
  EXPECT_THAT(checkpoints, ElementsAre(Pair(4, _), Pair(9, _)));
}

TEST_F(TrainerTest, InterruptOfOneRankStopsAllAtTheSameStep) {
  for (const auto& [ranks, last_ranks] : {std::pair{4, 0}, {2, 2}}) {
    Run run = Named("run", 1000);
    run.ranks = ranks;
    run.last_ranks = last_ranks;
    run.micro_batch = 1;
    run.interrupt_rank = 3;
    for (const Result& result : Launch(run)) {
      ORIEL_ASSERT_OK(result.status);
      EXPECT_TRUE(result.outcome.interrupted);
      EXPECT_EQ(result.outcome.step, 2);
    }
  }
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/step-00000002/index.json"));
}

TEST_F(TrainerTest, OtherDataStartsANewEpoch) {
  Run run = Named("run", 2);
  ORIEL_ASSERT_OK(Launch(run)[0].status);
  WriteCountingShards(folder_ / "more", 50, 10);
  run.data = folder_ / "more";
  run.resume = folder_ / "run";
  run.options.steps = 3;
  ORIEL_ASSERT_OK(Launch(run)[0].status);
  ORIEL_ASSERT_OK_AND_ASSIGN(CheckpointReader reader, CheckpointReader::Open(folder_ / "run"));
  EXPECT_EQ(reader.index().progress.position, (DataPosition{1, 1}));
  EXPECT_EQ(reader.index().progress.samples, 50);
}

// Samples of a shard, all good but the one at place 6: without labels, or with one out of bounds.
TarMembers SamplesWithABadOne(std::optional<int64_t> label) {
  TarMembers members;
  for (int64_t i = 0; i < 8; ++i) {
    const std::string key = std::to_string(i);
    members.emplace_back(key + ".x.npy", NpyBytes({3}, std::vector<float>{1, 2, 3}));
    if (i == 6 && !label) continue;
    const std::vector<int64_t> labels = {i == 6 ? *label : i, 2};
    members.emplace_back(key + ".labels.npy", NpyBytes({2}, labels));
  }
  return members;
}

// Place 6 of a batch of 8 belongs to the last of 4 ranks.
TEST_F(TrainerTest, BadSampleOfOneRankNamesStepAndSample) {
  std::filesystem::create_directories(folder_ / "bad");
  WriteTar(folder_ / "bad/shard-0000.tar", SamplesWithABadOne(std::nullopt));
  Run run = Named("run", 5);
  run.ranks = 4;
  run.micro_batch = 2;
  run.options.shuffle = false;
  run.data = folder_ / "bad";
  const std::vector<Result> results = Launch(run);
  EXPECT_THAT(results[3].status, StatusIs(absl::StatusCode::kNotFound,
                                          HasSubstr("step 1: " + (folder_ / "bad") +
                                                    "/shard-0000.tar: sample 6: has no labels")));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(absl::IsAborted(results[rank].status)) << results[rank].status;
  }
}

// Only the grid that uses the labels reads them, here ranks 1 (samples 0 to 3) and 2.
TEST_F(TrainerTest, GridThatReadsABadSampleNamesIt) {
  std::filesystem::create_directories(folder_ / "bad");
  Run run = Named("run", 5);
  run.last_ranks = 2;
  run.options.shuffle = false;
  run.data = folder_ / "bad";
  const std::string shard = run.data + "/shard-0000.tar";
  WriteTar(shard, SamplesWithABadOne(std::nullopt));
  std::vector<Result> results = Launch(run);
  EXPECT_THAT(results[2].status,
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("step 1: " + shard + ": sample 6: has no labels")));
  for (const int rank : {0, 1}) EXPECT_TRUE(absl::IsAborted(results[rank].status));

  WriteTar(shard, SamplesWithABadOne(5000));
  results = Launch(run);
  EXPECT_THAT(results[2].status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("step 1: sample 2 has the label 5000; the microbatch's samples: "
                                 "0: " +
                                 shard + ": sample 4; 1: ")));
  for (const int rank : {0, 1}) EXPECT_TRUE(absl::IsAborted(results[rank].status));
}

// The gradient by finite differences of the loss that the first step reports.
TEST_F(TrainerTest, DumpedGradients) {
  for (const auto& [ranks, last_ranks] : {std::pair{1, 0}, {4, 0}, {2, 4}, {1, 2}}) {
    Run run = Named("run", 1);
    run.ranks = ranks;
    run.last_ranks = last_ranks;
    run.micro_batch = 2;
    run.options.dump_gradients = folder_ / "gradients.safetensors";
    for (const Result& result : Launch(run)) ORIEL_ASSERT_OK(result.status);
    ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file,
                               SafetensorsFile::Open(run.options.dump_gradients));
    ASSERT_EQ(file.tensors().size(), 1u);
    float gradient[3];
    ORIEL_ASSERT_OK(file.Read("w", {DType::kF32, {3}}, gradient));
    const double norm = std::hypot(gradient[0], gradient[1], gradient[2]);
    EXPECT_NEAR(norm, Lines(run.options.metrics)[0]["grad_norm"], 1e-6 * norm);
  }
}

// Ranks with the same samples, as tensor-parallel ones are: the gradient is that of one of them.
TEST_F(TrainerTest, CopiesDoNotChangeTheGradient) {
  std::vector<std::string> dumps;
  for (const int64_t copies : {1, 2, 3}) {
    Run run = Named("run", 1);
    run.ranks = 2;
    run.copies = copies;
    run.micro_batch = 2;
    run.options.dump_gradients = folder_ / "gradients.safetensors";
    for (const Result& result : Launch(run)) ORIEL_ASSERT_OK(result.status);
    dumps.push_back(ReadFileBytes(run.options.dump_gradients));
    EXPECT_EQ(dumps.back(), dumps[0]);
  }
}

// The toy predicts 0.375 i + 0.75 before training, so of the labels 0..10 it gets 1 and 2 right.
TEST_F(TrainerTest, EvaluationCountsEachSampleOnce) {
  std::vector<std::string> dumps;
  for (auto [ranks, micro, copies, global_sums, last_ranks] : {std::tuple{1, 8, 1, false, 0},
                                                               {1, 2, 1, true, 0},
                                                               {2, 2, 1, false, 0},
                                                               {4, 1, 1, true, 0},
                                                               {2, 2, 2, false, 0},
                                                               {2, 1, 3, true, 0},
                                                               {1, 8, 4, true, 0},
                                                               {1, 2, 1, false, 1},
                                                               {2, 2, 1, false, 4},
                                                               {4, 8, 1, false, 1}}) {
    Run run = Named("run", 0);
    run.ranks = ranks;
    run.micro_batch = micro;
    run.copies = copies;
    run.global_sums = global_sums;
    run.last_ranks = last_ranks;
    run.evaluate = true;
    run.logits = folder_ / "logits.npy";
    for (const Result& result : Launch(run)) {
      ORIEL_ASSERT_OK(result.status);
      EXPECT_EQ(result.evaluation.samples, 11);
      EXPECT_EQ(result.evaluation.tokens, 11);
      double loss = 0;
      for (int i = 0; i < 11; ++i) loss += std::pow(0.375 * i + 0.75 - i, 2) * 1e-3 / 11;
      EXPECT_NEAR(result.evaluation.loss, loss, 1e-6 * loss);
      EXPECT_DOUBLE_EQ(result.evaluation.token_accuracy, 2.0 / 11);
      EXPECT_DOUBLE_EQ(result.evaluation.exact_match, 2.0 / 11);
    }
    const std::string bytes = ReadFileBytes(run.logits);
    ORIEL_ASSERT_OK_AND_ASSIGN(NpyHeader header,
                               ParseNpy(bytes.data(), static_cast<int64_t>(bytes.size())));
    EXPECT_THAT(header.spec.shape, ElementsAre(11, 2, 1));
    dumps.push_back(bytes);
    EXPECT_EQ(bytes, dumps[0]);
  }
}

TEST(EvaluationTest, WithoutTokensThereIsNoLoss) {
  Evaluation evaluation;
  evaluation.samples = 3;
  EXPECT_EQ(FormatEvaluation(evaluation),
            "eval: no label of the 3 samples counts, so there is no loss");
  EXPECT_EQ(
      EncodeEvaluation(evaluation, 7),
      R"({"eval_loss":null,"token_accuracy":null,"exact_match":null,"samples":3,"tokens":0,"step":7})");
}

TEST_F(TrainerTest, PlanWithoutEval) {
  plan::Plan plan = MakeToyPlan(1, 8, 8, 1);
  plan.mutable_programs(0)->mutable_segments()->RemoveLast();
  ToyExecutor executor(plan, 0, nullptr);
  RankContext context;
  context.plan = &plan;
  context.executor = &executor;
  absl::StatusOr<ShardIndex> eval = ShardIndex::Read(folder_ / "eval");
  ASSERT_TRUE(eval.ok()) << eval.status();
  EXPECT_THAT(Evaluate(context, std::make_shared<const ShardIndex>(*std::move(eval)), ""),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no eval segment")));
}

TEST(CountLabelsTest, ShiftAndIgnoredLabels) {
  const int64_t labels[] = {5, 1, -9, 2, /**/ -9, -9, -9, -9, /**/ -9, 3, 4, -9};
  const int64_t predictions[] = {0, 1, 7, 2, /**/ 0, 0, 0, 0, /**/ 0, 3, 9, 9};
  const LabelCounts all = CountLabels(labels, predictions, 3, 4, 0, -9);
  EXPECT_EQ(all.tokens, 5);
  EXPECT_EQ(all.right_tokens, 3);
  EXPECT_EQ(all.exact_samples, 0);
  const LabelCounts shifted = CountLabels(labels, predictions, 3, 4, 1, -9);
  EXPECT_EQ(shifted.tokens, 4);
  EXPECT_EQ(shifted.labelled_samples, 2);
  EXPECT_EQ(shifted.exact_samples, 1);
}

TEST_F(TrainerTest, InitialWeightsMissingOrOfAnotherShape) {
  plan::Plan plan = MakeToyPlan(1, 8, 8, 1);
  ToyExecutor executor(plan, 0, nullptr);
  ORIEL_ASSERT_OK_AND_ASSIGN(ModelState state, ModelState::Bind(plan, 0, executor));
  EXPECT_THAT(state.Initialize(folder_ / "none", 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("initial weights: ")));
  plan.mutable_parameters(0)->mutable_initial()->set_tensor("bias");
  EXPECT_THAT(state.Initialize(folder_.path(), 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"bias\" is f32[1], expected f32[3]")));
}

}  // namespace
}  // namespace oriel::runtime
