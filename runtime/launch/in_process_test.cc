#include "runtime/launch/in_process.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "runtime/base/status_testing.h"
#include "runtime/launch/job.h"
#include "runtime/launch/stop_signal.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(InProcessTest, EachRankRunsOnce) {
  std::atomic<int> sum{0};
  absl::StatusOr<bool> result = RunInProcess(4, [&](int64_t rank, Communicator* world) {
    sum += 1 << (4 * rank);
    EXPECT_EQ(world->rank(), rank);
    EXPECT_TRUE(world->Barrier().ok());
    return absl::StatusOr<bool>(rank == 2);
  });
  ORIEL_ASSERT_OK(result);
  EXPECT_TRUE(*result);
  EXPECT_EQ(sum, 0x1111);
}

TEST(InProcessTest, OneRankNeedsNoWorld) {
  absl::StatusOr<bool> result = RunInProcess(1, [&](int64_t, Communicator* world) {
    EXPECT_EQ(world, nullptr);
    return absl::StatusOr<bool>(false);
  });
  ORIEL_ASSERT_OK(result);
}

// The others wait in a collective; they get out, and the cause is told, not its echo.
TEST(InProcessTest, ErrorOfOneRankEndsAll) {
  absl::StatusOr<bool> result =
      RunInProcess(4, [&](int64_t rank, Communicator* world) -> absl::StatusOr<bool> {
        if (rank == 2) return absl::NotFoundError("no such sample");
        ORIEL_RETURN_IF_ERROR(world->Barrier());
        return false;
      });
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kNotFound, "rank 2: no such sample"));
}

TEST(CheckWorldTest, SaysWhatToDo) {
  plan::Plan plan;
  plan.set_world_size(4);
  ORIEL_EXPECT_OK(CheckWorld(plan, "p.oplan", 4, "-n 4"));
  EXPECT_THAT(CheckWorld(plan, "p.oplan", 2, "WORLD_SIZE"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("start 4 with WORLD_SIZE=4, or compile")));
  EXPECT_THAT(CheckWorld(plan, "p.oplan", 2, "-n 2"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("p.oplan is for 4 ranks, but -n 2 asks for 2"),
                             HasSubstr("use -n 4"), HasSubstr("oriel compile --world 2"))));
}

TEST(InProcessTest, RefusesMoreRanksThanThreads) {
  EXPECT_THAT(RunInProcess(100'000, [](int64_t, Communicator*) { return absl::StatusOr<bool>(); }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("use --comm mpi")));
}

// Sends this process a signal, and waits until it has had time to be seen.
void Signal(int number) {
  kill(getpid(), number);
  usleep(100'000);
}

// A second request, but not one at the same time as the first, ends the process.
TEST(StopSignalTest, SecondRequestEndsAtOnce) {
  EXPECT_EXIT(
      {
        InstallStopHandlers(StopHandling::kInteractive);
        Signal(SIGINT);
        Signal(SIGTERM);
        if (StopRequests() != 1) _exit(1);
        usleep(400'000);
        Signal(SIGINT);
        _exit(2);
      },
      ::testing::ExitedWithCode(kExitInterrupted), "once more to stop at once");
}

// The terminal is gone; but nohup has said that this is no matter.
TEST(StopSignalTest, AHangupIsARequestUnlessItIsIgnored) {
  EXPECT_EXIT(
      {
        InstallStopHandlers(StopHandling::kInteractive);
        Signal(SIGHUP);
        _exit(StopRequests());
      },
      ::testing::ExitedWithCode(1), "stopping after this step");
  EXPECT_EXIT(
      {
        signal(SIGHUP, SIG_IGN);
        InstallStopHandlers(StopHandling::kInteractive);
        Signal(SIGHUP);
        _exit(StopRequests());
      },
      ::testing::ExitedWithCode(0), "");
}

// Products of oneDNN may have the stack pointer on the heap, which a signal's frame would damage.
TEST(StopSignalTest, ThreadsThatComputeAreNotInterrupted) {
  EXPECT_EXIT(
      {
        InstallStopHandlers(StopHandling::kRank);
        const auto is_blocked = [] {
          sigset_t mask;
          pthread_sigmask(SIG_BLOCK, nullptr, &mask);
          return sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1 &&
                 sigismember(&mask, SIGHUP) == 1 && sigismember(&mask, SIGUSR1) == 1;
        };
        bool others = false;
        std::thread([&] { others = is_blocked(); }).join();
        Signal(SIGUSR1);
        _exit(is_blocked() && others ? 10 + StopRequests() : 1);
      },
      ::testing::ExitedWithCode(11), "");
}

TEST(ThreadsPerRankTest, AtLeastOne) {
  RunOptions options;
  EXPECT_EQ(ThreadsPerRank(options, 1 << 20), 1);
  options.threads = 3;
  EXPECT_EQ(ThreadsPerRank(options, 100), 3);
}

}  // namespace
}  // namespace oriel::runtime
