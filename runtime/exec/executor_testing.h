// What the executor's tests share. The kernels of plans by hand
// (runtime/plan/plan_builder_testing.h) are in test_kernels.cc.
#ifndef ORIEL_RUNTIME_EXEC_EXECUTOR_TESTING_H_
#define ORIEL_RUNTIME_EXEC_EXECUTOR_TESTING_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/comm/in_process.h"
#include "runtime/exec/executor.h"

namespace oriel::runtime {

// Runs ranks as threads.
inline void RunRanks(int64_t size, const std::function<void(int64_t, Communicator*)>& body) {
  std::vector<std::thread> threads;
  for (auto& communicator : MakeInProcessWorld(size)) {
    threads.emplace_back([&body, communicator = std::move(communicator)] {
      body(communicator->rank(), communicator.get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Makes the device of a rank. Null, unless the tests are linked with emulated_testing.cc: then they
// run on emulated CUDA devices.
using BackendMaker = std::shared_ptr<Backend> (*)();
inline BackendMaker& TestBackend() {
  static BackendMaker maker = nullptr;
  return maker;
}

inline ExecutorOptions TestOptions() {
  ExecutorOptions options;
  if (TestBackend() != nullptr) options.backend = TestBackend()();
  return options;
}

// Waits for what has run. The memory of an emulated device is the host's.
inline float* Floats(const Executor& executor, plan::BufferKind kind, const std::string& ref) {
  const absl::StatusOr<BufferView> view = executor.Find(kind, ref);
  EXPECT_TRUE(view.ok()) << view.status();
  if (!view.ok()) return nullptr;
  char byte;
  const absl::Status status = executor.Read(*view, 0, &byte, 1);
  EXPECT_TRUE(status.ok()) << status;
  return static_cast<float*>(view->data);
}

// Sample `index` of the global batch.
inline float Sample(int64_t index, int64_t column) {
  return 0.25f * static_cast<float>(index % 5) - 0.125f * static_cast<float>(column);
}

inline void ExpectNear(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_EXECUTOR_TESTING_H_
