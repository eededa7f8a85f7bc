#include "runtime/comm/nccl/graph_progress.h"

#include <cstdlib>
#include <string>

#include "kernels/cuda/emulator/emulated_driver.h"
#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using kernels::cuda::Device;
using kernels::cuda::Driver;

// On the emulator, or with ORIEL_CUDA_TEST_DEVICE=gpu on device 0.
class DeviceGraphProgress : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* where = std::getenv("ORIEL_CUDA_TEST_DEVICE");
    const Driver* driver = &kernels::cuda::EmulatedDriver();
    if (where != nullptr && std::string(where) == "gpu") {
      ORIEL_ASSERT_OK_AND_ASSIGN(driver, kernels::cuda::SystemDriver());
    }
    ORIEL_ASSERT_OK_AND_ASSIGN(device_, Device::Open(*driver, 0));
    ORIEL_ASSERT_OK_AND_ASSIGN(progress_, GraphProgress::Create(*device_));
    ASSERT_EQ(driver->cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0),
              CUDA_SUCCESS);
  }
  void TearDown() override {
    for (const CUgraphExec exec : execs_) driver().cuGraphExecDestroy(exec);
    if (stream_ != nullptr) driver().cuStreamDestroy(stream_);
  }

  const Driver& driver() const { return device_->driver(); }

  // A graph of so many calls, named by `name` and their number.
  int64_t Record(const std::string& name, int calls) {
    EXPECT_EQ(driver().cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
    for (int i = 0; i < calls; ++i) {
      ORIEL_EXPECT_OK(progress_->Add(name + std::to_string(i), stream_));
    }
    CUgraph graph = nullptr;
    EXPECT_EQ(driver().cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
    CUgraphExec exec = nullptr;
    EXPECT_EQ(driver().cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
    driver().cuGraphDestroy(graph);
    execs_.push_back(exec);
    return progress_->EndGraph();
  }
  void Launch(int64_t graph) {
    ASSERT_EQ(driver().cuGraphLaunch(execs_[graph], stream_), CUDA_SUCCESS);
    ASSERT_EQ(driver().cuStreamSynchronize(stream_), CUDA_SUCCESS);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<GraphProgress> progress_;
  CUstream stream_ = nullptr;
  std::vector<CUgraphExec> execs_;
};

TEST_F(DeviceGraphProgress, NamesTheFirstCallThatAReplayHasNotPassed) {
  const int64_t a = Record("a", 3), b = Record("b", 2);
  EXPECT_TRUE(progress_->HasCalls(a));
  for (int replay = 0; replay < 3; ++replay) {
    const auto of_a = progress_->Replay(a), of_b = progress_->Replay(b);
    EXPECT_EQ(of_a(), "a0");
    EXPECT_EQ(of_b(), "b0");
    Launch(a);
    EXPECT_EQ(of_a(), "");
    EXPECT_EQ(of_b(), "b0");
    Launch(b);
    EXPECT_EQ(of_b(), "");
  }
  // Of two that are under way, the later one.
  const auto first = progress_->Replay(a), second = progress_->Replay(a);
  Launch(a);
  EXPECT_EQ(first(), "");
  EXPECT_EQ(second(), "a0");
}

TEST_F(DeviceGraphProgress, AGraphMayHaveNoCalls) {
  EXPECT_FALSE(progress_->HasCalls(Record("", 0)));
}

TEST_F(DeviceGraphProgress, WhatIsNotCountedIsNamedWithTheRest) {
  for (int64_t i = 0; i < GraphProgress::kMaxCalls - 1; ++i) {
    ORIEL_ASSERT_OK(progress_->Add("before", stream_));
  }
  progress_->EndGraph();
  execs_.push_back(nullptr);
  const int64_t graph = Record("a", 3);
  const auto late = progress_->Replay(graph);
  EXPECT_EQ(late(), "a0");
  Launch(graph);
  EXPECT_EQ(late(), "a1, or one behind it,");
}

}  // namespace
}  // namespace oriel::runtime
