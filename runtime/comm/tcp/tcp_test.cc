#include "runtime/comm/tcp/tcp.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/comm/conformance.h"
#include "runtime/comm/tcp/tcp_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class TcpConformance : public ::testing::TestWithParam<std::tuple<ConformanceCase, int64_t>> {};

TEST_P(TcpConformance, Case) {
  const auto [test, size] = GetParam();
  RunTcpRanks(size, [run = test.run](std::unique_ptr<Communicator> world) { run(*world); });
}

INSTANTIATE_TEST_SUITE_P(Tcp, TcpConformance,
                         ::testing::Combine(::testing::ValuesIn(ConformanceCases()),
                                            ::testing::Values<int64_t>(1, 2, 3, 4, 8)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param).name, "On",
                                               std::get<1>(info.param));
                         });

TEST(Tcp, ConformsByOtherNumbers) {
  RunTcpRanks(4, [](std::unique_ptr<Communicator> world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto renumbered, world->Renumber({0, 2, 3, 1}));
    EXPECT_EQ(renumbered->rank(), std::vector<int64_t>({0, 3, 1, 2})[world->rank()]);
    for (const ConformanceCase& test : ConformanceCases()) {
      if (!absl::StrContains(test.name, "Large")) test.run(*renumbered);
    }
  });
}

// Any rank may tell the others which was lost: all have the new numbers before one goes on.
TEST(Tcp, RenumberWaitsForAllRanks) {
  std::atomic<int> began{0};
  RunTcpRanks(4, [&](std::unique_ptr<Communicator> world) {
    if (world->rank() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++began;
    ORIEL_ASSERT_OK(world->Renumber({0, 2, 1, 3}).status());
    EXPECT_EQ(began, 4);
  });
}

TEST(Tcp, ErrorsHaveTheNewNumbers) {
  RunTcpRanks(2, [](std::unique_ptr<Communicator> world) {
    EXPECT_THAT(world->Renumber({1, 2}).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("rank 0 is not there")));
    ORIEL_ASSERT_OK_AND_ASSIGN(auto renumbered, world->Renumber({1, 0}));
    if (renumbered->rank() == 0) {
      world->Abort(absl::OutOfRangeError("label 7 is not in the vocabulary"));
      return;
    }
    EXPECT_THAT(renumbered->Barrier(), StatusIs(absl::StatusCode::kAborted,
                                                "rank 0 failed: label 7 is not in the vocabulary"));
  });
  RunTcpRanks(2, [](std::unique_ptr<Communicator> world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto renumbered, world->Renumber({1, 0}));
    if (renumbered->rank() == 0) return;
    EXPECT_THAT(renumbered->Barrier(), StatusIs(absl::StatusCode::kAborted, "rank 0 has left"));
  });
}

TEST(Tcp, AbortReachesAllRanksAndGroups) {
  RunTcpRanks(4, [](std::unique_ptr<Communicator> world) {
    if (world->rank() == 3) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      world->Abort(absl::OutOfRangeError("label 7 is not in the vocabulary"));
      return;
    }
    const auto aborted =
        StatusIs(absl::StatusCode::kAborted, "rank 3 failed: label 7 is not in the vocabulary");
    ORIEL_ASSERT_OK_AND_ASSIGN(auto group, world->Group({0, 1, 2}));
    absl::Status status;
    while (status.ok()) status = group->Barrier();
    EXPECT_THAT(status, aborted);
    std::vector<float> data(1'000'000);
    const ReduceBuffer buffer = {data.data(), data.data(), 1'000'000, DType::kF32};
    EXPECT_THAT(world->AllReduce(Reduction::kSum, {&buffer, 1}), aborted);
    char byte = 0;
    EXPECT_THAT(world->Receive(3, 0, &byte, 1).status(), aborted);
  });
}

// Rank 1 knows why the job has ended, and leaves, before rank 2 has read rank 0's reason behind all
// that rank 0 has sent.
TEST(Tcp, WhoLeavesAnAbortedJobSaysWhy) {
  RunTcpRanks(3, [](std::unique_ptr<Communicator> world) {
    constexpr int64_t kMessages = 2000, kBytes = 64 << 10;
    if (world->rank() == 0) {
      const std::vector<char> data(kBytes);
      std::vector<std::unique_ptr<Message>> messages(kMessages);
      for (auto& message : messages) {
        ORIEL_ASSERT_OK_AND_ASSIGN(message, world->Send(2, 0, data.data(), kBytes));
      }
      world->Abort(absl::OutOfRangeError("label 7 is not in the vocabulary"));
      return;
    }
    char byte = 0;
    ORIEL_ASSERT_OK_AND_ASSIGN(auto message,
                               world->Receive(world->rank() == 1 ? 0 : 1, 0, &byte, 1));
    EXPECT_THAT(message->Wait(), StatusIs(absl::StatusCode::kAborted,
                                          "rank 0 failed: label 7 is not in the vocabulary"));
  });
}

// Ranks leave at different times after their last collective: none of them sees an error, and what
// they have sent arrives.
TEST(Tcp, LeavingAfterTheLastCallIsClean) {
  for (int round = 0; round < 20; ++round) {
    RunTcpRanks(3, [](std::unique_ptr<Communicator> world) {
      std::vector<char> data(300'000, static_cast<char>(world->rank()));
      ORIEL_EXPECT_OK(world->Broadcast(0, data.data(), 300'000));
      EXPECT_EQ(data[299'999], 0);
      ORIEL_EXPECT_OK(world->Barrier());
    });
  }
}

TEST(Tcp, LeavingAbortsThoseWhoWaitForIt) {
  RunTcpRanks(3, [](std::unique_ptr<Communicator> world) {
    if (world->rank() == 1) return;
    const auto left = StatusIs(absl::StatusCode::kAborted, "rank 1 has left");
    std::vector<char> data(100'000);
    EXPECT_THAT(world->Barrier(), left);
    auto message = world->Send(1, 0, data.data(), 100'000);
    EXPECT_THAT(message.ok() ? (*message)->Wait() : message.status(), left);
    // The others go on.
    ORIEL_ASSERT_OK_AND_ASSIGN(auto group, world->Group({0, 2}));
    ORIEL_EXPECT_OK(group->Barrier());
  });
}

TEST(Tcp, DisagreementNamesBothSides) {
  RunTcpRanks(2, [](std::unique_ptr<Communicator> world) {
    std::vector<char> data(8);
    const absl::Status status =
        world->rank() == 1 ? world->Barrier() : world->AllGather(data.data(), 2, data.data());
    if (status.ok()) return;  // what it sent was taken; the other one sees it
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kAborted,
                         HasSubstr(world->rank() == 1
                                       ? "ranks disagree: rank 0 is in an all-gather and sends 2 "
                                         "bytes, rank 1 is in a barrier and receives 0 bytes"
                                       : "ranks disagree: rank 1 is in a barrier")));
    world->Abort(status);
  });
}

TEST(Tcp, AMessageThatWasGivenUp) {
  RunTcpRanks(2, [](std::unique_ptr<Communicator> world) {
    std::vector<char> data(1'000'000);
    if (world->rank() == 1) {
      ORIEL_ASSERT_OK_AND_ASSIGN(auto message, world->Send(0, 3, data.data(), 1'000'000));
      message.reset();
    }
    ORIEL_ASSERT_OK(world->Barrier());
    if (world->rank() == 0) {
      ORIEL_ASSERT_OK_AND_ASSIGN(auto message, world->Receive(1, 3, data.data(), 1'000'000));
      EXPECT_THAT(message->Wait(), StatusIs(absl::StatusCode::kAborted,
                                            "rank 1 has given up its send to rank 0 with tag 3"));
    }
    ORIEL_ASSERT_OK(world->Barrier());
  });
}

// A rank fails while messages and collectives on memory that it frees are on their way.
// AddressSanitizer sees who still touches it.
TEST(Tcp, FailingInTheMiddleTouchesNoFreedMemory) {
  for (int round = 0; round < 12; ++round) {
    RunTcpRanks(3, [round](std::unique_ptr<Communicator> world) {
      const int64_t rank = world->rank();
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(round * 700);
      absl::Status status;
      while (status.ok()) {
        std::vector<char> source(900'000), target(900'000);
        std::vector<float> sums(200'000);
        absl::StatusOr<std::unique_ptr<Message>> receive =
            world->Receive((rank + 1) % 3, 0, target.data(), 900'000);
        absl::StatusOr<std::unique_ptr<Message>> send =
            world->Send((rank + 2) % 3, 0, source.data(), 900'000);
        if (rank == round % 3 && std::chrono::steady_clock::now() >= end) {
          status = absl::InternalError("stop");
          break;
        }
        const ReduceBuffer buffer = {sums.data(), sums.data(), 200'000, DType::kF32};
        status = world->AllReduce(Reduction::kSum, {&buffer, 1});
        for (auto* message : {&receive, &send}) {
          if (status.ok()) status = message->ok() ? (**message)->Wait() : message->status();
        }
      }
      if (rank == round % 3) return world->Abort(status);
      EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    });
  }
}

// A process that is a rank and ends only when it is killed, or by an error, which it prints.
[[noreturn]] void BeARank(const LaunchEnvironment& environment, int output) {
  absl::StatusOr<std::unique_ptr<Communicator>> world = OpenTcpWorld(environment);
  absl::Status status = world.status();
  while (status.ok()) {
    std::vector<float> data(100'000);
    const ReduceBuffer buffer = {data.data(), data.data(), 100'000, DType::kF32};
    status = (*world)->AllReduce(Reduction::kSum, {&buffer, 1});
  }
  if (world.ok()) world->reset();
  const std::string text(status.message());
  ssize_t ignored = write(output, text.data(), text.size());
  (void)ignored;
  _exit(1);
}

TEST(Tcp, AKilledRankEndsTheOthers) {
  constexpr int64_t kRanks = 3;
  const int port = FreePort();
  std::vector<pid_t> pids;
  std::vector<int> outputs;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    pids.push_back(fork());
    if (pids.back() == 0) BeARank(LocalRank(port, rank, kRanks), ends[1]);
    close(ends[1]);
    outputs.push_back(ends[0]);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // they reduce
  kill(pids[2], SIGKILL);
  const auto killed = std::chrono::steady_clock::now();
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    char text[500];
    const ssize_t got = read(outputs[rank], text, sizeof text);
    waitpid(pids[rank], nullptr, 0);
    close(outputs[rank]);
    if (rank == 2) continue;
    EXPECT_THAT(std::string(text, std::max<ssize_t>(got, 0)),
                MatchesRegex("rank 2 \\(at 127.0.0.1\\) was lost: .*"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds(3));
}

}  // namespace
}  // namespace oriel::runtime
