// The emulated driver does what a GPU promises, and shows what one only sometimes punishes.
#include "kernels/cuda/emulator/emulated_driver.h"

#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/emulator/emulated_kernel.h"
#include "runtime/base/status_testing.h"

namespace oriel::kernels::cuda {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y[i] = a * x[i] + y[i]
absl::Status RunAxpy(const EmulatedLaunch&, void** args) {
  const float a = *static_cast<float*>(args[0]);
  const auto* x = *static_cast<const float**>(args[1]);
  auto* y = *static_cast<float**>(args[2]);
  const int64_t count = *static_cast<int64_t*>(args[3]);
  for (int64_t i = 0; i < count; ++i) y[i] += a * x[i];
  return absl::OkStatus();
}
const EmulatedKernelRegistrar axpy({"test_axpy", 256, {4, 8, 8, 8}, &RunAxpy});

absl::Status RunBroken(const EmulatedLaunch&, void**) {
  return absl::InternalError("block 3 does not end");
}
const EmulatedKernelRegistrar broken({"test_broken", 256, {}, &RunBroken});

class EmulatedDriverTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override { Open(GetParam()); }
  void TearDown() override {
    for (const CUstream stream : streams_) driver_->cuStreamDestroy(stream);
  }

  void Open(uint64_t seed, int64_t memory_bytes = 1 << 20) {
    device_ = nullptr;
    EmulatorOptions options;
    options.seed = seed;
    options.memory_bytes = memory_bytes;
    driver_ = &EmulatedDriver(options);
    ORIEL_ASSERT_OK_AND_ASSIGN(device_, Device::Open(*driver_, 0));
    ORIEL_ASSERT_OK_AND_ASSIGN(axpy_, device_->Find("test_axpy"));
  }
  CUstream Stream() {
    CUstream stream = nullptr;
    EXPECT_EQ(driver_->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
              CUDA_SUCCESS);
    streams_.push_back(stream);
    return stream;
  }
  CUevent Event() {
    CUevent event = nullptr;
    EXPECT_EQ(driver_->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return event;
  }
  CUdeviceptr Floats(int64_t count) {
    CUdeviceptr address = 0;
    EXPECT_EQ(driver_->cuMemAlloc(&address, count * sizeof(float)), CUDA_SUCCESS);
    return address;
  }
  void Fill(CUdeviceptr target, const std::vector<float>& values, CUstream stream) {
    EXPECT_EQ(driver_->cuMemcpyAsync(target, reinterpret_cast<CUdeviceptr>(values.data()),
                                     values.size() * sizeof(float), stream),
              CUDA_SUCCESS);
  }
  void Axpy(float a, CUdeviceptr x, CUdeviceptr y, int64_t count, CUstream stream) {
    ORIEL_EXPECT_OK(axpy_.Launch({1, 1, 1}, {32, 1, 1}, stream, a, x, y, count));
  }
  std::vector<float> Values(CUdeviceptr source, int64_t count, CUstream stream) {
    std::vector<float> values(count);
    EXPECT_EQ(driver_->cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(values.data()), source,
                                     count * sizeof(float), stream),
              CUDA_SUCCESS);
    return values;
  }

  const Driver* driver_ = nullptr;
  std::unique_ptr<Device> device_;
  Function axpy_;
  std::vector<CUstream> streams_;
};

INSTANTIATE_TEST_SUITE_P(Seeds, EmulatedDriverTest, ::testing::Range<uint64_t>(0, 12));

TEST_P(EmulatedDriverTest, RunsAStreamInOrder) {
  const CUstream stream = Stream();
  const CUdeviceptr x = Floats(3), y = Floats(3);
  Fill(x, {1, 2, 3}, stream);
  Fill(y, {10, 10, 10}, stream);
  Axpy(2, x, y, 3, stream);
  Axpy(100, x, y, 3, stream);
  EXPECT_THAT(Values(y, 3, stream), ElementsAre(112, 214, 316));
}

TEST_P(EmulatedDriverTest, DoesNothingBeforeTheHostWaits) {
  const CUstream stream = Stream();
  const CUdeviceptr x = Floats(2);
  void* pinned = nullptr;
  ASSERT_EQ(driver_->cuMemAllocHost(&pinned, 8), CUDA_SUCCESS);
  auto* values = static_cast<float*>(pinned);
  values[0] = values[1] = 1;
  ASSERT_EQ(driver_->cuMemcpyAsync(x, reinterpret_cast<CUdeviceptr>(pinned), 8, stream),
            CUDA_SUCCESS);
  values[1] = 5;  // a bug of the caller, which shows
  EXPECT_THAT(Values(x, 2, stream), ElementsAre(1, 5));
  EXPECT_EQ(driver_->cuMemFreeHost(pinned), CUDA_SUCCESS);
}

// Memory that is not pinned may be written over as soon as the call returns.
TEST_P(EmulatedDriverTest, TakesPageableMemoryAtOnce) {
  const CUstream stream = Stream();
  const CUdeviceptr x = Floats(2);
  std::vector<float> values = {1, 2};
  Fill(x, values, stream);
  values = {7, 7};
  EXPECT_THAT(Values(x, 2, stream), ElementsAre(1, 2));
}

TEST_P(EmulatedDriverTest, PoisonsFreshMemory) {
  const CUstream stream = Stream();
  const std::vector<float> values = Values(Floats(4), 4, stream);
  EXPECT_THAT(values, Each(::testing::IsNan()));
}

TEST_P(EmulatedDriverTest, OrdersStreamsByEvents) {
  const CUstream first = Stream(), second = Stream();
  const CUevent event = Event(), back = Event();
  const CUdeviceptr x = Floats(2), y = Floats(2);
  Fill(x, {1, 1}, first);
  Fill(y, {0, 0}, first);
  ASSERT_EQ(driver_->cuEventRecord(event, first), CUDA_SUCCESS);
  ASSERT_EQ(driver_->cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
  Axpy(3, x, y, 2, second);
  ASSERT_EQ(driver_->cuEventRecord(back, second), CUDA_SUCCESS);
  ASSERT_EQ(driver_->cuStreamWaitEvent(first, back, 0), CUDA_SUCCESS);
  Axpy(4, x, y, 2, first);
  EXPECT_THAT(Values(y, 2, first), ElementsAre(7, 7));
}

TEST_P(EmulatedDriverTest, AnEventIsTheOneThatWasRecordedWhenTheWaitWasPut) {
  const CUstream first = Stream(), second = Stream();
  const CUevent event = Event();
  const CUdeviceptr x = Floats(1), y = Floats(1);
  Fill(y, {0}, first);
  Fill(x, {1}, first);
  ASSERT_EQ(driver_->cuEventRecord(event, first), CUDA_SUCCESS);
  ASSERT_EQ(driver_->cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
  Axpy(1, x, y, 1, second);
  ASSERT_EQ(driver_->cuEventRecord(event, second), CUDA_SUCCESS);  // anew
  ASSERT_EQ(driver_->cuEventSynchronize(event), CUDA_SUCCESS);
  EXPECT_EQ(driver_->cuEventQuery(event), CUDA_SUCCESS);
  EXPECT_THAT(Values(y, 1, first), ElementsAre(1));
}

// A missing wait shows: over the seeds both orders come up.
TEST(EmulatedDriver, AMissingEventIsFound) {
  std::set<bool> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    EmulatorOptions options;
    options.seed = seed;
    const Driver& driver = EmulatedDriver(options);
    ORIEL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, Device::Open(driver, 0));
    CUstream first = nullptr, second = nullptr;
    ASSERT_EQ(driver.cuStreamCreateWithPriority(&first, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuStreamCreateWithPriority(&second, 0, 0), CUDA_SUCCESS);
    CUdeviceptr x = 0;
    ASSERT_EQ(driver.cuMemAlloc(&x, 1), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuMemsetD8Async(x, 1, 1, first), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuMemsetD8Async(x, 2, 1, second), CUDA_SUCCESS);
    uint8_t value = 0;
    ASSERT_EQ(driver.cuStreamSynchronize(first), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuStreamSynchronize(second), CUDA_SUCCESS);
    ASSERT_EQ(driver.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(&value), x, 1, first),
              CUDA_SUCCESS);
    orders.insert(value == 2);
  }
  EXPECT_EQ(orders.size(), 2);
}

TEST_P(EmulatedDriverTest, ReplaysAGraph) {
  const CUstream stream = Stream(), side = Stream();
  const CUevent fork = Event(), join = Event();
  const CUdeviceptr x = Floats(1), y = Floats(1), z = Floats(1);
  Fill(x, {1}, stream);
  Fill(y, {0}, stream);
  Fill(z, {0}, stream);
  ASSERT_EQ(driver_->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            CUDA_SUCCESS);
  Axpy(1, x, y, 1, stream);
  ASSERT_EQ(driver_->cuEventRecord(fork, stream), CUDA_SUCCESS);
  ASSERT_EQ(driver_->cuStreamWaitEvent(side, fork, 0), CUDA_SUCCESS);
  Axpy(1, y, z, 1, side);  // z += y
  ASSERT_EQ(driver_->cuEventRecord(join, side), CUDA_SUCCESS);
  ASSERT_EQ(driver_->cuStreamWaitEvent(stream, join, 0), CUDA_SUCCESS);
  Axpy(1, z, y, 1, stream);  // y += z
  CUgraph graph = nullptr;
  ASSERT_EQ(driver_->cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(driver_->cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver_->cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_THAT(Values(y, 1, stream), ElementsAre(0)) << "recording runs nothing";
  ASSERT_EQ(driver_->cuGraphLaunch(exec, stream), CUDA_SUCCESS);  // y 1, z 1, y 2
  ASSERT_EQ(driver_->cuGraphLaunch(exec, stream), CUDA_SUCCESS);  // y 3, z 4, y 7
  EXPECT_THAT(Values(y, 1, stream), ElementsAre(7));
  ASSERT_EQ(driver_->cuGraphExecDestroy(exec), CUDA_SUCCESS);
}

TEST_P(EmulatedDriverTest, RefusesAGraphWithoutItsJoin) {
  const CUstream stream = Stream(), side = Stream();
  const CUevent fork = Event();
  const CUdeviceptr x = Floats(1);
  ASSERT_EQ(driver_->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
            CUDA_SUCCESS);
  ASSERT_EQ(driver_->cuEventRecord(fork, stream), CUDA_SUCCESS);
  ASSERT_EQ(driver_->cuStreamWaitEvent(side, fork, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver_->cuMemsetD8Async(x, 0, 4, side), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(driver_->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

TEST_P(EmulatedDriverTest, RefusesToWaitOrAllocateDuringCapture) {
  const CUstream stream = Stream();
  CUdeviceptr x = Floats(1), y = 0;
  CUgraph graph = nullptr;
  const auto begin = [&] {
    ASSERT_EQ(driver_->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
              CUDA_SUCCESS);
  };
  begin();
  EXPECT_EQ(driver_->cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver_->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  EXPECT_EQ(driver_->cuMemAlloc(&y, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver_->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin();
  float value = 0;
  EXPECT_EQ(driver_->cuMemcpyAsync(x, reinterpret_cast<CUdeviceptr>(&value), 4, stream),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(driver_->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_P(EmulatedDriverTest, RefusesCopiesBeyondAnAllocation) {
  const CUstream stream = Stream();
  const CUdeviceptr x = Floats(4);
  std::vector<float> values(8);
  EXPECT_EQ(driver_->cuMemcpyAsync(x + 4, reinterpret_cast<CUdeviceptr>(values.data()), 16, stream),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(EmulatorError(),
            "the target of a copy of 16 bytes at offset 4 goes beyond an allocation of 16 bytes");
  EXPECT_EQ(driver_->cuMemsetD8Async(x, 0, 17, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver_->cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(values.data()), 0, 4, stream),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_P(EmulatedDriverTest, FindsWhatIsWrittenBeyondAnAllocation) {
  const CUstream stream = Stream();
  const CUdeviceptr x = Floats(5), y = Floats(4);
  Fill(x, {1, 1, 1, 1, 1}, stream);
  Axpy(1, x, y, 5, stream);
  EXPECT_EQ(driver_->cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(EmulatorError(), HasSubstr("beyond an allocation of 16 bytes"));
}

// As on a GPU, nothing works on a device where a kernel has failed.
TEST_P(EmulatedDriverTest, KeepsAnError) {
  ORIEL_ASSERT_OK_AND_ASSIGN(const Function kernel, device_->Find("test_broken"));
  const CUstream stream = Stream();
  const CUdeviceptr x = Floats(1);
  ORIEL_ASSERT_OK(kernel.Launch({}, {}, stream));
  EXPECT_THAT(ORIEL_CUDA(*driver_, cuStreamSynchronize, stream),
              runtime::StatusIs(absl::StatusCode::kInternal,
                                HasSubstr("CUDA_ERROR_LAUNCH_FAILED (719): test_broken: block 3 "
                                          "does not end")));
  EXPECT_EQ(driver_->cuMemsetD8Async(x, 0, 4, stream), CUDA_ERROR_LAUNCH_FAILED);
}

TEST_P(EmulatedDriverTest, RefusesLaunchesThatNoGpuTakes) {
  const CUstream stream = Stream();
  const CUdeviceptr x = Floats(1);
  const auto launch = [&](Grid blocks, Grid threads) {
    return axpy_.Launch(blocks, threads, stream, 1.0f, x, x, int64_t{1});
  };
  EXPECT_THAT(launch({0, 1, 1}, {32, 1, 1}),
              runtime::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0x1x1 blocks")));
  EXPECT_THAT(launch({1, 65536, 1}, {32, 1, 1}),
              runtime::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1x65536x1")));
  EXPECT_THAT(launch({1, 1, 1}, {512, 1, 1}),
              runtime::StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("of 256")));
  EXPECT_THAT(axpy_.AllowShared(1 << 20),
              runtime::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("test_axpy")));
}

TEST_P(EmulatedDriverTest, RunsOutOfMemory) {
  Open(GetParam(), /*memory_bytes=*/1000);
  CUdeviceptr x = 0;
  EXPECT_THAT(ORIEL_CUDA(*driver_, cuMemAlloc, &x, 2000),
              runtime::StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("2000 bytes")));
}

TEST_P(EmulatedDriverTest, CopiesRows) {
  const CUstream stream = Stream();
  const CUdeviceptr x = Floats(6), y = Floats(4);
  Fill(x, {1, 2, 3, 4, 5, 6}, stream);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = x;
  copy.dstDevice = y;
  copy.srcPitch = 12;
  copy.dstPitch = copy.WidthInBytes = 8;
  copy.Height = 2;
  ASSERT_EQ(driver_->cuMemcpy2DAsync(&copy, stream), CUDA_SUCCESS);
  EXPECT_THAT(Values(y, 4, stream), ElementsAre(1, 2, 4, 5));
}

// An operation of a library may wait for another thread's, as a collective does for its peers.
TEST(EmulatedDriver, LibrariesWaitForEachOther) {
  EmulatorOptions options;
  options.devices = 2;
  const Driver& driver = EmulatedDriver(options);
  std::atomic<int> arrived{0};
  const auto rank = [&](int ordinal) {
    ORIEL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, Device::Open(driver, ordinal));
    CUstream stream = nullptr;
    ASSERT_EQ(driver.cuStreamCreateWithPriority(&stream, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(EnqueueEmulated(stream, "a meeting",
                              [&](bool first) {
                                if (first) ++arrived;
                                return arrived == 2 ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
                              }),
              CUDA_SUCCESS);
    EXPECT_EQ(driver.cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(arrived, 2);
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
}

}  // namespace
}  // namespace oriel::kernels::cuda
