#include "runtime/comm/tcp/rendezvous.h"

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"
#include "runtime/comm/tcp/tcp_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What each rank gets, where `change` may make its environment a wrong one.
std::vector<absl::Status> Meet(const std::vector<LaunchEnvironment>& environments) {
  std::vector<absl::Status> results(environments.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < environments.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = ConnectRanks(environments[i]).status(); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

LaunchEnvironment Impatient(int port, int64_t rank, int64_t size) {
  LaunchEnvironment environment = LocalRank(port, rank, size);
  environment.timeout = std::chrono::seconds(2);
  return environment;
}

TEST(Rendezvous, ConnectsEachToAll) {
  constexpr int64_t kRanks = 5;
  const int port = FreePort();
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([=] {
      // The first is late, the others try again.
      if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ORIEL_ASSERT_OK_AND_ASSIGN(const RankConnections connections,
                                 ConnectRanks(LocalRank(port, rank, kRanks)));
      const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
      for (int64_t peer = 0; peer < kRanks; ++peer) {
        ASSERT_EQ(connections.sockets[peer].is_open(), peer != rank);
        if (peer == rank) continue;
        ORIEL_ASSERT_OK(WriteBefore(connections.sockets[peer], &rank, sizeof rank, soon));
      }
      for (int64_t peer = 0; peer < kRanks; ++peer) {
        if (peer == rank) continue;
        int64_t who = -1;
        ORIEL_ASSERT_OK(ReadBefore(connections.sockets[peer], &who, sizeof who, soon));
        EXPECT_EQ(who, peer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Rendezvous, AloneNeedsNoPort) {
  LaunchEnvironment environment = LocalRank(1, 0, 1);
  environment.master_address = "no.such.host.invalid";
  ORIEL_EXPECT_OK(ConnectRanks(environment).status());
}

TEST(Rendezvous, NamesWhoIsMissing) {
  const int port = FreePort();
  for (const absl::Status& status : Meet({Impatient(port, 0, 5), Impatient(port, 2, 5)})) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 AllOf(HasSubstr("ranks 1, 3, 4 of 5 did not come to 127.0.0.1:"),
                                       HasSubstr("MASTER_ADDR, MASTER_PORT and WORLD_SIZE"))));
  }
}

TEST(Rendezvous, RankZeroIsMissing) {
  EXPECT_THAT(Meet({Impatient(FreePort(), 1, 2)})[0],
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(HasSubstr("rank 1 did not reach rank 0 at 127.0.0.1:"),
                             HasSubstr("MASTER_ADDR and MASTER_PORT say where rank 0 is"))));
}

TEST(Rendezvous, NoSuchHost) {
  LaunchEnvironment environment = Impatient(29500, 1, 2);
  environment.master_address = "no.such.host.invalid";
  EXPECT_THAT(Meet({environment})[0], StatusIs(absl::StatusCode::kDeadlineExceeded,
                                               HasSubstr("no host 'no.such.host.invalid'")));
}

TEST(Rendezvous, RanksContradictEachOther) {
  int port = FreePort();
  std::vector<absl::Status> results =
      Meet({LocalRank(port, 0, 3), LocalRank(port, 1, 3), LocalRank(port, 1, 3)});
  for (const absl::Status& status : results) {
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("were started with RANK=1; each needs a RANK")));
  }
  port = FreePort();
  for (const absl::Status& status : Meet({LocalRank(port, 0, 2), LocalRank(port, 1, 3)})) {
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("was started with WORLD_SIZE=3, rank 0 with WORLD_SIZE=2")));
  }
}

TEST(Rendezvous, ThePortIsTaken) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const Socket taken, ListenAt(0));
  ORIEL_ASSERT_OK_AND_ASSIGN(const int port, PortOf(taken));
  EXPECT_THAT(ConnectRanks(LocalRank(port, 0, 2)).status(),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       AllOf(HasSubstr(absl::StrCat("rank 0 can't listen at port ", port)),
                             HasSubstr("RANK=0 to one process only"))));
}

// Who is of another job, or no rank at all, is sent away; those who belong together meet.
TEST(Rendezvous, StrangersDoNotMatter) {
  const int port = FreePort();
  LaunchEnvironment other = Impatient(port, 1, 2);
  other.job = "yesterday's";
  std::thread first([&] { ORIEL_EXPECT_OK(ConnectRanks(LocalRank(port, 0, 2)).status()); });
  std::thread stranger([&] {
    EXPECT_THAT(ConnectRanks(other).status(),
                StatusIs(absl::StatusCode::kDeadlineExceeded,
                         HasSubstr("rank 0 is of job '', this process of job 'yesterday's'")));
  });
  const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  absl::StatusOr<Socket> nonsense = absl::UnavailableError("");
  while (!nonsense.ok()) nonsense = ConnectOnce("127.0.0.1", port, soon);
  ORIEL_EXPECT_OK(
      WriteBefore(*nonsense, "GET / HTTP/1.1\r\nHost: somewhere.example\r\n\r\n", 42, soon));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ORIEL_EXPECT_OK(ConnectRanks(LocalRank(port, 1, 2)).status());
  first.join();
  stranger.join();
}

}  // namespace
}  // namespace oriel::runtime
