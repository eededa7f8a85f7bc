// Collectives that are started, and what runs meanwhile.
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/comm/link_delay.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/executor_testing.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/verify.h"

namespace oriel::runtime {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

double MillisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Weights after some steps, and the losses of all.
std::vector<float> Train(const plan::Plan& plan, Executor& executor, int64_t rank) {
  std::vector<float> result;
  float* w = Floats(executor, plan::PARAMETER, "w");
  for (int64_t i = 0; i < 4; ++i) w[i] = 1 + 0.3f * static_cast<float>(i);
  *Floats(executor, plan::SCALAR, "learning_rate") = 0.01f;
  for (int step = 0; step < 5; ++step) {
    for (const auto& entry : plan.programs(0).schedule()) {
      for (int64_t i = 0; i < 8 && entry.segment() == "forward"; ++i) {
        Floats(executor, plan::INPUT, "x")[i] =
            Sample(rank * 7 + entry.microbatch() * 2 + i / 4 + step, i % 4) / 3;
      }
      ORIEL_EXPECT_OK(executor.Run(entry.segment(), entry.microbatch()));
    }
    result.push_back(*Floats(executor, plan::OUTPUT, "loss"));
  }
  result.insert(result.end(), w, w + 4);
  return result;
}

// What is reduced while the backward runs has the bits of what update reduces.
TEST(Overlap, ChangesNoBit) {
  for (const int64_t ranks : {1, 2, 4}) {
    for (const int64_t microbatches : {1, 3}) {
      std::vector<std::vector<float>> expected(ranks);
      for (const ReduceGradient reduce :
           {ReduceGradient::kInUpdate, ReduceGradient::kInLast, ReduceGradient::kInLastScattered}) {
        const plan::Plan plan = SmallTrainingPlan(ranks, microbatches, reduce);
        ORIEL_ASSERT_OK(VerifyPlan(plan));
        RunRanks(ranks, [&](int64_t rank, Communicator* world) {
          ExecutorOptions options = TestOptions();
          options.poison_dead_memory = true;
          ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, options));
          const std::vector<float> trained = Train(plan, *executor, rank);
          if (reduce == ReduceGradient::kInUpdate) expected[rank] = trained;
          EXPECT_EQ(trained, expected[rank]);
        });
      }
    }
  }
}

struct SleepingPlan {
  plan::Plan plan;
  int sum = -1;  // the accumulator that is reduced
};

// Starts to reduce 1000 numbers, computes for so long, and waits.
SleepingPlan StartComputeWait(int64_t ranks, int64_t compute, bool overlap) {
  PlanBuilder builder(ranks);
  SleepingPlan result;
  result.sum = builder.Buffer(plan::ACCUMULATOR, "sum", {DType::kF32, {1000}});
  builder.Segment("forward");
  auto& collective = builder.AllReduce({result.sum}, {result.sum});
  (*builder.Launch("test_sleep", {}, {}).mutable_attributes())["milliseconds"].set_i(compute);
  if (overlap) {
    collective.set_stream(1);
    builder.Wait(0);
  }
  builder.Segment("backward");
  builder.Segment("update");
  builder.Schedule(/*micro_batch=*/1, /*microbatches=*/1);
  result.plan = builder.plan();
  return result;
}

// The longest run of its segment, in milliseconds, over a link that takes 100.
double RunOverSlowLink(const plan::Plan& plan, const ExecutorOptions& options) {
  std::vector<double> times(plan.world_size());
  RunRanks(plan.world_size(), [&](int64_t rank, Communicator* world) {
    const auto slow = DelayCommunication(*world, {milliseconds(50), 0});  // 2 hops
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, slow.get(), options));
    ORIEL_ASSERT_OK(world->Barrier());
    const Clock::time_point begin = Clock::now();
    ORIEL_ASSERT_OK(executor->Run("forward"));
    times[rank] = MillisecondsSince(begin);
  });
  return *std::max_element(times.begin(), times.end());
}

TEST(Overlap, HidesCommunicationBehindComputing) {
  EXPECT_GE(RunOverSlowLink(StartComputeWait(2, 100, /*overlap=*/false).plan, {}), 200);
  const double time = RunOverSlowLink(StartComputeWait(2, 100, /*overlap=*/true).plan, {});
  EXPECT_GE(time, 100);
  EXPECT_LE(time, 170);
}

TEST(Overlap, HidesItBehindReplacedComputing) {
  ExecutorOptions options;  // of both ranks
  options.replace_compute = {{"forward", 100}};
  const double time = RunOverSlowLink(StartComputeWait(2, 1, /*overlap=*/true).plan, options);
  EXPECT_GE(time, 100);
  EXPECT_LE(time, 170);
}

TEST(Overlap, ProfileAndTraceShowTheWait) {
  if (TestBackend() != nullptr) GTEST_SKIP() << "the emulator's times are not those of a device";
  const plan::Plan plan = StartComputeWait(2, 20, /*overlap=*/true).plan;
  RunRanks(2, [&](int64_t rank, Communicator* world) {
    const auto slow = DelayCommunication(*world, {milliseconds(50), 0});
    TraceRecorder trace(1, 1);
    trace.BeginStep(1);
    ExecutorOptions options = TestOptions();
    options.profile = true;
    options.trace = &trace;
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, slow.get(), options));
    ORIEL_ASSERT_OK(executor->Run("forward"));
    ORIEL_ASSERT_OK_AND_ASSIGN(const SegmentProfile profile, executor->Profile("forward"));
    EXPECT_LT(profile.nanoseconds[0], 40'000'000);  // starts it
    EXPECT_GT(profile.nanoseconds[2], 40'000'000);  // waits for the rest of 100 ms
    ASSERT_EQ(trace.slices().size(), 3u);
    const TraceSlice &wait = trace.slices()[0], &started = trace.slices()[1];
    EXPECT_EQ(wait.kind, TraceSlice::Kind::kWait);
    EXPECT_EQ(wait.instruction, 2);
    EXPECT_EQ(started.kind, TraceSlice::Kind::kStarted);
    EXPECT_EQ(started.instruction, 0);
    EXPECT_EQ(started.step, 1);
    EXPECT_LT(started.begin, wait.begin);
    EXPECT_LE(started.end, wait.end);
    EXPECT_GE(started.end - started.begin, 100'000'000);
  });
}

// A communicator that only one thread may call.
class ForOneThread final : public Communicator {
 public:
  explicit ForOneThread(Communicator& beneath) : beneath_(beneath) {}

  int64_t rank() const override { return beneath_.rank(); }
  int64_t size() const override { return beneath_.size(); }
  std::string name() const override { return beneath_.name(); }
  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    return beneath_.Group(ranks);
  }
  absl::Status AllReduce(Reduction reduction, absl::Span<const ReduceBuffer> buffers) override {
    return beneath_.AllReduce(reduction, buffers);
  }
  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    return beneath_.Broadcast(root, data, bytes);
  }
  absl::Status AllGather(absl::Span<const PieceBuffer> buffers) override {
    return beneath_.AllGather(buffers);
  }
  absl::Status ReduceScatter(Reduction reduction, absl::Span<const PieceBuffer> buffers) override {
    return beneath_.ReduceScatter(reduction, buffers);
  }
  absl::Status AllToAll(absl::Span<const PieceBuffer> buffers) override {
    return beneath_.AllToAll(buffers);
  }
  absl::Status Barrier() override { return beneath_.Barrier(); }
  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                int64_t bytes) override {
    return beneath_.Send(peer, tag, data, bytes);
  }
  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                   int64_t bytes) override {
    return beneath_.Receive(peer, tag, data, bytes);
  }
  absl::Status CheckConcurrent() const override {
    return absl::UnavailableError("MPI_THREAD_MULTIPLE is missing");
  }
  void Abort(const absl::Status& reason) override { beneath_.Abort(reason); }

 private:
  Communicator& beneath_;
};

TEST(Overlap, NeedsACommunicatorForSeveralThreads) {
  for (const bool overlap : {false, true}) {
    const plan::Plan plan = StartComputeWait(2, 1, overlap).plan;
    RunRanks(2, [&](int64_t rank, Communicator* world) {
      ForOneThread single(*world);
      const absl::Status status = Executor::Create(plan, rank, &single, TestOptions()).status();
      if (!overlap) {
        ORIEL_EXPECT_OK(status);
        return;
      }
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                   AllOf(HasSubstr("the plan communicates while it computes"),
                                         HasSubstr("MPI_THREAD_MULTIPLE is missing"))));
    });
  }
}

// A rank fails while another one has a collective on its way, which its error names.
TEST(Overlap, AnAbortEndsTheWait) {
  const plan::Plan plan = StartComputeWait(2, 20, /*overlap=*/true).plan;
  RunRanks(2, [&](int64_t rank, Communicator* world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, TestOptions()));
    if (rank == 1) return world->Abort(absl::InternalError("no memory"));
    EXPECT_THAT(executor->Run("forward"),
                StatusIs(absl::StatusCode::kAborted,
                         AllOf(HasSubstr("rank 0, segment forward, instruction 0 (all_reduce)"),
                               HasSubstr("rank 1 failed: no memory"))));
  });
}

// A rank fails between a start and its wait. It may be destroyed, whether or not its peer has come
// and whether or not it has aborted, and does not run again.
TEST(Overlap, AFailedExecutorCanBeDestroyed) {
  if (TestBackend() != nullptr) GTEST_SKIP() << "a device reports a launch's error later";
  plan::Plan plan = StartComputeWait(2, 1, /*overlap=*/true).plan;
  auto& launch =
      *plan.mutable_programs(0)->mutable_segments(0)->mutable_instructions(1)->mutable_launch();
  launch.set_kernel("test_fail");
  (*launch.mutable_attributes())["index"].set_i(9);
  for (int round = 0; round < 40; ++round) {
    RunRanks(2, [&](int64_t rank, Communicator* world) {
      ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, TestOptions()));
      if (rank == 1 && round % 2 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(round * 20));
        return;
      }
      EXPECT_THAT(executor->Run("forward"),
                  StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("instruction 1 (test_fail)")));
      EXPECT_THAT(executor->Run("forward"),
                  StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("are on their way")));
      if (round % 4 >= 2) world->Abort(absl::InternalError("it failed"));
    });
  }
}

// Eight ranks with random collectives over every group of a grid of 2 x 2 x 2, each group on no
// stream or one of three, several tensors in each, that are waited for anywhere; each rank has a
// program of its own, with waits elsewhere.
class RandomOverlap {
 public:
  explicit RandomOverlap(unsigned seed) : random_(seed), builder_(kRanks) {
    *builder_.plan().mutable_grids(0) = MakeGrid({2, 2, 2});
    builder_.Segment("forward");
    std::map<std::vector<int>, int> stream_of;
    for (int i = 0; i < 12; ++i) {
      std::vector<int> axes;
      for (int axis = 0; axis < 3; ++axis) {
        if (random_() % 2 == 0) axes.push_back(axis);
      }
      const int stream = stream_of.emplace(axes, random_() % 4).first->second;
      AddCollective(i, axes, stream);
      if (random_() % 2 == 0) {
        auto& launch = builder_.Launch("test_sleep", {}, {});
        (*launch.mutable_attributes())["milliseconds"].set_i(random_() % 2);
      }
    }
    builder_.Segment("backward");
    builder_.Segment("update");
    builder_.Schedule(/*micro_batch=*/1, /*microbatches=*/1);
  }

  // Without streams; and with them and waits, for each rank.
  plan::Plan Plain() const {
    plan::Plan plan = builder_plan();
    for (auto& instruction :
         *plan.mutable_programs(0)->mutable_segments(0)->mutable_instructions()) {
      if (instruction.has_collective()) instruction.mutable_collective()->set_stream(0);
    }
    return plan;
  }
  plan::Plan Overlapped() {
    plan::Plan plan = builder_plan();
    const plan::Program whole = plan.programs(0);
    plan.clear_programs();
    for (int64_t rank = 0; rank < kRanks; ++rank) {
      plan::Program& program = *plan.add_programs();
      program = whole;
      program.set_first_rank(rank);
      program.set_rank_count(1);
      AddWaits(*program.mutable_segments(0));
    }
    return plan;
  }
  const std::vector<std::pair<std::string, int64_t>>& outputs() const { return outputs_; }
  const std::vector<std::pair<std::string, int64_t>>& inputs() const { return inputs_; }

  static constexpr int64_t kRanks = 8;

 private:
  plan::Plan builder_plan() const { return const_cast<PlanBuilder&>(builder_).plan(); }

  int Tensor(plan::BufferKind kind, const std::string& name, const Shape& shape) {
    const TensorSpec spec{DType::kF32, shape};
    (kind == plan::OUTPUT ? outputs_ : inputs_).emplace_back(name, spec.num_elements());
    return builder_.Buffer(kind, name, spec);
  }

  void AddCollective(int number, const std::vector<int>& axes, int stream) {
    const int64_t n = int64_t{1} << axes.size();
    const plan::Collective::Kind kinds[] = {
        plan::Collective::ALL_REDUCE, plan::Collective::ALL_GATHER,
        plan::Collective::REDUCE_SCATTER, plan::Collective::ALL_TO_ALL};
    const plan::Collective::Kind kind = kinds[random_() % 4];
    plan::Collective collective;
    collective.set_kind(kind);
    if (Reduces(kind)) collective.set_reduction(plan::Collective::SUM);
    collective.set_stream(stream);
    for (const int axis : axes) collective.add_axes("a" + std::to_string(axis));
    const int operands = 1 + static_cast<int>(random_() % 3);
    for (int i = 0; i < operands; ++i) {
      const std::string name = std::to_string(number) + "." + std::to_string(i);
      const int64_t rows = 1 + static_cast<int64_t>(random_() % 30);
      const Shape piece{3, rows, 5}, whole{3, rows * n, 5};
      const bool all_to_all = kind == plan::Collective::ALL_TO_ALL;
      const int operand =
          Tensor(plan::ACCUMULATOR, "in" + name, Joins(kind) && !all_to_all ? piece : whole);
      const int result = Tensor(plan::OUTPUT, "out" + name,
                                all_to_all                                 ? Shape{3 * n, rows, 5}
                                : kind == plan::Collective::REDUCE_SCATTER ? piece
                                                                           : whole);
      collective.add_operands(operand);
      collective.add_results(result);
      if (Cuts(kind)) collective.add_split_dims(1);
      if (Joins(kind)) collective.add_concat_dims(all_to_all ? 0 : 1);
    }
    *builder_.program().mutable_segments(0)->add_instructions()->mutable_collective() = collective;
  }

  void AddWaits(plan::Segment& segment) {
    plan::Segment result;
    std::vector<int> started;
    const auto wait = [&](size_t which) {
      result.add_instructions()->mutable_wait()->set_collective(started[which]);
      started.erase(started.begin() + static_cast<std::ptrdiff_t>(which));
    };
    for (const auto& instruction : segment.instructions()) {
      *result.add_instructions() = instruction;
      if (instruction.collective().stream() > 0) started.push_back(result.instructions_size() - 1);
      while (!started.empty() && random_() % 3 == 0) wait(random_() % started.size());
    }
    while (!started.empty()) wait(random_() % started.size());
    *segment.mutable_instructions() = result.instructions();
  }

  std::mt19937 random_;
  PlanBuilder builder_;
  std::vector<std::pair<std::string, int64_t>> inputs_, outputs_;  // names and sizes
};

TEST(Overlap, RandomProgramsGiveTheSameBits) {
  for (unsigned seed = 0; seed < 25; ++seed) {
    RandomOverlap random(seed);
    std::vector<std::vector<float>> expected(RandomOverlap::kRanks);
    for (const bool overlapped : {false, true}) {
      const plan::Plan plan = overlapped ? random.Overlapped() : random.Plain();
      RunRanks(RandomOverlap::kRanks, [&](int64_t rank, Communicator* world) {
        ORIEL_ASSERT_OK_AND_ASSIGN(auto executor,
                                   Executor::Create(plan, rank, world, TestOptions()));
        std::mt19937 values(static_cast<unsigned>(rank));
        for (const auto& [name, size] : random.inputs()) {
          float* data = Floats(*executor, plan::ACCUMULATOR, name);
          for (int64_t i = 0; i < size; ++i) data[i] = static_cast<float>(values()) / 1e6f;
        }
        std::vector<float> result;
        for (int run = 0; run < 3; ++run) {
          ORIEL_ASSERT_OK(executor->Run("forward"));
          for (const auto& [name, size] : random.outputs()) {
            float* data = Floats(*executor, plan::OUTPUT, name);
            result.insert(result.end(), data, data + size);
            std::memset(data, 0, size * sizeof(float));
          }
        }
        if (!overlapped) expected[rank] = result;
        EXPECT_TRUE(result == expected[rank]) << "seed " << seed << ", rank " << rank;
      });
    }
  }
}

}  // namespace
}  // namespace oriel::runtime
