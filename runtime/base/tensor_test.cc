#include "runtime/base/tensor.h"

#include <gtest/gtest.h>

namespace oriel::runtime {
namespace {

TEST(TensorTest, ScalarHasOneElement) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ((TensorSpec{DType::kF64, {}}).bytes(), 8);
}

TEST(TensorTest, EmptyDimensionLeavesNoElements) {
  EXPECT_EQ(NumElements({4, 0, 3}), 0);
  EXPECT_EQ((TensorSpec{DType::kF32, {4, 0, 3}}).bytes(), 0);
}

TEST(TensorTest, EveryDTypeHasNameAndSize) {
  EXPECT_EQ(DTypeName(DType::kF32), "f32");
  EXPECT_EQ(DTypeBytes(DType::kF32), 4);
  EXPECT_EQ(DTypeName(DType::kF64), "f64");
  EXPECT_EQ(DTypeBytes(DType::kF64), 8);
  EXPECT_EQ(DTypeName(DType::kF16), "f16");
  EXPECT_EQ(DTypeBytes(DType::kF16), 2);
  EXPECT_EQ(DTypeName(DType::kBF16), "bf16");
  EXPECT_EQ(DTypeBytes(DType::kBF16), 2);
  EXPECT_EQ(DTypeName(DType::kI64), "i64");
  EXPECT_EQ(DTypeBytes(DType::kI64), 8);
  EXPECT_EQ(DTypeName(DType::kI32), "i32");
  EXPECT_EQ(DTypeBytes(DType::kI32), 4);
  EXPECT_EQ(DTypeName(DType::kI8), "i8");
  EXPECT_EQ(DTypeBytes(DType::kI8), 1);
  EXPECT_EQ(DTypeName(DType::kU8), "u8");
  EXPECT_EQ(DTypeBytes(DType::kU8), 1);
  EXPECT_EQ(DTypeName(DType::kBool), "bool");
  EXPECT_EQ(DTypeBytes(DType::kBool), 1);
}

TEST(TensorTest, SpecPrintsDTypeAndShape) {
  EXPECT_EQ((TensorSpec{DType::kF32, {2, 64, 128}}).ToString(), "f32[2, 64, 128]");
  EXPECT_EQ((TensorSpec{DType::kBool, {}}).ToString(), "bool[]");
}

TEST(TensorTest, SpecsCompareByDTypeAndShape) {
  const TensorSpec spec{DType::kF32, {2, 3}};
  EXPECT_EQ(spec, (TensorSpec{DType::kF32, {2, 3}}));
  EXPECT_NE(spec, (TensorSpec{DType::kF64, {2, 3}}));
  EXPECT_NE(spec, (TensorSpec{DType::kF32, {3, 2}}));
}

}  // namespace
}  // namespace oriel::runtime
