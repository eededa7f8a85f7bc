// Jobs whose ranks are threads of a test, connected by TCP.
#ifndef ORIEL_RUNTIME_COMM_TCP_TCP_TESTING_H_
#define ORIEL_RUNTIME_COMM_TCP_TCP_TESTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/comm/tcp/sockets.h"
#include "runtime/comm/tcp/tcp.h"

namespace oriel::runtime {

// A port at which nobody listens: below those that Linux gives to whoever asks for any (by default
// from 32768), of which another process may get it before rank 0 listens.
inline int FreePort() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(10'000, 32'767);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int port = ports(random);
    if (ListenAt(port).ok()) return port;
  }
  ADD_FAILURE() << "no port is free";
  return 0;
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
