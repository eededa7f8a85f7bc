#include "runtime/train/random_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/common/parallel.h"
#include "runtime/base/float16.h"
#include "runtime/base/philox.h"
#include "runtime/base/status_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

plan::InitialValue Normal(double mean, double deviation, uint64_t seed = 0) {
  plan::InitialValue value;
  value.set_seed(seed);
  value.mutable_normal()->set_mean(mean);
  value.mutable_normal()->set_deviation(deviation);
  return value;
}

plan::InitialValue Uniform(double low, double high, uint64_t seed = 0) {
  plan::InitialValue value;
  value.set_seed(seed);
  value.mutable_uniform()->set_low(low);
  value.mutable_uniform()->set_high(high);
  return value;
}

std::vector<float> Make(const plan::InitialValue& initial, const std::string& name, int64_t begin,
                        int64_t count, int threads = 1) {
  std::vector<float> values(count, -1e30f);
  const absl::Status status = FillInitialValue(initial, name, {DType::kF32, {begin + count}},
                                               {{begin}, {count}}, threads, values.data());
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

// Against the formulas of the header in double precision.
TEST(RandomValuesTest, AreWhatTheHeaderSays) {
  const std::string name = "a.weight";
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  const uint64_t seed = 0x1234567890abcdef;
  const int64_t begin = (int64_t{1} << 34) + 8;  // the block's number takes both words
  const auto normals = Make(Normal(0.5, 2, seed), name, begin, 4096);
  const auto uniforms = Make(Uniform(-3, 1, seed), name, begin, 4096);
  for (int64_t i = 0; i < 4096; i += 4) {
    const uint64_t block = (begin + i) / 4;
    const PhiloxCounter words =
        Philox({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    for (int64_t j = 0; j < 4; ++j) {
      EXPECT_NEAR(uniforms[i + j], -3 + 4 * ((words[j] >> 8) / 16777216.0), 1e-6);
      const double u = ((words[j & 2] >> 1) + 0.5) / 2147483648.0;
      const double angle = 2 * M_PI * (words[(j & 2) + 1] / 4294967296.0);
      const double z =
          std::sqrt(-2 * std::log(u)) * (j % 2 == 0 ? std::cos(angle) : std::sin(angle));
      EXPECT_NEAR(normals[i + j], 0.5 + 2 * z, 4e-6);
    }
  }
}

// The same bits on every machine: numbers that were written down once.
TEST(RandomValuesTest, KnownBits) {
  const auto normals = Make(Normal(0, 1, 7), "w", 0, 4),
             uniforms = Make(Uniform(0, 1, 7), "w", 0, 4);
  std::vector<uint32_t> bits(8);
  std::memcpy(bits.data(), normals.data(), 16);
  std::memcpy(bits.data() + 4, uniforms.data(), 16);
  EXPECT_THAT(bits, ElementsAre(0xbe18b3b7, 0x3c28bfbf, 0x3fb63f7f, 0x3de5af5a, 0x3f7d27ea,
                                0x3efa6178, 0x3eb8a422, 0x3c4cf8c0));
}

// Any cut of a tensor into ranges, by any number of threads, gives the whole's bits.
TEST(RandomValuesTest, PiecesEqualTheWhole) {
  kernels::min_parallel_work = 1;
  for (const auto& initial : {Normal(0, 0.02, 3), Uniform(-0.1, 0.1, 3)}) {
    const int64_t count = 10'007;
    const std::vector<float> whole = Make(initial, "w", 0, count);
    EXPECT_EQ(Make(initial, "w", 0, count), whole);
    EXPECT_EQ(Make(initial, "w", 0, count, /*threads=*/3), whole);
    for (int64_t piece : {1, 3, 1000, 1024, 4097}) {
      std::vector<float> joined;
      for (int64_t begin = 0; begin < count; begin += piece) {
        const auto part = Make(initial, "w", begin, std::min(piece, count - begin), 2);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      EXPECT_EQ(joined, whole) << piece;
    }
  }
}

TEST(RandomValuesTest, SeedAndNameGiveOtherValues) {
  const auto base = Make(Normal(0, 1, 1), "a", 0, 64);
  for (const auto& other : {Make(Normal(0, 1, 2), "a", 0, 64), Make(Normal(0, 1, 1), "b", 0, 64),
                            Make(Normal(0, 1, uint64_t{1} << 32), "a", 0, 64)}) {
    for (int i = 0; i < 64; ++i) EXPECT_NE(base[i], other[i]);
  }
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0, neighbours = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments moments;
  const auto n = static_cast<double>(values.size());
  for (float value : values) moments.mean += value / n;
  for (size_t i = 0; i < values.size(); ++i) {
    const double d = values[i] - moments.mean;
    moments.variance += d * d / n;
    moments.skewness += d * d * d / n;
    moments.kurtosis += d * d * d * d / n;
    if (i > 0) moments.neighbours += d * (values[i - 1] - moments.mean) / n;
  }
  return moments;
}

// Bounds of five standard errors or more, for four million values.
TEST(RandomValuesTest, NormalMoments) {
  const auto values = Make(Normal(1, 2, 11), "w", 0, 1 << 22, 2);
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.mean, 1, 5 * 2 / 2048.0);
  EXPECT_NEAR(moments.variance, 4, 5 * 4 * 1.42 / 2048);
  EXPECT_NEAR(moments.skewness / 8, 0, 5 * 2.45 / 2048);
  EXPECT_NEAR(moments.kurtosis / 16, 3, 5 * 9.8 / 2048);
  EXPECT_NEAR(moments.neighbours / 4, 0, 5 / 2048.0);
  // Shares within one, two and three deviations.
  for (auto [bound, share] : {std::pair{1.0, 0.682689}, {2.0, 0.954500}, {3.0, 0.997300}}) {
    int64_t inside = 0;
    for (float value : values) inside += std::fabs(value - 1) < 2 * bound;
    EXPECT_NEAR(static_cast<double>(inside) / (1 << 22), share, 5 * 0.5 / 2048);
  }
}

TEST(RandomValuesTest, UniformMoments) {
  const auto values = Make(Uniform(-2, 4, 11), "w", 0, 1 << 22, 2);
  const Moments moments = MomentsOf(values);
  EXPECT_NEAR(moments.mean, 1, 5 * 1.74 / 2048);
  EXPECT_NEAR(moments.variance, 3, 5 * 2.7 / 2048);
  EXPECT_NEAR(moments.neighbours / 3, 0, 5 / 2048.0);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -2.0f);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 4.0f);
}

TEST(RandomValuesTest, ConstantsAndNarrowTypes) {
  plan::InitialValue one;
  one.set_constant(1.5);
  EXPECT_THAT(Make(one, "w", 5, 3000), Each(1.5f));
  const auto wide = Make(Normal(0, 1), "w", 10, 100);
  std::vector<uint16_t> bf16(100);
  std::vector<double> f64(100);
  ASSERT_TRUE(
      FillInitialValue(Normal(0, 1), "w", {DType::kBF16, {110}}, {{10}, {100}}, 1, bf16.data())
          .ok());
  ASSERT_TRUE(
      FillInitialValue(Normal(0, 1), "w", {DType::kF64, {110}}, {{10}, {100}}, 1, f64.data()).ok());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(bf16[i], FloatToBFloat16(wide[i]));
    EXPECT_EQ(f64[i], wide[i]);
  }
}

// Columns, rows and blocks of a matrix have the matrix's values, on any number of threads.
TEST(RandomValuesTest, BoxesHaveTheValuesOfTheWhole) {
  const int64_t saved = kernels::min_parallel_work;
  kernels::min_parallel_work = 1;
  const Shape shape = {6, 35, 67};
  for (const plan::InitialValue& initial : {Normal(0, 1, 3), Uniform(-1, 1, 3)}) {
    const auto whole = Make(initial, "w", 0, NumElements(shape));
    for (const Box& box : {Box{{2, 0, 0}, {3, 35, 67}}, Box{{0, 30, 0}, {6, 5, 67}},
                           Box{{0, 0, 66}, {6, 35, 1}}, Box{{5, 3, 7}, {1, 20, 33}}}) {
      std::vector<float> expected(box.num_elements()), values(box.num_elements());
      CopyBox(WholeBox(shape), whole.data(), box, expected.data(), sizeof(float));
      for (const int threads : {1, 3}) {
        ORIEL_ASSERT_OK(
            FillInitialValue(initial, "w", {DType::kF32, shape}, box, threads, values.data()));
        EXPECT_EQ(values, expected) << box.ToString();
      }
    }
  }
  kernels::min_parallel_work = saved;
}

TEST(RandomValuesTest, WhatCannotBeMade) {
  int64_t target[4];
  EXPECT_THAT(FillInitialValue(Normal(0, 1), "w", {DType::kI64, {4}}, WholeBox({4}), 1, target),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the initial value of w")));
  EXPECT_THAT(
      FillInitialValue(plan::InitialValue(), "w", {DType::kF32, {4}}, WholeBox({4}), 1, target),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("the initial value of w")));
}

}  // namespace
}  // namespace oriel::runtime
