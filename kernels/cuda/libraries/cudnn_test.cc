// cuDNN's table, and what the machine's cuDNN says to Oriel's graphs, for devices that are not
// there.
#include "kernels/cuda/libraries/cudnn.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/libraries/cudnn_graph.h"

namespace oriel::kernels::cuda {
namespace {

using runtime::DType;
using ::testing::AllOf;
using ::testing::HasSubstr;

size_t fake_version = 91900, fake_cuda = 13000;

Cudnn FakeTable() {
  Cudnn table;
  table.cudnnGetVersion = [] { return fake_version; };
  table.cudnnGetCudartVersion = [] { return fake_cuda; };
  table.cudnnGetErrorString = [](cudnnStatus_t status) {
    return status == CUDNN_STATUS_NOT_SUPPORTED_SHAPE ? "CUDNN_STATUS_NOT_SUPPORTED_SHAPE"
                                                      : "other";
  };
  table.cudnnGetLastErrorString = [](char* message, size_t) {
    strcpy(message, "stride[3] != 1\n");
  };
  return table;
}

TEST(CudnnTest, ErrorsNameTheCallAndTheReason) {
  const Cudnn table = FakeTable();
  const auto map = [&](cudnnStatus_t status) { return CudnnStatus(table, status, "cudnnCall"); };
  EXPECT_TRUE(map(CUDNN_STATUS_SUCCESS).ok());
  const absl::Status status = map(CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(status.message(), "cudnnCall: CUDNN_STATUS_NOT_SUPPORTED_SHAPE (stride[3] != 1)");
  EXPECT_EQ(map(CUDNN_STATUS_BAD_PARAM_NULL_POINTER).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(map(CUDNN_STATUS_NOT_INITIALIZED).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(map(CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(map(CUDNN_STATUS_EXECUTION_FAILED).code(), absl::StatusCode::kInternal);
}

TEST(CudnnTest, OldOrOtherLibrariesAreRefused) {
  const Cudnn table = FakeTable();
  EXPECT_TRUE(CheckCudnn(table).ok());
  fake_cuda = 12090;
  EXPECT_THAT(std::string(CheckCudnn(table).message()),
              AllOf(HasSubstr("is cuDNN 9.19.0 for CUDA 12"), HasSubstr("for CUDA 13")));
  fake_cuda = 13000;
  fake_version = 91002;
  EXPECT_THAT(std::string(CheckCudnn(table).message()), HasSubstr("is cuDNN 9.10.2"));
  fake_version = 91900;
}

// Loading it needs no GPU.
TEST(CudnnTest, EverySymbolIsThere) {
  const absl::StatusOr<const Cudnn*> table = SystemCudnn();
  if (absl::IsUnavailable(table.status()) &&
      table.status().message().find("can't be loaded") != absl::string_view::npos) {
    GTEST_SKIP() << table.status();
  }
  ASSERT_TRUE(table.ok()) << table.status();
  const absl::Status status = CudnnStatus(**table, CUDNN_STATUS_NOT_SUPPORTED, "cudnnCall");
  EXPECT_THAT(std::string(status.message()), HasSubstr("CUDNN_STATUS_NOT_SUPPORTED"));
}

// As cuDNN writes it.
AbsentDevice DeviceOf(int architecture, int multiprocessors, int shared_bytes) {
  return {architecture,
          absl::StrReplaceAll(
              R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
                  "regsPerBlock": 65536, "multiProcessorCount": $sms, "smClockRateKHz": 1980000,
                  "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "warpSize": 32,
                  "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": $shared,
                  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
                  "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
                  "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
                  "totalGlobalMem": 85899345920, "cudaDeviceId": 0, "deviceName": "GPU",
                  "deviceVer": $arch, "driverVer": 13000})",
              {{"$sms", absl::StrCat(multiprocessors)},
               {"$shared", absl::StrCat(shared_bytes)},
               {"$arch", absl::StrCat(architecture * 10)}})};
}

CudnnTensor Dense(DType dtype, std::vector<int64_t> dims) {
  CudnnTensor tensor{dtype, std::move(dims), {}};
  tensor.strides.assign(tensor.dims.size(), 1);
  for (size_t d = tensor.dims.size() - 1; d > 0; --d) {
    tensor.strides[d - 1] = tensor.strides[d] * tensor.dims[d];
  }
  return tensor;
}

// [2, 8, s, d] with so many heads of keys.
SdpaGraph Sdpa(int64_t groups, int64_t queries, int64_t keys, int64_t depth) {
  const DType type = DType::kBF16;
  SdpaGraph graph{};
  graph.query = graph.output = Dense(type, {2, 8, queries, depth});
  graph.key = graph.value = Dense(type, {2, groups, keys, depth});
  graph.statistics = Dense(DType::kF32, {2, 8, queries, 1});
  graph.scale = 0.125;
  return graph;
}

ConvGraph Conv(ConvGraph::Kind kind, std::vector<int64_t> input, std::vector<int64_t> weight,
               std::vector<int64_t> output, int64_t stride, int64_t pad) {
  const size_t spatial = input.size() - 2;
  ConvGraph graph;
  graph.kind = kind;
  graph.input = Dense(DType::kBF16, std::move(input));
  graph.weight = Dense(DType::kBF16, std::move(weight));
  graph.output = Dense(DType::kBF16, std::move(output));
  graph.lows = graph.highs = std::vector<int64_t>(spatial, pad);
  graph.strides = std::vector<int64_t>(spatial, stride);
  graph.dilations = std::vector<int64_t>(spatial, 1);
  return graph;
}

// The machine's cuDNN, asked for sm_80, sm_90 and sm_100. Fused attention needs a libcuda to be
// loaded, though it calls nothing of it here: the toolkit's stub will do.
class AbsentDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::StatusOr<const Cudnn*> table = SystemCudnn();
    if (!table.ok()) GTEST_SKIP() << table.status();
    table_ = *table;
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr &&
        dlopen(ORIEL_CUDA_STUB, RTLD_NOW | RTLD_GLOBAL) == nullptr) {
      GTEST_SKIP() << "no libcuda, and no stub: " << dlerror();
    }
  }
  void ExpectTaken(const CudnnGraphSpec& spec) {
    for (const AbsentDevice& device :
         {DeviceOf(80, 108, 166912), DeviceOf(90, 132, 232448), DeviceOf(100, 148, 232448)}) {
      const absl::Status status = CheckCudnnGraph(spec, *table_, device);
      EXPECT_TRUE(status.ok()) << "sm_" << device.architecture << ": " << status;
    }
  }
  const Cudnn* table_ = nullptr;
};

TEST_F(AbsentDeviceTest, AttentionBothWays) {
  for (bool backward : {false, true}) {
    SCOPED_TRACE(backward ? "backward" : "forward");
    const auto expect = [&](const char* name, SdpaGraph graph) {
      SCOPED_TRACE(name);
      graph.backward = backward;
      ExpectTaken(graph);
    };
    expect("plain, odd length", Sdpa(8, 577, 577, 72));
    SdpaGraph causal = Sdpa(2, 1088, 1088, 128);
    causal.causal = true;
    expect("causal, grouped", causal);
    SdpaGraph ahead = Sdpa(8, 100, 300, 64);
    ahead.causal = true;
    expect("causal, more keys", ahead);
    SdpaGraph window = Sdpa(8, 512, 512, 64);
    window.causal = true;
    window.window = 128;
    expect("window", window);
    SdpaGraph biased = Sdpa(8, 512, 512, 64);
    biased.causal = true;
    biased.bias = Dense(DType::kBF16, {2, 1, 512, 512});
    expect("biased", biased);
  }
}

TEST_F(AbsentDeviceTest, Convolutions) {
  for (auto kind :
       {ConvGraph::Kind::kForward, ConvGraph::Kind::kInputGrad, ConvGraph::Kind::kWeightGrad}) {
    SCOPED_TRACE(static_cast<int>(kind));
    ExpectTaken(Conv(kind, {8, 64, 56, 56}, {128, 64, 3, 3}, {8, 128, 56, 56}, 1, 1));
    ExpectTaken(Conv(kind, {8, 64, 56, 56}, {64, 32, 3, 3}, {8, 64, 56, 56}, 1, 1));
  }
}

TEST_F(AbsentDeviceTest, RefusalsSayWhy) {
  const absl::Status odd = CheckCudnnGraph(Sdpa(8, 64, 64, 12), *table_, DeviceOf(90, 132, 232448));
  EXPECT_EQ(odd.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(odd.message()), AllOf(HasSubstr("cuDNN: "), HasSubstr("multiple of 8")));
  const absl::Status device = CheckCudnnGraph(Sdpa(8, 64, 64, 64), *table_, {90, "{}"});
  EXPECT_THAT(std::string(device.message()), HasSubstr("does not take the properties"));
}

}  // namespace
}  // namespace oriel::kernels::cuda
