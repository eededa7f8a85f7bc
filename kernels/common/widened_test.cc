// Every kernel with f16 and bf16 tensors, whether it takes them itself or by the adapter.
#include "kernels/common/widened.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "dnnl.hpp"
#include "gmock/gmock.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using ::testing::HasSubstr;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;
using Dims = std::vector<int64_t>;

// A tensor of a launch, with random values in [low, high).
struct Arg {
  enum Kind {
    kNarrow,  // of the type under test
    kSingle,  // stays f32: a statistic, a master weight
    kI64,
    kBool,
  } kind;
  Shape shape;
  double low = -1, high = 1;
};

Arg X(Shape shape, double low = -1, double high = 1) {
  return {Arg::kNarrow, std::move(shape), low, high};
}
Arg F32(Shape shape, double low = -1, double high = 1) {
  return {Arg::kSingle, std::move(shape), low, high};
}
Arg I64(Shape shape, double low = 0, double high = 4) {
  return {Arg::kI64, std::move(shape), low, high};
}
Arg Bool(Shape shape) { return {Arg::kBool, std::move(shape), 0, 2}; }

struct Launch {
  const char* kernel;
  std::vector<Arg> operands, results;
  Attributes attributes = {};
};

Launch Unary(const char* kernel, double low = -3, double high = 3) {
  return {kernel, {X({40, 30}, low, high)}, {X({40, 30})}};
}
Launch Binary(const char* kernel, double low = 0.5, double high = 3) {
  return {kernel, {X({40, 30}, low, high), X({30}, low, high)}, {X({40, 30})}};
}
Launch Comparison(const char* kernel) {
  return {kernel, {X({40, 30}), X({40, 1})}, {Bool({40, 30})}};
}
Launch Reduction(const char* kernel) {
  return {kernel, {X({6, 40, 5})}, {X({6, 5})}, {{"dims", Dims{1}}, {"keep_dims", int64_t{0}}}};
}

// At least one for each kernel that takes floats.
std::vector<Launch> Launches() {
  const Attributes kind = {{"kind", "gelu_tanh"}};
  const Attributes last = {{"dim", int64_t{1}}};
  const Attributes first = {{"dim", int64_t{0}}};
  const Attributes conv = {{"strides", Dims{1, 1}},
                           {"pads", Dims{1, 1, 1, 1}},
                           {"dilations", Dims{1, 1}},
                           {"group", int64_t{2}}};
  const Attributes epsilon = {{"epsilon", 1e-6}};
  const Attributes attention = {{"scale", 0.25}, {"causal", int64_t{1}}};
  const Attributes adamw = {
      {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.01}};
  const Attributes transposed = {{"transpose_weight", int64_t{1}}};
  const Shape q = {2, 4, 9, 16}, kv = {2, 2, 9, 16}, rows = {2, 4, 9};
  std::vector<Launch> launches = {
      Unary("neg"),
      Unary("abs"),
      Unary("exp"),
      Unary("log", 0.1, 4),
      Unary("sqrt", 0, 4),
      Unary("rsqrt", 0.1, 4),
      Unary("reciprocal", 0.5, 4),
      Unary("sin"),
      Unary("cos"),
      Unary("tan", -1, 1),
      Unary("asin", -1, 1),
      Unary("acos", -1, 1),
      Unary("atan"),
      Unary("sinh"),
      Unary("cosh"),
      Unary("asinh"),
      Unary("acosh", 1, 4),
      Unary("atanh", -0.9, 0.9),
      Unary("tanh"),
      Unary("sigmoid"),
      Unary("erf"),
      Unary("relu"),
      Unary("sign"),
      Unary("floor"),
      Unary("ceil"),
      Unary("round"),
      Binary("add"),
      Binary("sub"),
      Binary("mul"),
      Binary("div"),
      Binary("pow"),
      Binary("max"),
      Binary("min"),
      Binary("mod"),
      {"pow", {X({70}), X({}, 2, 2)}, {X({70})}},
      Comparison("equal"),
      Comparison("less"),
      Comparison("less_equal"),
      Comparison("greater"),
      Comparison("greater_equal"),
      {"select", {Bool({40, 1}), X({40, 30}), X({30})}, {X({40, 30})}},
      {"cast", {X({40, 30})}, {F32({40, 30})}},
      {"cast", {F32({40, 30})}, {X({40, 30})}},
      {"activation", {X({700})}, {X({700})}, kind},
      {"activation_grad", {X({700}), X({700})}, {X({700})}, kind},
      {"gated_activation", {X({700}), X({700})}, {X({700})}, kind},
      {"gated_activation_grad", {X({700}), X({700}), X({700})}, {X({700}), X({700})}, kind},
      {"matmul", {X({3, 17, 20}), X({3, 20, 33})}, {X({3, 17, 33})}},
      {"matmul", {X({3, 17, 20}), X({3, 20, 33})}, {F32({3, 17, 33})}},
      {"linear", {X({4, 17, 20}), X({33, 20}), X({33})}, {X({4, 17, 33})}, transposed},
      {"linear", {X({4, 17, 20}), X({33, 20}), F32({33})}, {F32({4, 17, 33})}, transposed},
      {"linear_add", {X({4, 17, 20}), X({33, 20}), X({4, 17, 33})}, {X({4, 17, 33})}, transposed},
      {"linear_weight_grad", {X({90, 20}), X({90, 33})}, {X({33, 20})}, transposed},
      {"linear_weight_grad",
       {X({90, 20}), X({90, 33}), F32({33, 20})},
       {F32({33, 20})},
       transposed},
      {"linear_weight_grad", {X({90, 20}), X({90, 33})}, {F32({33, 20})}, transposed},
      {"expert_linear", {X({12, 20}), X({6, 33, 20}), I64({12, 2})}, {X({12, 2, 33})}, transposed},
      {"expert_linear_weight_grad",
       {X({12, 20}), X({12, 2, 33}), I64({12, 2})},
       {X({6, 33, 20})},
       transposed},
      {"expert_linear_weight_grad",
       {X({12, 20}), X({12, 2, 33}), I64({12, 2})},
       {F32({6, 33, 20})},
       transposed},
      {"expert_linear_weight_grad_add",
       {X({12, 20}), X({12, 2, 33}), I64({12, 2}), F32({6, 33, 20})},
       {F32({6, 33, 20})},
       transposed},
      {"conv", {X({2, 4, 7, 7}), X({6, 2, 3, 3}), X({6})}, {X({2, 6, 7, 7})}, conv},
      {"conv", {X({2, 4, 7, 7}), X({6, 2, 3, 3})}, {F32({2, 6, 7, 7})}, conv},
      {"conv_input_grad", {X({2, 6, 7, 7}), X({6, 2, 3, 3})}, {X({2, 4, 7, 7})}, conv},
      {"conv_weight_grad", {X({2, 6, 7, 7}), X({2, 4, 7, 7})}, {X({6, 2, 3, 3})}, conv},
      {"conv_weight_grad", {X({2, 6, 7, 7}), X({2, 4, 7, 7})}, {F32({6, 2, 3, 3})}, conv},
      {"layer_norm", {X({20, 48}), X({48}), X({48})}, {X({20, 48}), F32({20}), F32({20})}, epsilon},
      {"layer_norm_grad",
       {X({200, 48}), X({200, 48}), X({48}), F32({200}), F32({200}, 0.5, 2)},
       {X({200, 48}), X({48}), X({48})}},
      {"layer_norm_grad",
       {X({200, 48}), X({200, 48}), X({48}), F32({200}), F32({200}, 0.5, 2)},
       {X({200, 48}), F32({48}), F32({48})}},
      {"rms_norm", {X({20, 48}), X({48})}, {X({20, 48}), F32({20})}, epsilon},
      {"rms_norm_grad",
       {X({200, 48}), X({200, 48}), X({48}), F32({200}, 0.5, 2)},
       {X({200, 48}), F32({48})}},
      {"rms_norm_grad",
       {X({200, 48}), X({200, 48}), X({48}), F32({200}, 0.5, 2)},
       {X({200, 48}), X({48})}},
      {"softmax", {X({20, 48}, -4, 4)}, {X({20, 48})}, last},
      {"softmax", {X({20, 48}, -4, 4)}, {X({20, 48})}, first},
      {"softmax_grad", {X({20, 48}), X({20, 48}, 0, 0.1)}, {X({20, 48})}, last},
      {"cross_entropy", {X({20, 48}, -4, 4), I64({20})}, {F32({}), F32({}), F32({20})}},
      {"token_losses", {X({20, 48}, -4, 4), I64({20})}, {F32({20}), F32({20})}},
      {"cross_entropy_grad",
       {F32({}), X({20, 48}, -4, 4), I64({20}), F32({20}, 4, 5)},
       {X({20, 48})}},
      {"sum_exp", {X({20, 48}, -4, 4), F32({20}, 0, 1)}, {F32({20})}},
      {"label_logits", {X({20, 48}), I64({20})}, {F32({20})}},
      {"block_logsumexp",
       {X({20, 48}, -4, 4), I64({20})},
       {F32({20, 4}), F32({20})},
       {{"blocks", int64_t{4}}}},
      {"attention", {X(q), X(kv), X(kv)}, {X(q), F32(rows)}, attention},
      {"attention", {X(q), X(kv), X(kv), X({1, 1, 9, 9})}, {X(q), F32(rows)}, attention},
      {"attention_grad",
       {X(q), X(q), X(kv), X(kv), X(q), F32(rows, 1, 2)},
       {X(q), X(kv), X(kv)},
       attention},
      {"rope", {X(q), F32({1, 1, 9, 16}), F32({1, 1, 9, 16})}, {X(q)}},
      {"rope", {X(q), X({1, 1, 9, 8}), X({1, 1, 9, 8})}, {X(q)}},
      {"iota", {}, {X({40, 30})}, last},
      {"fill", {}, {X({40, 30})}, {{"value", 0.3}}},
      {"reshape", {X({40, 30})}, {X({30, 40})}},
      {"transpose", {X({40, 30})}, {X({30, 40})}, {{"permutation", Dims{1, 0}}}},
      {"broadcast", {X({30})}, {X({40, 30})}},
      {"slice",
       {X({40})},
       {X({10})},
       {{"starts", Dims{1}}, {"limits", Dims{30}}, {"strides", Dims{3}}}},
      {"pad",
       {X({40})},
       {X({45})},
       {{"low", Dims{2}}, {"high", Dims{3}}, {"interior", Dims{0}}, {"value", 0.3}}},
      {"concat", {X({4, 5}), X({3, 5})}, {X({7, 5})}, first},
      {"gather", {X({6, 40}), I64({9})}, {X({9, 40})}, first},
      {"scatter_add", {I64({9}), X({9, 40})}, {X({6, 40})}, first},
      {"scatter_add", {I64({9}), X({9, 40})}, {F32({6, 40})}, first},
      Reduction("reduce_sum"),
      Reduction("reduce_mean"),
      Reduction("reduce_max"),
      Reduction("reduce_min"),
      Reduction("reduce_prod"),
      {"reduce_sum", {X({60, 40})}, {F32({40})}, {{"dims", Dims{0}}}},
      {"cumsum", {X({20, 48})}, {X({20, 48})}, last},
      {"dropout", {X({20, 48}), I64({10})}, {X({20, 48})}, {{"ratio", 0.3}, {"site", int64_t{7}}}},
      {"triangular_solve",
       {X({20, 20}, -0.2, 0.2), X({20, 48})},
       {X({20, 48})},
       {{"unit_diagonal", int64_t{1}}}},
      {"delta_scan",
       {X({3, 20, 48}), X({3, 20, 8}, -0.1, 0.1), X({3, 20, 8}, -0.1, 0.1), F32({3, 1, 1}, 0.5, 1),
        F32({8, 48})},
       {X({3, 20, 48}), X({3, 8, 48}), F32({8, 48})}},
      {"argmax", {X({20, 48})}, {I64({20})}, last},
      {"remaining_from", {X({20, 48}), X({20})}, {I64({20})}},
      {"topk", {X({20, 48})}, {I64({20, 5})}, {{"dim", int64_t{1}}, {"k", int64_t{5}}}},
      {"masked_scatter", {X({90}), Bool({90}), X({90})}, {X({90})}},
      {"masked_scatter_grad", {X({90}), Bool({90})}, {X({90}), X({90})}},
      {"merge_features", {X({2, 9, 20}), Bool({2, 9}), X({2, 9, 20})}, {X({2, 9, 20})}},
      {"merge_features_grad", {X({2, 9, 20}), Bool({2, 9})}, {X({2, 9, 20}), X({2, 9, 20})}},
      {"sum_squares", {X({40, 30}), F32({70}), X({60})}, {F32({})}},
      {"sgd",
       {F32({700}), X({700}), F32({}, 1, 1), F32({}, 0.1, 0.1)},
       {F32({700})},
       {{"weight_decay", 0.01}}},
      {"sgd_momentum",
       {F32({700}), X({700}), F32({700}), F32({}, 1, 1), F32({}, 0.1, 0.1)},
       {F32({700}), F32({700})},
       {{"momentum", 0.9}, {"nesterov", int64_t{1}}, {"weight_decay", 0.01}}},
      {"adamw",
       {F32({700}), X({700}), F32({700}), F32({700}, 0, 1), F32({}, 1, 1), F32({}, 0.1, 0.1),
        F32({}, 3, 3)},
       {F32({700}), F32({700}), F32({700})},
       adamw},
  };
  return launches;
}

// Kernels of booleans and integers.
const std::set<std::string> kWithoutFloats = {"and", "or", "xor", "not", "check_image_slots"};

// Launches of other kernels, which round between them, and code of the plan, which rounds as the
// ops that it was: they have tests of their own in bf16.
const std::set<std::string> kMadeOfOthers = {"add_layer_norm",
                                             "add_rms_norm",
                                             "generated",
                                             "linear_activation",
                                             "linear_activation_grad",
                                             "linear_cross_entropy",
                                             "linear_cross_entropy_grad",
                                             "linear_grads",
                                             "linear_logsumexp",
                                             "linear_token_losses"};

DType TypeOf(const Arg& arg, DType narrow, DType single) {
  switch (arg.kind) {
    case Arg::kNarrow:
      return narrow;
    case Arg::kSingle:
      return single;
    case Arg::kI64:
      return DType::kI64;
    default:
      return DType::kBool;
  }
}

std::vector<TensorSpec> TypesOf(const std::vector<Arg>& args, DType narrow, DType single) {
  std::vector<TensorSpec> types;
  for (const Arg& arg : args) types.push_back({TypeOf(arg, narrow, single), arg.shape});
  return types;
}

// Half the distance of two numbers of the type, relative to the lower one.
double Rounding(DType dtype) {
  if (dtype == DType::kBF16) return 0x1p-8;
  return dtype == DType::kF16 ? 0x1p-11 : 0;
}

// Within a rounding, and what f32 loses on the way, of the reference.
void ExpectRounded(const Launch& launch, const Tensor& actual, const Tensor& reference) {
  const std::vector<double> values = actual.values(), expected = reference.values();
  ASSERT_EQ(values.size(), expected.size());
  double scale = 1;
  for (double value : expected) scale = std::max(scale, std::fabs(value));
  const bool exact = actual.spec().dtype == DType::kBool || actual.spec().dtype == DType::kI64;
  for (size_t i = 0; i < values.size(); ++i) {
    const double bound =
        exact ? 0 : Rounding(actual.spec().dtype) * std::fabs(expected[i]) + 5e-6 * scale;
    ASSERT_LE(std::fabs(values[i] - expected[i]), bound)
        << launch.kernel << " " << actual.spec().ToString() << " element " << i << " is "
        << values[i] << ", expected " << expected[i];
  }
}

// The launch with `narrow` against the one with f64 on the same, rounded operands.
void Check(const Launch& launch, DType narrow) {
  SCOPED_TRACE(::testing::Message() << launch.kernel << " " << runtime::DTypeName(narrow));
  std::vector<Tensor> operands, wide;
  int seed = 1;
  for (const Arg& arg : launch.operands) {
    const DType dtype = TypeOf(arg, narrow, DType::kF32);
    operands.push_back(Tensor::Random(dtype, arg.shape, seed++, arg.low, arg.high));
    wide.push_back(
        Tensor({TypeOf(arg, DType::kF64, DType::kF64), arg.shape}, operands.back().values()));
  }
  const std::vector<Tensor> results = RunKernel(
      launch.kernel, operands, TypesOf(launch.results, narrow, DType::kF32), launch.attributes);
  const std::vector<Tensor> references = RunKernel(
      launch.kernel, wide, TypesOf(launch.results, DType::kF64, DType::kF64), launch.attributes);
  for (size_t i = 0; i < results.size(); ++i) ExpectRounded(launch, results[i], references[i]);
}

class NarrowFloatsTest : public ::testing::TestWithParam<int64_t> {
 protected:
  NarrowFloatsTest() { small_tensor = GetParam(); }
  ~NarrowFloatsTest() override { small_tensor = before_; }

 private:
  int64_t before_ = small_tensor;
};

TEST_P(NarrowFloatsTest, AreRoundedOnce) {
  for (const Launch& launch : Launches()) {
    for (DType narrow : {DType::kBF16, DType::kF16}) Check(launch, narrow);
  }
}

// Nothing is small; vectors are; everything is.
INSTANTIATE_TEST_SUITE_P(SmallTensors, NarrowFloatsTest, ::testing::Values(-1, 100, 1 << 16));

TEST(WidenedTest, EveryKernelHasALaunch) {
  std::set<std::string> launched;
  for (const Launch& launch : Launches()) launched.insert(launch.kernel);
  for (const std::string& name : KernelRegistry::Host().Names()) {
    EXPECT_EQ(launched.count(name) + kWithoutFloats.count(name) + kMadeOfOthers.count(name), 1u)
        << "kernel " << name << " needs a launch here, or is one without floats";
  }
}

// Kernels whose large tensors are widened: none of them runs on activations, or stores what it
// sums in bf16.
const std::set<std::string> kByAdapter = {"iota", "cumsum", "triangular_solve", "conv_input_grad",
                                          "conv_weight_grad"};
// .. and those that oneDNN has in bf16 on CPUs with AVX-512 alone.
const std::set<std::string> kByAdapterWithoutAvx512 = {
    "matmul",        "linear",
    "linear_add",    "linear_weight_grad",
    "expert_linear", "expert_linear_weight_grad",
    "conv",          "expert_linear_weight_grad_add"};

bool HaveAvx512() {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return (isa & needed) == needed;
}

TEST(WidenedTest, LargeTensorsAreNot) {
  const int64_t before = small_tensor;
  small_tensor = 100;
  for (const Launch& launch : Launches()) {
    const KernelSpec spec{launch.kernel, TypesOf(launch.operands, DType::kBF16, DType::kF32),
                          TypesOf(launch.results, DType::kBF16, DType::kF32), launch.attributes, 1};
    int64_t small = 0;
    for (const auto* tensors : {&spec.operands, &spec.results}) {
      for (const TensorSpec& tensor : *tensors) {
        const int64_t count = tensor.num_elements();
        if (tensor.dtype == DType::kBF16 && count <= small_tensor)
          small += (4 * count + 63) / 64 * 64;
      }
    }
    absl::StatusOr<KernelFn> function = KernelRegistry::Host().Prepare(spec);
    ASSERT_TRUE(function.ok()) << launch.kernel << ": " << function.status();
    const bool is_product = kByAdapterWithoutAvx512.count(launch.kernel) > 0;
    if (kByAdapter.count(launch.kernel) == 0 && (!is_product || HaveAvx512())) {
      EXPECT_LE(WidenedBytes(*function), small) << launch.kernel;
    }
  }
  small_tensor = before;
}

TEST(WidenedTest, WhatAKernelTakesIsNotWidened) {
  const TensorSpec x{DType::kBF16, {8, 8}}, y{DType::kF16, {8, 8}};
  EXPECT_EQ(WidenedBytes(*KernelRegistry::Host().Prepare({"add", {x, x}, {x}, {}, 1})), 0);
  EXPECT_EQ(WidenedBytes(*KernelRegistry::Host().Prepare({"add", {y, y}, {y}, {}, 1})), 3 * 256);
}

TEST(WidenedTest, OperandsOfBothTypes) {
  Check({"add", {F32({40, 30}), X({40, 30})}, {F32({40, 30})}}, DType::kBF16);
}

TEST(WidenedTest, ResultInPlaceOfAnOperand) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    for (int in_place : {0, 1}) {
      const Tensor a = Tensor::Random(dtype, {700}, 1), b = Tensor::Random(dtype, {700}, 2);
      const Tensor apart = RunKernel("sub", {a, b}, {a.spec()})[0];
      const Tensor inside = RunKernel("sub", {a, b}, {a.spec()}, {}, in_place)[0];
      EXPECT_EQ(inside.values(), apart.values()) << in_place;
    }
  }
}

// The gradient is bf16, the parameter in whose place the result comes f32.
TEST(WidenedTest, UpdateInPlaceOfAMaster) {
  const Tensor p = Tensor::Random(DType::kF32, {700}, 1),
               g = Tensor::Random(DType::kBF16, {700}, 2);
  const std::vector<Tensor> operands = {p, g, Tensor::Scalar(DType::kF32, 1),
                                        Tensor::Scalar(DType::kF32, 0.1)};
  const Attributes decay = {{"weight_decay", 0.01}};
  EXPECT_EQ(RunKernel("sgd", operands, {p.spec()}, decay, 0)[0].values(),
            RunKernel("sgd", operands, {p.spec()}, decay)[0].values());
}

TEST(WidenedTest, WhatF32RefusesIsRefused) {
  const absl::Status shapes =
      TryKernel("exp", {Tensor::Random(DType::kBF16, {3}, 1)}, {{DType::kBF16, {4}}}).status();
  EXPECT_EQ(shapes.code(), absl::StatusCode::kInvalidArgument);
  const Tensor x = Tensor::Random(DType::kBF16, {3}, 1);
  const absl::Status types = TryKernel("and", {x, x}, {{DType::kBool, {3}}}).status();
  EXPECT_EQ(types.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(types.message()), HasSubstr("takes bool; in f32: takes bool"));
}

}  // namespace
}  // namespace oriel::kernels
