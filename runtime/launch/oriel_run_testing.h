// Runs of the program with plans made by hand, as a user starts them.
#ifndef ORIEL_RUNTIME_LAUNCH_ORIEL_RUN_TESTING_H_
#define ORIEL_RUNTIME_LAUNCH_ORIEL_RUN_TESTING_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"
#include "runtime/launch/linear_plan_testing.h"
#include "runtime/launch/options.h"
#include "runtime/launch/program_testing.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/verify.h"
#include "runtime/train/data_testing.h"

namespace oriel::runtime {

inline constexpr char kProgram[] = ORIEL_RUN_PROGRAM;

class OrielRunTest : public ::testing::Test {
 protected:
  OrielRunTest() {
    // For mpirun called by the tests themselves; the program sets them for its own.
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0);
    setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
    WriteLinearWeights(folder_.path());
    WriteLinearShards(folder_ / "train", 70, 20);
    WriteLinearShards(folder_ / "eval", 21, 20);
  }

  // The path of a plan whose global batch is 16.
  std::string PlanFor(int64_t ranks) {
    const std::string path = folder_ / absl::StrCat("linear", ranks, ".oplan");
    const plan::Plan plan = LinearPlan(ranks, 8 / ranks, 2);
    EXPECT_THAT(VerifyPlan(plan), IsOk());
    EXPECT_THAT(WritePlan(plan, path), IsOk());
    return path;
  }

  // The same global batch.
  std::string TwoStagePlanFor(int64_t model_ranks, int64_t loss_ranks,
                              int64_t placement_block = 0) {
    const std::string path = folder_ / absl::StrCat("linear", model_ranks, "_", loss_ranks, "_",
                                                    placement_block, ".oplan");
    plan::Plan plan = TwoStageLinearPlan(model_ranks, loss_ranks, 4, 4);
    plan.set_placement_block(placement_block);
    EXPECT_THAT(VerifyPlan(plan), IsOk());
    EXPECT_THAT(WritePlan(plan, path), IsOk());
    return path;
  }

  // Of two stages with two ranks each, which with a placement are processes 0 and 2, 1 and 3.
  std::vector<std::string> TwoStageTraining(int64_t placement_block, const std::string& name,
                                            const std::vector<std::string>& more = {}) {
    std::vector<std::string> command = {kProgram,           TwoStagePlanFor(2, 2, placement_block),
                                        "--data",           folder_ / "train",
                                        "--metrics",        folder_ / (name + ".jsonl"),
                                        "--dump-gradients", folder_ / (name + ".safetensors")};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  std::vector<std::string> Command(int64_t ranks, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {kProgram, PlanFor(ranks)});
    return arguments;
  }
  std::vector<std::string> Training(int64_t ranks, const std::string& name,
                                    const std::vector<std::string>& more = {}) {
    std::vector<std::string> command =
        Command(ranks, {"--data", folder_ / "train", "--metrics", folder_ / (name + ".jsonl")});
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }

  // Runs to the end, which should be a success; returns stdout.
  std::string Run(const std::vector<std::string>& command) {
    TestProgram program(command);
    EXPECT_EQ(program.Wait(), kExitOk) << program.errors();
    return program.output();
  }
  // Runs into an error; returns stderr.
  std::string Fail(const std::vector<std::string>& command, int status = kExitError) {
    TestProgram program(command);
    EXPECT_EQ(program.Wait(), status) << program.errors();
    return program.errors();
  }

  // (step, loss, grad_norm) of each line.
  std::vector<std::vector<double>> Metrics(const std::string& name) {
    std::vector<std::vector<double>> metrics;
    std::ifstream file(folder_ / (name + ".jsonl"));
    for (std::string line; std::getline(file, line);) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_discarded()) break;  // torn by a kill
      metrics.push_back({json["step"], json["loss"], json["grad_norm"]});
    }
    return metrics;
  }

  TempFolder folder_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_ORIEL_RUN_TESTING_H_
