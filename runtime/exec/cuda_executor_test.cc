// What the executor does on devices alone: recordings, streams of the device, late errors. On
// emulated ones, for several orders of what runs there.
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/emulated_driver.h"
#include "runtime/base/status_testing.h"
#include "runtime/exec/emulated_testing.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/executor_testing.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/verify.h"

namespace oriel::runtime {
namespace {

namespace cuda = kernels::cuda;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

std::atomic<int> recordings{0}, replays{0}, watches{0};

// A device for each rank, which counts what is recorded and replayed.
std::shared_ptr<Backend> CountingBackend(int64_t rank) {
  static const auto* const driver = [] {
    auto* counting = new cuda::Driver(TestDriver());
    counting->cuGraphLaunch = [](CUgraphExec graph, CUstream stream) {
      ++replays;
      return TestDriver().cuGraphLaunch(graph, stream);
    };
    counting->cuGraphInstantiate = [](CUgraphExec* made, CUgraph graph, unsigned long long flags) {
      ++recordings;
      EXPECT_EQ(flags, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
      return TestDriver().cuGraphInstantiate(made, graph, flags);
    };
    return counting;
  }();
  absl::StatusOr<std::unique_ptr<Backend>> backend =
      MakeCudaBackend(*driver, static_cast<int>(rank % kEmulatedDevices), &PrepareHostKernel);
  EXPECT_TRUE(backend.ok()) << backend.status();
  return *std::move(backend);
}

// A communicator that puts its collectives on the stream, as NCCL's does: there they meet the
// peers' through the host's communicator, in threads, while the stream waits.
class StreamCommunicator final : public Communicator {
 public:
  explicit StreamCommunicator(Communicator* inner) : inner_(inner) {}
  explicit StreamCommunicator(std::unique_ptr<Communicator> inner)
      : owned_(std::move(inner)), inner_(owned_.get()) {}

  int64_t rank() const override { return inner_->rank(); }
  int64_t size() const override { return inner_->size(); }
  std::string name() const override { return "stream"; }
  bool IsAsynchronous() const override { return true; }
  void SetStream(void* stream) override { stream_ = static_cast<CUstream>(stream); }
  void SetLabel(const std::string& what) override { label_ = what; }
  int64_t EndRecording() override { return ++recorded_; }
  absl::Status Watch(int64_t recording, void* stream, const std::string& what) override {
    EXPECT_GT(recording, 0);
    EXPECT_LE(recording, recorded_);
    EXPECT_NE(stream, nullptr);
    EXPECT_THAT(what, ContainsRegex("segment .*, instructions [0-9]+ to [0-9]+ as a recording"));
    ++watches;
    return absl::OkStatus();
  }
  void Abort(const absl::Status& reason) override { inner_->Abort(reason); }

  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    ORIEL_ASSIGN_OR_RETURN(auto group, inner_->Group(ranks));
    return std::make_unique<StreamCommunicator>(std::move(group));
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) override {
    return Enqueue([=, kept = std::vector<ReduceBuffer>(buffers.begin(), buffers.end())] {
      return inner_->AllReduce(reduction, kept);
    });
  }
  absl::Status AllGather(absl::Span<const PieceBuffer> buffers) override {
    return Enqueue([=, kept = std::vector<PieceBuffer>(buffers.begin(), buffers.end())] {
      return inner_->AllGather(kept);
    });
  }
  absl::Status ReduceScatter(Reduction reduction, absl::Span<const PieceBuffer> buffers) override {
    return Enqueue([=, kept = std::vector<PieceBuffer>(buffers.begin(), buffers.end())] {
      return inner_->ReduceScatter(reduction, kept);
    });
  }
  absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) override {
    return Enqueue([=, kept = std::vector<PieceBuffer>(buffers.begin(), buffers.end())] {
      return inner_->AllToAll(kept);
    });
  }
  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    return inner_->Broadcast(root, data, bytes);
  }
  absl::Status Barrier() override { return inner_->Barrier(); }
  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t, int64_t, const void*, int64_t) override {
    return absl::UnimplementedError("no messages");
  }
  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t, int64_t, void*, int64_t) override {
    return absl::UnimplementedError("no messages");
  }

 private:
  absl::Status Enqueue(std::function<absl::Status()> call) {
    EXPECT_THAT(label_, AllOf(HasSubstr("segment "), HasSubstr("instruction ")));
    auto running = std::make_shared<std::future<absl::Status>>();
    const CUresult result = cuda::EnqueueEmulated(
        stream_, "a collective", [call = std::move(call), running](bool first) {
          if (first) *running = std::async(std::launch::async, call);
          if (running->wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            return CUDA_ERROR_NOT_READY;
          }
          return running->get().ok() ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
        });
    return result == CUDA_SUCCESS ? absl::OkStatus() : absl::InternalError(cuda::EmulatorError());
  }

  const std::unique_ptr<Communicator> owned_;
  Communicator* const inner_;
  CUstream stream_ = nullptr;
  std::string label_;
  int64_t recorded_ = 0;
};

// Losses and the final weights.
std::vector<float> Train(const plan::Plan& plan, Executor& executor, int64_t rank, int steps) {
  std::vector<float> result;
  for (int64_t i = 0; i < 4; ++i) {
    Floats(executor, plan::PARAMETER, "w")[i] = 1 + 0.3f * static_cast<float>(i);
  }
  *Floats(executor, plan::SCALAR, "learning_rate") = 0.01f;
  const absl::StatusOr<BufferView> x = executor.Find(plan::INPUT, "x");
  EXPECT_TRUE(x.ok());
  for (int step = 0; step < steps; ++step) {
    for (const auto& entry : plan.programs(0).schedule()) {
      std::vector<float> values(8);
      for (int64_t i = 0; i < 8; ++i) {
        values[i] = Sample(rank * 7 + entry.microbatch() * 2 + i / 4 + step, i % 4) / 3;
      }
      // Behind the runs that are under way, without waiting for them.
      ORIEL_EXPECT_OK(executor.Write(*x, 0, values.data(), 32));
      ORIEL_EXPECT_OK(executor.Run(entry.segment(), entry.microbatch()));
    }
    if (step % 2 == 1) result.push_back(*Floats(executor, plan::OUTPUT, "loss"));
  }
  const float* w = Floats(executor, plan::PARAMETER, "w");
  result.insert(result.end(), w, w + 4);
  return result;
}

std::vector<std::vector<float>> TrainOnHost(const plan::Plan& plan, int steps) {
  std::vector<std::vector<float>> results(plan.world_size());
  RunRanks(plan.world_size(), [&](int64_t rank, Communicator* world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, {}));
    results[rank] = Train(plan, *executor, rank, steps);
  });
  return results;
}

struct Case {
  int64_t ranks;
  ReduceGradient reduce;
  bool on_stream;  // the communicator
};

class CudaExecutor : public ::testing::TestWithParam<Case> {};

// The bits of the host, whether runs are recorded or not, and collectives block or not.
TEST_P(CudaExecutor, TrainsAsTheHostDoes) {
  constexpr int kSteps = 6;
  const Case& c = GetParam();
  const plan::Plan plan = SmallTrainingPlan(c.ranks, /*microbatches=*/3, c.reduce);
  ORIEL_ASSERT_OK(VerifyPlan(plan));
  const std::vector<std::vector<float>> expected = TrainOnHost(plan, kSteps);
  for (const bool record : {false, true}) {
    replays = watches = 0;
    RunRanks(c.ranks, [&](int64_t rank, Communicator* world) {
      StreamCommunicator on_stream(world);
      ExecutorOptions options;
      options.backend = CountingBackend(rank);
      options.record = record;
      ORIEL_ASSERT_OK_AND_ASSIGN(
          auto executor, Executor::Create(plan, rank, c.on_stream ? &on_stream : world, options));
      EXPECT_EQ(Train(plan, *executor, rank, kSteps), expected[rank]);
      ORIEL_EXPECT_OK(world->Barrier());
    });
    EXPECT_EQ(watches > 0, record && c.on_stream);
    if (record) {
      EXPECT_GE(replays, c.ranks * kSteps);
    } else {
      EXPECT_EQ(replays, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CudaExecutor,
                         ::testing::Values(Case{1, ReduceGradient::kInUpdate, false},
                                           Case{2, ReduceGradient::kInUpdate, false},
                                           Case{2, ReduceGradient::kInUpdate, true},
                                           Case{2, ReduceGradient::kInLast, false},
                                           Case{2, ReduceGradient::kInLast, true},
                                           Case{2, ReduceGradient::kInLastScattered, true}));

// Once for each copy of what a segment's runs keep; from then on they are replayed.
TEST(CudaExecutor, RecordsEachPartOnce) {
  const plan::Plan plan = SmallTrainingPlan(1, /*microbatches=*/3, ReduceGradient::kInUpdate);
  ExecutorOptions options;
  options.backend = CountingBackend(0);
  ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, options));
  recordings = replays = 0;
  Train(plan, *executor, 0, 6);
  const int recorded = recordings, replayed = replays;
  EXPECT_GT(recorded, 0);
  Train(plan, *executor, 0, 6);
  EXPECT_EQ(recordings, recorded);
  EXPECT_EQ(replays, replayed + 6 * plan.programs(0).schedule_size());
}

// A device is timed by events, without a wait between launches.
TEST(CudaExecutor, AProfileHasEachInstruction) {
  PlanBuilder builder(1);
  const int x = builder.Buffer(plan::OUTPUT, "x", {DType::kF32, {100}});
  const int y = builder.Buffer(plan::OUTPUT, "y", {DType::kF32, {100}});
  builder.Segment("forward");
  builder.FillZero(x);
  builder.FillZero(y);
  const plan::Plan plan = builder.plan();
  ExecutorOptions options;
  options.backend = CountingBackend(0);
  options.profile = true;
  ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, options));
  replays = 0;
  for (int run = 0; run < 3; ++run) ORIEL_EXPECT_OK(executor->Run("forward"));
  ORIEL_ASSERT_OK_AND_ASSIGN(const SegmentProfile profile, executor->Profile("forward"));
  EXPECT_EQ(replays, 0);
  EXPECT_EQ(profile.runs, 3);
  ASSERT_EQ(profile.nanoseconds.size(), 2u);
  EXPECT_GT(profile.least_empty_nanoseconds, 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_GT(profile.least_nanoseconds[i], 0);
    EXPECT_GE(profile.nanoseconds[i], 3 * profile.least_nanoseconds[i]);
  }
}

// A launch that finds its data wrong, in a run that has returned long ago.
plan::Plan FailingPlan() {
  PlanBuilder builder(1);
  const int out = builder.Buffer(plan::OUTPUT, "y", {DType::kF32, {}});
  builder.Segment("forward");
  builder.FillZero(out);
  (*builder.Launch("test_fail", {}, {}, "/embed/Gather").mutable_attributes())["index"].set_i(9);
  builder.FillZero(out);
  builder.Segment("backward");
  builder.FillZero(out);
  return builder.plan();
}

TEST(CudaExecutor, ALateErrorNamesItsLaunch) {
  constexpr char kMessage[] =
      "rank 0, segment forward, instruction 1 (test_fail): index 9 is not in [0, 7) [from onnx "
      "node "
      "/embed/Gather]";
  const plan::Plan plan = FailingPlan();
  for (const int runs : {1, 3}) {  // as it is, and recorded
    ExecutorOptions options;
    options.backend = CountingBackend(0);
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, options));
    for (int i = 0; i < runs; ++i) ORIEL_EXPECT_OK(executor->Run("forward"));
    ORIEL_EXPECT_OK(executor->Run("backward"));
    ORIEL_ASSERT_OK_AND_ASSIGN(const BufferView view, executor->Find(plan::OUTPUT, "y"));
    EXPECT_EQ(executor->HostMemory(view), nullptr);
    float y = 0;
    for (int i = 0; i < 2; ++i) {
      EXPECT_THAT(executor->Read(view, 0, &y, 4),
                  StatusIs(absl::StatusCode::kInvalidArgument, kMessage));
    }
    EXPECT_THAT(executor->Run("backward"), StatusIs(absl::StatusCode::kInvalidArgument, kMessage));
  }
}

// What the driver refuses at once, in a run as it is and in one that is recorded.
TEST(CudaExecutor, ARefusedCallNamesItsInstruction) {
  static bool refuses = false;
  static const auto* const driver = [] {
    auto* refusing = new cuda::Driver(TestDriver());
    refusing->cuMemsetD8Async = [](CUdeviceptr at, unsigned char value, size_t bytes,
                                   CUstream stream) {
      if (refuses) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
      return TestDriver().cuMemsetD8Async(at, value, bytes, stream);
    };
    return refusing;
  }();
  const auto prepare = [](const kernels::KernelSpec&,
                          cuda::Device& device) -> absl::StatusOr<kernels::KernelFn> {
    return kernels::KernelFn([&device](const kernels::KernelArgs& args) {
      return ORIEL_CUDA(device.driver(), cuMemsetD8Async,
                        reinterpret_cast<CUdeviceptr>(args.results[0]), 0, 4,
                        static_cast<CUstream>(args.stream));
    });
  };
  PlanBuilder builder(1);
  const int out = builder.Buffer(plan::OUTPUT, "y", {DType::kF32, {}});
  builder.Segment("forward");
  builder.FillZero(out);
  const plan::Plan plan = builder.plan();
  for (const int runs_before : {0, 1}) {
    refuses = false;
    ExecutorOptions options;
    ORIEL_ASSERT_OK_AND_ASSIGN(options.backend, MakeCudaBackend(*driver, 0, prepare));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, options));
    for (int i = 0; i < runs_before; ++i) ORIEL_EXPECT_OK(executor->Run("forward"));
    refuses = true;
    EXPECT_THAT(executor->Run("forward"),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(HasSubstr("rank 0, segment forward, instruction 0 (fill"),
                               HasSubstr("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"))));
    refuses = false;
  }
}

TEST(CudaExecutor, AFailedDeviceIsSaid) {
  PlanBuilder builder(1);
  const int out = builder.Buffer(plan::OUTPUT, "y", {DType::kF32, {}});
  builder.Segment("forward");
  builder.FillZero(out);
  const plan::Plan plan = builder.plan();
  ExecutorOptions options;
  absl::StatusOr<std::unique_ptr<Backend>> backend = MakeCudaBackend(
      TestDriver(), 0,
      [](const kernels::KernelSpec&, cuda::Device&) -> absl::StatusOr<kernels::KernelFn> {
        return kernels::KernelFn([](const kernels::KernelArgs& args) {
          cuda::EnqueueEmulated(static_cast<CUstream>(args.stream), "broken",
                                [](bool) { return CUDA_ERROR_ILLEGAL_ADDRESS; });
          return absl::OkStatus();
        });
      });
  ORIEL_ASSERT_OK(backend.status());
  options.backend = *std::move(backend);
  ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, options));
  ORIEL_EXPECT_OK(executor->Run("forward"));
  ORIEL_ASSERT_OK_AND_ASSIGN(const BufferView view, executor->Find(plan::OUTPUT, "y"));
  float y = 0;
  EXPECT_THAT(executor->Read(view, 0, &y, 4),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("rank 0: the device has failed"),
                             HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700): broken"))));
}

}  // namespace
}  // namespace oriel::runtime
