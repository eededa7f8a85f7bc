// Which launches cuDNN takes, on emulated devices; what it computes is in the kernels' own tests,
// which run on it where it takes them.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/libraries/cudnn.h"
#include "kernels/cuda/libraries/cudnn_graph.h"
#include "kernels/cuda/libraries/oldest_versions.h"
#include "kernels/cuda/registry.h"
#include "kernels/testing.h"

namespace oriel::kernels::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CudnnKernelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(EmulatedDriver(), 0);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }
  // What ORIEL_LOG=dispatch says of the launch.
  std::string Dispatched(const KernelSpec& spec) {
    setenv("ORIEL_LOG", "dispatch", 1);
    ::testing::internal::CaptureStderr();
    const absl::StatusOr<KernelFn> function = Registry::Get().Prepare(spec, *device_);
    unsetenv("ORIEL_LOG");
    EXPECT_TRUE(function.ok()) << function.status();
    return ::testing::internal::GetCapturedStderr();
  }
  std::unique_ptr<Device> device_;
};

KernelSpec Attention(int64_t queries, int64_t keys, int64_t depth, DType dtype = DType::kBF16) {
  const TensorSpec q = {dtype, {1, 4, queries, depth}}, k = {dtype, {1, 2, keys, depth}};
  return {"attention",
          {q, k, k},
          {q, {DType::kF32, {1, 4, queries}}},
          {{"scale", 0.1}, {"causal", int64_t{1}}}};
}

KernelSpec AttentionGrad(int64_t rows, int64_t keys) {
  const TensorSpec q = {DType::kBF16, {1, 2, rows, 16}}, k = {DType::kBF16, {1, 2, keys, 16}};
  return {
      "attention_grad", {q, q, k, k, q, {DType::kF32, {1, 2, rows}}}, {q, k, k}, {{"scale", 0.1}}};
}

TEST_F(CudnnKernelsTest, TakesAttention) {
  EXPECT_THAT(Dispatched(Attention(32, 32, 16)), HasSubstr("): MakeCudnnAttention\n"));
  KernelSpec grad = Attention(32, 32, 16);
  const TensorSpec q = grad.operands[0], k = grad.operands[1];
  grad.kernel = "attention_grad";
  grad.operands = {q, q, k, k, q, {DType::kF32, {1, 4, 32}}};
  grad.results = {q, k, k};
  EXPECT_THAT(Dispatched(grad), HasSubstr("): MakeCudnnAttentionGrad\n"));
  // A sink is added to what cuDNN gives, and needs no gradient of its own.
  KernelSpec sunk = Attention(32, 32, 16);
  for (KernelSpec* spec : {&sunk, &grad}) spec->operands.push_back({DType::kF32, {4}});
  EXPECT_THAT(Dispatched(sunk), HasSubstr("): MakeCudnnAttention\n"));
  EXPECT_THAT(Dispatched(grad), HasSubstr("): MakeCudnnAttentionGrad\n"));
}

// What cuDNN refuses, Oriel's own kernel takes.
TEST_F(CudnnKernelsTest, RefusalsAreLogged) {
  const auto expect = [&](const KernelSpec& spec, const char* reason) {
    EXPECT_THAT(Dispatched(spec), AllOf(HasSubstr("MakeAttention (not: "), HasSubstr(reason)));
  };
  expect(Attention(32, 32, 16, DType::kF32), "cuDNN: taken for bf16");
  expect(Attention(32, 32, 12), "multiple of 8");
  expect(Attention(32, 16, 16), "rows that see no key");
  KernelSpec capped = Attention(32, 32, 16);
  capped.attributes["softcap"] = 20.0;
  expect(capped, "cuDNN: not taken with a softcap");
  KernelSpec masked = Attention(16, 32, 16);
  masked.operands.push_back({DType::kBF16, {1, 1, 16, 32}});
  expect(masked, "Bottom right causal mask");
}

TEST_F(CudnnKernelsTest, LargeAttentionWithoutItIsSaidOnce) {
  EXPECT_THAT(Dispatched(Attention(32, 32, 12)), Not(HasSubstr("warning")));
  EXPECT_THAT(Dispatched(Attention(16384, 16384, 12)),
              HasSubstr("warning: attention(bf16[1, 4, 16384, 12], bf16[1, 2, 16384, 12], bf16[1, "
                        "2, 16384, 12]) runs without tensor cores"));
  EXPECT_THAT(Dispatched(Attention(16384, 16384, 20)), Not(HasSubstr("warning")));
}

// A graph that is refused is described in another way; where that is, too, another kernel takes it.
TEST_F(CudnnKernelsTest, ForwardHasASecondDescription) {
  const Cudnn* const emulated = *CudnnFor(device_->driver());
  static int refusals = 0;
  static const auto create = emulated->cudnnBackendCreateDescriptor;
  static Cudnn refusing = *emulated;  // the device keeps it
  refusing.cudnnBackendCreateDescriptor = [](cudnnBackendDescriptorType_t type,
                                             cudnnBackendDescriptor_t* made) {
    const bool refused = type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR && refusals-- > 0;
    return refused ? CUDNN_STATUS_NOT_SUPPORTED : create(type, made);
  };
  ProvideCudnn(device_->driver(), refusing);
  refusals = 1;
  EXPECT_THAT(Dispatched(Attention(32, 32, 16)), HasSubstr("): MakeCudnnAttention\n"));
  refusals = 2;
  EXPECT_THAT(Dispatched(Attention(32, 32, 24)), HasSubstr("MakeAttention (not: "));
  ProvideCudnn(device_->driver(), *emulated);
}

TEST_F(CudnnKernelsTest, OneRow) {
  EXPECT_THAT(Dispatched(Attention(1, 32, 16)), HasSubstr("one causal row of grouped heads"));
  EXPECT_THAT(Dispatched(AttentionGrad(1, 128)),
              HasSubstr("not taken for the gradient of one row"));
  EXPECT_THAT(Dispatched(AttentionGrad(2, 128)), HasSubstr("): MakeCudnnAttentionGrad\n"));
}

// The gradient in pieces of the workspace that is allowed, of samples or of one sample's heads: the
// values are those of the whole. By the oldest version, of which cudnn-frontend demands most.
TEST_F(CudnnKernelsTest, GradientsInPieces) {
  const Cudnn* const emulated = *CudnnFor(device_->driver());
  static Cudnn oldest = *emulated;  // the device keeps it
  oldest.cudnnGetVersion = [] { return size_t{kOldestCudnn}; };
  ProvideCudnn(device_->driver(), oldest);
  using kernels::testing::RunKernel;
  using kernels::testing::Tensor;
  constexpr int64_t kBatch = 4, kHeads = 6, kGroups = 2, kRows = 64, kKeys = 128, kDepth = 16;
  constexpr double kGroupBytes = 3.0 * kRows * kKeys * 2;
  const int64_t usual = CudnnMaxWorkspace();
  for (const bool sequence_first : {false, true}) {
    const auto shape = [&](int64_t heads, int64_t rows) {
      return sequence_first ? Shape{kBatch, rows, heads, kDepth}
                            : Shape{kBatch, heads, rows, kDepth};
    };
    const Tensor q = Tensor::Random(DType::kBF16, shape(kHeads, kRows), 1);
    const Tensor k = Tensor::Random(DType::kBF16, shape(kGroups, kKeys), 2);
    const Tensor v = Tensor::Random(DType::kBF16, shape(kGroups, kKeys), 3);
    const Tensor dy = Tensor::Random(DType::kBF16, shape(kHeads, kRows), 4);
    const Shape mask_shape =
        sequence_first ? Shape{1, kHeads, 1, kKeys} : Shape{kBatch, 1, kRows, kKeys};
    const Tensor mask = Tensor::Random(DType::kBF16, mask_shape, 5);
    const kernels::testing::Attributes attributes = {{"scale", 0.25},
                                                     {"sequence_first", int64_t{sequence_first}}};
    const std::vector<Tensor> made =
        RunKernel("attention", {q, k, v, mask}, {q.spec(), {DType::kF32, {kBatch, kHeads, kRows}}},
                  attributes);
    const auto gradients = [&](int64_t workspace) {
      SetCudnnMaxWorkspace(workspace);
      const std::vector<Tensor> operands = {dy, q, k, v, made[0], made[1], mask};
      KernelSpec spec{"attention_grad", {}, {q.spec(), k.spec(), v.spec()}, attributes};
      for (const Tensor& operand : operands) spec.operands.push_back(operand.spec());
      EXPECT_THAT(Dispatched(spec), HasSubstr("): MakeCudnnAttentionGrad\n"));
      auto results = RunKernel("attention_grad", operands, spec.results, attributes);
      SetCudnnMaxWorkspace(usual);
      return results;
    };
    const std::vector<Tensor> whole = gradients(usual);
    // Two samples, then one, then one group of a sample.
    for (const double groups : {5.0, 2.5, 1.2}) {
      const std::vector<Tensor> pieces = gradients(groups * kGroupBytes + 8192);
      for (size_t i = 0; i < whole.size(); ++i) {
        SCOPED_TRACE(absl::StrCat(groups, ", result ", i));
        kernels::testing::ExpectClose(pieces[i], whole[i].values(), 2);
      }
    }
  }
  SetCudnnMaxWorkspace(1000);
  EXPECT_THAT(Dispatched(AttentionGrad(64, 128)), HasSubstr("MakeAttentionGrad (not: "));
  SetCudnnMaxWorkspace(usual);
  ProvideCudnn(device_->driver(), *emulated);
}

TEST_F(CudnnKernelsTest, GradientsOverATileThatIsHalfFull) {
  const auto grad = [this](int64_t keys, bool masked, bool causal) {
    KernelSpec spec = AttentionGrad(64, keys);
    if (masked) spec.operands.push_back({DType::kBool, {1, 1, 64, keys}});
    spec.attributes["causal"] = int64_t{causal};
    return Dispatched(spec);
  };
  for (const bool masked : {false, true}) {
    EXPECT_THAT(grad(192, masked, false), HasSubstr("not taken for the gradient over 192 keys"));
    EXPECT_THAT(grad(200, masked, false), HasSubstr("): MakeCudnnAttentionGrad\n"));
    EXPECT_THAT(grad(256, masked, false), HasSubstr("): MakeCudnnAttentionGrad\n"));
  }
  EXPECT_THAT(grad(192, false, true), HasSubstr("): MakeCudnnAttentionGrad\n"));
  EXPECT_THAT(grad(192, true, true), HasSubstr("not taken for the gradient over 192 keys"));
}

TEST_F(CudnnKernelsTest, ConvolutionsOfBf16) {
  const auto conv = [](DType dtype, DType result) {
    return KernelSpec{"conv",
                      {{dtype, {2, 8, 9, 9}}, {dtype, {16, 8, 3, 3}}},
                      {{result, {2, 16, 7, 7}}},
                      {{"strides", std::vector<int64_t>{1, 1}},
                       {"pads", std::vector<int64_t>{0, 0, 0, 0}},
                       {"dilations", std::vector<int64_t>{1, 1}}}};
  };
  EXPECT_THAT(Dispatched(conv(DType::kBF16, DType::kBF16)),
              HasSubstr("): MakeCudnnForward (not: depthwise"));
  EXPECT_THAT(Dispatched(conv(DType::kBF16, DType::kF32)), HasSubstr("rounds its results to bf16"));
  EXPECT_THAT(Dispatched(conv(DType::kF32, DType::kF32)), HasSubstr("cuDNN: taken for bf16"));
  KernelSpec biased = conv(DType::kBF16, DType::kBF16);
  biased.operands.push_back({DType::kBF16, {16}});
  EXPECT_THAT(Dispatched(biased), HasSubstr("rounds before it adds a bias"));
}

// A convolution without a bias is cuDNN's, one with a bias of zeros is not.
TEST_F(CudnnKernelsTest, ConvolutionGivesTheValuesOfPatches) {
  using kernels::testing::RunKernel;
  using kernels::testing::Tensor;
  struct Case {
    Shape input, weight, output;
    std::vector<int64_t> strides, pads, dilations;
    int64_t group;
  };
  const Case cases[] = {
      {{2, 8, 9, 7}, {16, 8, 3, 3}, {2, 16, 5, 7}, {2, 1}, {1, 1, 1, 1}, {1, 1}, 1},
      {{2, 8, 9, 7}, {4, 4, 2, 3}, {2, 4, 9, 3}, {1, 1}, {0, 0, 1, 0}, {1, 2}, 2},
      {{3, 4, 20}, {6, 4, 5}, {3, 6, 4}, {5}, {0, 0}, {1}, 1},
      {{2, 3, 4, 6, 6},
       {8, 3, 2, 3, 3},
       {2, 8, 2, 2, 2},
       {2, 3, 3},
       {0, 0, 0, 0, 0, 0},
       {1, 1, 1},
       1}};
  for (const Case& c : cases) {
    const Tensor input = Tensor::Random(DType::kBF16, c.input, 1);
    const Tensor weight = Tensor::Random(DType::kBF16, c.weight, 2);
    const Tensor zeros({DType::kBF16, {c.weight[0]}}, std::vector<double>(c.weight[0], 0));
    const kernels::testing::Attributes attributes = {
        {"strides", c.strides}, {"pads", c.pads}, {"dilations", c.dilations}, {"group", c.group}};
    const TensorSpec result = {DType::kBF16, c.output};
    const Tensor expected = RunKernel("conv", {input, weight, zeros}, {result}, attributes)[0];
    kernels::testing::ExpectClose(RunKernel("conv", {input, weight}, {result}, attributes)[0],
                                  expected.values(), 1);
  }
}

ConvGraph SmallConv(int64_t channels) {
  const auto dense = [](int64_t a, int64_t b, int64_t size) {
    return CudnnTensor{DType::kBF16, {a, b, size, size}, {b * size * size, size * size, size, 1}};
  };
  return {ConvGraph::Kind::kForward,
          dense(1, channels, 4),
          dense(8, channels, 1),
          dense(1, 8, 4),
          {0, 0},
          {0, 0},
          {1, 1},
          {1, 1}};
}

TEST_F(CudnnKernelsTest, GraphsAreMadeOnce) {
  const auto first = MakeCudnnGraph(SmallConv(8), *device_);
  const auto again = MakeCudnnGraph(SmallConv(8), *device_);
  const auto other = MakeCudnnGraph(SmallConv(16), *device_);
  ASSERT_TRUE(first.ok() && again.ok() && other.ok()) << first.status() << other.status();
  EXPECT_EQ(*first, *again);
  EXPECT_NE(*first, *other);
}

// Neither the engine that is not deterministic, nor the one with the huge workspace.
TEST_F(CudnnKernelsTest, EnginesAreChosen) {
  const auto graph = MakeCudnnGraph(SmallConv(8), *device_);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_THAT((*graph)->engine(), HasSubstr("eng2"));
  EXPECT_LE((*graph)->workspace_bytes(), CudnnMaxWorkspace());
  EXPECT_GE((*graph)->workspace_bytes(), 4096);
}

TEST_F(CudnnKernelsTest, ErrorsOfARunNameTheEngine) {
  const auto graph = MakeCudnnGraph(SmallConv(8), *device_);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const absl::Status status = (*graph)->Run(nullptr, {{ConvGraph::kInput, nullptr}}, 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cuDNN: eng2"));
}

}  // namespace
}  // namespace oriel::kernels::cuda
