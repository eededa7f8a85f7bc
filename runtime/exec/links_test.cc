// Transfers over links: what stages send to each other through NCCL, on emulated devices, whose
// streams run in an order of their own.
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/emulated_driver.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/nccl/emulated_nccl.h"
#include "runtime/comm/nccl/nccl_communicator.h"
#include "runtime/exec/emulated_testing.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/executor_testing.h"
#include "runtime/plan/two_stage_plan_testing.h"
#include "runtime/plan/verify.h"

namespace oriel::runtime {
namespace {

namespace cuda = kernels::cuda;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kSteps = 3;

std::atomic<int> sends{0};

const Nccl& CountingNccl() {
  static const auto* const nccl = [] {
    auto* counting = new Nccl(EmulatedNccl());
    counting->ncclSend = [](const void* data, size_t count, ncclDataType_t type, int peer,
                            ncclComm_t comm, cudaStream_t stream) {
      ++sends;
      return EmulatedNccl().ncclSend(data, count, type, peer, comm, stream);
    };
    return counting;
  }();
  return *nccl;
}

absl::StatusOr<std::unique_ptr<Communicator>> OpenNccl(Communicator& host,
                                                       const cuda::Device& device) {
  NcclOptions options;
  options.timeout = std::chrono::seconds(30);
  return OpenNcclWorld(host, device, CountingNccl(), options);
}

// A rank's losses and weights of some steps, with an evaluation behind each.
absl::StatusOr<std::vector<float>> Train(const TwoStageOptions& options, Executor& executor,
                                         Communicator& host) {
  const int64_t rank = host.rank();
  const bool first = rank < options.ranks[0];
  float* weights = Floats(executor, plan::PARAMETER, first ? "w" : "v");
  for (int i = 0; i < 4; ++i) weights[i] = 1 + 0.25f * static_cast<float>(i);
  *Floats(executor, plan::SCALAR, "learning_rate") = 0.125f;
  const auto fill = [&](int64_t microbatch) -> absl::Status {
    if (!first) return absl::OkStatus();
    const int64_t rows = options.samples / options.ranks[0];
    std::vector<float> x(rows * 4);
    for (int64_t i = 0; i < rows * 4; ++i) {
      x[i] = Sample(microbatch * options.samples + rank * rows + i / 4, i % 4);
    }
    ORIEL_ASSIGN_OR_RETURN(const BufferView view, executor.Find(plan::INPUT, "x"));
    return executor.Write(view, 0, x.data(), rows * 16);
  };
  std::vector<float> result;
  for (int step = 0; step < kSteps; ++step) {
    for (const auto& entry : executor.program().schedule()) {
      ORIEL_RETURN_IF_ERROR(fill(entry.microbatch()));
      if (entry.segment() == "update") {
        // The hosts may meet here when their devices are done, as for a dump of gradients.
        Floats(executor, plan::GRADIENT, first ? "w" : "v");
        ORIEL_RETURN_IF_ERROR(host.Barrier());
      }
      ORIEL_RETURN_IF_ERROR(executor.Run(entry.segment(), entry.microbatch()));
    }
    if (step == 0) result.push_back(*Floats(executor, plan::OUTPUT, "loss"));
    ORIEL_RETURN_IF_ERROR(fill(0));
    ORIEL_RETURN_IF_ERROR(executor.Run(first ? "eval.0" : "eval.1"));
  }
  result.push_back(*Floats(executor, plan::OUTPUT, "loss"));
  weights = Floats(executor, plan::PARAMETER, first ? "w" : "v");
  result.insert(result.end(), weights, weights + 4);
  if (!first) {
    const float* y = Floats(executor, plan::OUTPUT, "y");
    result.insert(result.end(), y, y + options.samples / options.ranks[1] * 4);
  }
  return result;
}

using Results = std::vector<std::vector<float>>;

Results TrainOnHost(const plan::Plan& plan, const TwoStageOptions& options) {
  Results results(plan.world_size());
  RunRanks(plan.world_size(), [&](int64_t rank, Communicator* host) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, host, {}));
    ORIEL_ASSERT_OK_AND_ASSIGN(results[rank], Train(options, *executor, *host));
    ORIEL_EXPECT_OK(host->Barrier());
  });
  return results;
}

// Each rank has a device.
Results TrainOnDevices(const plan::Plan& plan, const TwoStageOptions& options, uint64_t seed) {
  cuda::EmulatorOptions emulator;
  emulator.devices = static_cast<int>(plan.world_size());
  emulator.seed = seed;
  const cuda::Driver& driver = cuda::EmulatedDriver(emulator);
  Results results(plan.world_size());
  RunRanks(plan.world_size(), [&](int64_t rank, Communicator* host) {
    ORIEL_ASSERT_OK_AND_ASSIGN(
        std::shared_ptr<Backend> backend,
        MakeCudaBackend(driver, static_cast<int>(rank), &PrepareHostKernel, &OpenNccl));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, backend->OpenCommunicator(*host));
    ExecutorOptions executor_options;
    executor_options.backend = backend;
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor,
                               Executor::Create(plan, rank, world.get(), executor_options));
    auto trained = Train(options, *executor, *host);
    if (!trained.ok()) world->Abort(trained.status());
    ORIEL_EXPECT_OK(trained.status());
    if (trained.ok()) results[rank] = *std::move(trained);
    ORIEL_EXPECT_OK(host->Barrier());
  });
  return results;
}

TEST(Links, TheBitsOfTheHost) {
  for (const TwoStageOptions& options :
       {TwoStageOptions{{1, 1}, 4, 4, 1, false}, TwoStageOptions{{1, 1}, 4, 5, 3, false},
        TwoStageOptions{{2, 2}, 4, 4, 2, false}, TwoStageOptions{{2, 1}, 4, 4, 1, false},
        TwoStageOptions{{1, 2}, 4, 3, 3, true}, TwoStageOptions{{2, 3}, 6, 2, 2, false}}) {
    const plan::Plan plan = TwoStagePlan(options);
    ORIEL_ASSERT_OK(VerifyPlan(plan));
    const Results expected = TrainOnHost(plan, options);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      sends = 0;
      EXPECT_EQ(TrainOnDevices(plan, options, seed), expected);
      // Activations and cotangents of each microbatch, at least; the loss, and an evaluation.
      EXPECT_GE(sends, kSteps * (2 * options.microbatches + 2));
    }
  }
}

// Whatever the verifier takes comes to its end, though each side of a message holds up all that its
// rank puts behind it.
TEST(Links, RandomPipelinesEnd) {
  constexpr int64_t kMicrobatches = 4;
  const TwoStageOptions options{{1, 1}, 4, kMicrobatches, kMicrobatches, true};
  std::mt19937 random(7);
  int run = 0;
  for (int i = 0; i < 2000 && run < 40; ++i) {
    const plan::Plan plan = RandomPipeline(options, random);
    if (!VerifyPlan(plan).ok()) continue;
    ++run;
    EXPECT_EQ(TrainOnDevices(plan, options, /*seed=*/i), TrainOnHost(plan, options)) << i;
  }
  EXPECT_EQ(run, 40);
}

// A rank that does not come: the message is named.
TEST(Links, AMessageThatNobodyReceives) {
  const TwoStageOptions options;
  const plan::Plan plan = TwoStagePlan(options);
  cuda::EmulatorOptions emulator;
  emulator.devices = 2;
  const cuda::Driver& driver = cuda::EmulatedDriver(emulator);
  RunRanks(2, [&](int64_t rank, Communicator* host) {
    const auto open = [](Communicator& host, const cuda::Device& device) {
      NcclOptions options;
      options.timeout = std::chrono::milliseconds(700);
      return OpenNcclWorld(host, device, EmulatedNccl(), options);
    };
    ORIEL_ASSERT_OK_AND_ASSIGN(
        std::shared_ptr<Backend> backend,
        MakeCudaBackend(driver, static_cast<int>(rank), &PrepareHostKernel, open));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, backend->OpenCommunicator(*host));
    ExecutorOptions executor_options;
    executor_options.backend = backend;
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor,
                               Executor::Create(plan, rank, world.get(), executor_options));
    if (rank == 1) {
      while (world->Check().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    ORIEL_EXPECT_OK(executor->Run("forward.0", 0));
    while (world->Check().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_THAT(std::string(world->Check().message()),
                AllOf(HasSubstr("rank 0, segment forward.0, instruction 1, channel 'h': send to "
                                "rank 1 (64 bytes) has not ended within 0.7 s"),
                      HasSubstr("another rank is late")));
  });
}

// Runs that the schedule has not next are refused, before anything is put.
TEST(Links, RunsOutOfOrder) {
  const plan::Plan plan = TwoStagePlan({});
  cuda::EmulatorOptions emulator;
  emulator.devices = 2;
  const cuda::Driver& driver = cuda::EmulatedDriver(emulator);
  RunRanks(2, [&](int64_t rank, Communicator* host) {
    ORIEL_ASSERT_OK_AND_ASSIGN(
        std::shared_ptr<Backend> backend,
        MakeCudaBackend(driver, static_cast<int>(rank), &PrepareHostKernel, &OpenNccl));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto world, backend->OpenCommunicator(*host));
    ExecutorOptions executor_options;
    executor_options.backend = backend;
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor,
                               Executor::Create(plan, rank, world.get(), executor_options));
    EXPECT_THAT(
        executor->Run(rank == 0 ? "eval.0" : "eval.1", 1),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is not what runs next")));
    ORIEL_EXPECT_OK(host->Barrier());
  });
}

}  // namespace
}  // namespace oriel::runtime
