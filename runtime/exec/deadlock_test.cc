// Random pipelines: those that the verifier takes run to their end, and those in which it says that
// ranks would wait for ever do.
#include <chrono>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/base/status_testing.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/executor_testing.h"
#include "runtime/plan/two_stage_plan_testing.h"
#include "runtime/plan/verify.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMicrobatches = 4;

// Forwards and backwards in order, any forward before its backward.
void SetRandomSchedule(plan::Program& program, const std::string& stage, std::mt19937& random) {
  program.clear_schedule();
  int64_t forwards = 0, backwards = 0;
  while (backwards < kMicrobatches) {
    const bool forward = forwards == backwards || (forwards < kMicrobatches && random() % 3 > 0);
    auto* entry = program.add_schedule();
    entry->set_segment((forward ? "forward." : "backward.") + stage);
    entry->set_microbatch(forward ? forwards++ : backwards++);
  }
  program.add_schedule()->set_segment("update");
}

plan::Plan RandomPlan(std::mt19937& random) {
  plan::Plan plan = TwoStagePlan({{1, 1}, 4, kMicrobatches, kMicrobatches, true});
  for (int i = 0; i < plan.programs_size(); ++i) {
    plan::Program& program = *plan.mutable_programs(i);
    SetRandomSchedule(program, std::to_string(i), random);
    for (auto& buffer : *program.mutable_buffers()) {
      if (CopiesOf(buffer) == 1) continue;
      buffer.mutable_copy_offsets()->Truncate(static_cast<int>(random() % kMicrobatches));
    }
  }
  return plan;
}

// Two steps, with an evaluation behind each.
absl::Status RunRank(const plan::Plan& plan, int64_t rank, Communicator* world) {
  ORIEL_ASSIGN_OR_RETURN(auto executor, Executor::Create(plan, rank, world, {}));
  absl::Status status;
  for (int step = 0; step < 2 && status.ok(); ++step) {
    for (const auto& entry : plan.programs(static_cast<int>(rank)).schedule()) {
      status.Update(executor->Run(entry.segment(), entry.microbatch()));
      if (!status.ok()) break;
    }
    if (status.ok()) status = executor->Run("eval." + std::to_string(rank));
  }
  if (status.ok()) status = world->Barrier();
  return status;
}

// The status of each rank. Who is not done after this time is sent home.
std::vector<absl::Status> RunFor(const plan::Plan& plan, std::chrono::milliseconds time) {
  std::vector<std::unique_ptr<Communicator>> worlds = MakeInProcessWorld(plan.world_size());
  std::vector<std::future<absl::Status>> ranks;
  for (const auto& world : worlds) {
    ranks.push_back(std::async(std::launch::async, [&plan, world = world.get()] {
      return RunRank(plan, world->rank(), world);
    }));
  }
  const auto end = std::chrono::steady_clock::now() + time;
  std::vector<absl::Status> statuses;
  for (auto& rank : ranks) {
    if (rank.wait_until(end) != std::future_status::ready) {
      worlds[0]->Abort(absl::DeadlineExceededError("it takes too long"));
    }
  }
  for (auto& rank : ranks) statuses.push_back(rank.get());
  return statuses;
}

TEST(RandomPipelines, WaitForEverWhereTheVerifierSaysSo) {
  std::mt19937 random(1);
  int good = 0, bad = 0;
  for (int i = 0; i < 4000 && (good < 100 || bad < 20); ++i) {
    const plan::Plan plan = RandomPlan(random);
    const absl::Status verified = VerifyPlan(plan);
    if (verified.ok() && ++good <= 100) {
      for (const absl::Status& status : RunFor(plan, std::chrono::seconds(60))) {
        ORIEL_EXPECT_OK(status);
      }
    } else if (absl::StrContains(verified.message(), "not valid: the ranks would wait") &&
               ++bad <= 20) {
      for (const absl::Status& status : RunFor(plan, std::chrono::milliseconds(100))) {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted, HasSubstr("it takes too long")))
            << verified;
      }
    }
  }
  EXPECT_GE(good, 100);
  EXPECT_GE(bad, 20);
}

}  // namespace
}  // namespace oriel::runtime
