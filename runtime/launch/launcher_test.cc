// Starts this program again, by itself and under mpirun, as ranks that behave as their argument
// says.
#include "runtime/launch/launcher.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/launch/rank_link.h"
#include "runtime/launch/stop_signal.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// One rank. Needs no MPI: mpirun treats a program without it the same.
int RunRank(const std::string& behaviour) {
  const char* number = std::getenv("OMPI_COMM_WORLD_RANK");
  const int64_t rank = std::atoi(number != nullptr ? number : std::getenv("RANK"));
  if (rank == 1 && behaviour == "mute") {
    std::fprintf(stderr, "no such library\n");
    return 127;
  }
  RankLink link;
  InstallStopHandlers(StopHandling::kRank);
  link.Start(rank);
  // All ranks have started when this one goes on, as after MPI_Init.
  sleep(1);
  if (behaviour == "finish") {
    std::fprintf(stderr, "hello from rank %d\n", static_cast<int>(rank));
    link.Done(kExitOk);
    return 0;
  }
  if (rank == 1 && behaviour == "killed") kill(getpid(), SIGKILL);
  if (rank == 1 && behaviour == "crash") {
    std::fprintf(stderr, "the reason\n");
    std::abort();
  }
  if (rank == 1 && behaviour == "error") {
    link.Error(absl::NotFoundError("s.tar: sample 7: has no labels\nsecond line"));
    return 1;
  }
  if (rank != 1 && behaviour == "error") link.Error(absl::AbortedError("a peer has failed"));
  if (rank == 1 && behaviour == "interrupt") kill(std::atoi(std::getenv("LAUNCHER_PID")), SIGINT);
  for (int i = 0; i < 300; ++i) {
    usleep(100'000);
    if (behaviour == "interrupt" && StopRequests() > 0) {
      link.Done(kExitInterrupted);
      return 0;
    }
  }
  return 1;
}

using Launcher = int (*)(int64_t, const std::vector<std::string>&, const RunOptions&);

class LauncherTest : public ::testing::TestWithParam<Launcher> {
 protected:
  // In a child process, because a launcher installs signal handlers. Its stderr is kept.
  int Launch(const std::string& behaviour, const RunOptions& options = {}) {
    int output[2];
    EXPECT_EQ(pipe(output), 0);
    const auto begin = std::chrono::steady_clock::now();
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(output[1], STDERR_FILENO);
      setenv("LAUNCHER_PID", absl::StrCat(getpid()).c_str(), 1);
      setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
      _exit(GetParam()(3, {"--rank", behaviour}, options));
    }
    close(output[1]);
    char buffer[1024];
    ssize_t got;
    while ((got = read(output[0], buffer, sizeof buffer)) > 0) text_.append(buffer, got);
    close(output[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

  std::string text_;
  double seconds_ = 0;
};

TEST_P(LauncherTest, RanksFinish) {
  EXPECT_EQ(Launch("finish"), kExitOk) << text_;
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_THAT(text_, HasSubstr(absl::StrCat("hello from rank ", rank)));
  }
}

TEST_P(LauncherTest, KilledRankIsNamed) {
  RunOptions options;
  options.save_dir = ::testing::TempDir() + absl::StrCat("oriel-launcher-", getpid());
  EXPECT_EQ(Launch("killed", options), kExitError);
  EXPECT_THAT(text_, MatchesRegex("oriel-run: error: rank 1 \\(pid [0-9]+\\) was killed by signal "
                                  "9; no checkpoint is in .* yet\n"));
  EXPECT_LT(seconds_, 10);
}

TEST_P(LauncherTest, LastWordsOfACrashAreShown) {
  EXPECT_EQ(Launch("crash"), kExitError);
  EXPECT_THAT(text_, AllOf(HasSubstr("the reason\n"), HasSubstr("rank 1 (pid "),
                           HasSubstr("was killed by signal 6")));
}

TEST_P(LauncherTest, ErrorOfARankIsTold) {
  EXPECT_EQ(Launch("error"), kExitError);
  EXPECT_EQ(text_, "oriel-run: error: rank 1: s.tar: sample 7: has no labels\nsecond line\n");
  EXPECT_LT(seconds_, 10);
}

TEST_P(LauncherTest, InterruptReachesTheRanks) {
  EXPECT_EQ(Launch("interrupt"), kExitInterrupted) << text_;
  EXPECT_THAT(text_, AllOf(HasSubstr("stopping after this step"), Not(HasSubstr("error"))));
}

// It ends before it has said that it is there; the others would wait for it. mpirun sees to that by
// itself.
class ProcessLauncherTest : public LauncherTest {};
TEST_P(ProcessLauncherTest, ARankThatDoesNotStart) {
  EXPECT_EQ(Launch("mute"), kExitError);
  EXPECT_THAT(text_, AllOf(HasSubstr("no such library\n"),
                           HasSubstr("rank 1 ended with status 127 before it had")));
  EXPECT_LT(seconds_, 15);
}

INSTANTIATE_TEST_SUITE_P(Processes, LauncherTest, ::testing::Values(&LaunchProcesses));
INSTANTIATE_TEST_SUITE_P(Processes, ProcessLauncherTest, ::testing::Values(&LaunchProcesses));

#ifdef ORIEL_HAVE_MPI
INSTANTIATE_TEST_SUITE_P(Mpi, LauncherTest, ::testing::Values(&LaunchMpi));

TEST(MpiLauncherTest, NoMpirun) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/none", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(LaunchMpi(3, {"--rank", "finish"}, {}), kExitError);
  setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("cannot start mpirun: No such file or directory; install Open MPI"));
}
#endif

}  // namespace
}  // namespace oriel::runtime

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--rank") == 0) return oriel::runtime::RunRank(argv[2]);
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
