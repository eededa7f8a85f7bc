#include "kernels/kernel.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::kernels {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

KernelSpec Spec(const std::string& kernel, std::vector<TensorSpec> operands,
                std::vector<TensorSpec> results, std::map<std::string, Attribute> attributes = {}) {
  return {kernel, std::move(operands), std::move(results), std::move(attributes), 1};
}

TEST(KernelSpecTest, MissingAttributeIsNamed) {
  const absl::Status status = Spec("exp", {}, {}).Float("epsilon").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("kernel exp: attribute 'epsilon' is missing"));
}

TEST(KernelSpecTest, AttributeOfAnotherTypeIsNamed) {
  const KernelSpec spec = Spec("exp", {}, {}, {{"dim", 1.0}});
  EXPECT_THAT(std::string(spec.Int("dim").status().message()),
              HasSubstr("attribute 'dim' is not an integer"));
}

TEST(KernelSpecTest, AttributesAreFound) {
  const KernelSpec spec =
      Spec("exp", {}, {},
           {{"a", int64_t{3}}, {"b", 0.5}, {"c", "gelu"}, {"d", std::vector<int64_t>{1, 2}}});
  EXPECT_EQ(*spec.Int("a"), 3);
  EXPECT_EQ(*spec.Float("b"), 0.5);
  EXPECT_EQ(*spec.String("c"), "gelu");
  EXPECT_EQ(*spec.Ints("d"), (std::vector<int64_t>{1, 2}));
}

TEST(KernelRegistryTest, UnknownKernelIsNotFound) {
  const absl::Status status = KernelRegistry::Host().Prepare(Spec("no_such", {}, {})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'no_such'"));
}

TEST(KernelRegistryTest, RefusalsOfAllImplementationsAreListed) {
  const TensorSpec x{DType::kI64, {2, 2}};
  const absl::Status status = KernelRegistry::Host().Prepare(Spec("matmul", {x, x}, {x})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("matmul(i64[2, 2], i64[2, 2])"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("oneDNN: takes f32 and bf16; loops: take f32 and f64"));
}

TEST(KernelRegistryTest, DispatchIsLoggedWithTheRefusals) {
  const TensorSpec x{DType::kF64, {2, 2}};
  setenv("ORIEL_LOG", "other,dispatch", 1);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(KernelRegistry::Host().Prepare(Spec("matmul", {x, x}, {x})).ok());
  const std::string logged = ::testing::internal::GetCapturedStderr();
  unsetenv("ORIEL_LOG");
  EXPECT_THAT(logged, HasSubstr("dispatch: host: matmul(f64[2, 2], f64[2, 2]): "));
  EXPECT_THAT(logged, HasSubstr("(not: oneDNN: takes f32 and bf16)\n"));
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(KernelRegistry::Host().Prepare(Spec("matmul", {x, x}, {x})).ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(KernelRegistryTest, WrongShapesAreInvalid) {
  const TensorSpec x{DType::kF32, {2, 3}};
  const absl::Status status = KernelRegistry::Host().Prepare(Spec("matmul", {x, x}, {x})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(KernelRegistryTest, HigherPriorityIsAskedFirst) {
  static std::string asked;
  KernelRegistry registry;
  registry.Register("k", 0, [](const KernelSpec&) -> absl::StatusOr<KernelFn> {
    asked += "low ";
    return KernelFn([](const KernelArgs&) { return absl::OkStatus(); });
  });
  registry.Register("k", 10, [](const KernelSpec&) -> absl::StatusOr<KernelFn> {
    asked += "high ";
    return absl::UnimplementedError("not me");
  });
  EXPECT_TRUE(registry.Prepare(Spec("k", {}, {})).ok());
  EXPECT_EQ(asked, "high low ");
}

TEST(KernelRegistryTest, EveryFamilyIsLinked) {
  const std::vector<std::string> names = KernelRegistry::Host().Names();
  EXPECT_THAT(names, IsSupersetOf({"add", "activation", "transpose", "fill", "reduce_sum", "linear",
                                   "conv", "rms_norm", "attention", "rope", "merge_features",
                                   "gather", "cross_entropy", "adamw"}));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

}  // namespace
}  // namespace oriel::kernels
