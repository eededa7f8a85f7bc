// Jobs whose ranks are threads of a test, connected by TCP.
#ifndef ORIEL_RUNTIME_COMM_TCP_TCP_TESTING_H_
#define ORIEL_RUNTIME_COMM_TCP_TCP_TESTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/comm/tcp/sockets.h"
#include "runtime/comm/tcp/tcp.h"

namespace oriel::runtime {

inline int FreePort() {
  const absl::StatusOr<int> port = FindFreePort();
  EXPECT_TRUE(port.ok()) << port.status();
  return port.value_or(0);
}

inline LaunchEnvironment LocalRank(int port, int64_t rank, int64_t size) {
  LaunchEnvironment environment;
  environment.master_address = "127.0.0.1";
  environment.master_port = port;
  environment.rank = environment.local_rank = rank;
  environment.world_size = size;
  environment.local_world_size = size;
  environment.timeout = std::chrono::seconds(20);
  return environment;
}

// Runs `body` on a thread for each rank, which owns the rank's communicator.
inline void RunTcpRanks(int64_t size,
                        const std::function<void(std::unique_ptr<Communicator>)>& body) {
  const int port = FreePort();
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < size; ++rank) {
    threads.emplace_back([=, &body] {
      ORIEL_ASSERT_OK_AND_ASSIGN(auto world, OpenTcpWorld(LocalRank(port, rank, size)));
      body(std::move(world));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_TCP_TCP_TESTING_H_
