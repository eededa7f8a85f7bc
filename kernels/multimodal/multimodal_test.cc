#include "kernels/multimodal/multimodal.h"

#include "gmock/gmock.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using ::testing::AllOf;
using testing::ExpectClose;
using ::testing::HasSubstr;
using testing::kFloats;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

TEST(MaskedScatterTest, TakesTheSourceInOrder) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kBF16, DType::kU8}) {
    const Tensor input({dtype, {2, 3}}, {1, 2, 3, 4, 5, 6});
    const Tensor mask({DType::kBool, {2, 3}}, {0, 1, 0, 1, 1, 0});
    const Tensor source({dtype, {4}}, {10, 20, 30, 40});  // one more than is taken
    ExpectClose(RunKernel("masked_scatter", {input, mask, source}, {input.spec()})[0],
                {1, 10, 3, 20, 30, 6});
  }
}

// More pieces than a block of a device has threads, and such with nothing to take.
TEST(MaskedScatterTest, NumbersManyPieces) {
  const int64_t count = 257 * 4096 + 5;
  std::vector<double> input(count), mask(count), source, expected(count);
  for (int64_t i = 0; i < count; ++i) {
    input[i] = expected[i] = static_cast<double>(i % 100);
    if (i / 4096 % 7 == 3 || i % 3 != 1) continue;
    mask[i] = 1;
    expected[i] = static_cast<double>(source.size() % 251);
    source.push_back(expected[i]);
  }
  const Shape taken = {static_cast<int64_t>(source.size())};
  const Tensor x({DType::kU8, {count}}, input);
  EXPECT_EQ(
      RunKernel("masked_scatter",
                {x, Tensor({DType::kBool, {count}}, mask), Tensor({DType::kU8, taken}, source)},
                {x.spec()})[0]
          .values(),
      expected);
}

TEST(MaskedScatterTest, TooShortSourceIsAnError) {
  const Tensor input({DType::kF32, {3}}, {1, 2, 3});
  const Tensor mask({DType::kBool, {3}}, {1, 1, 1});
  const Tensor source({DType::kF32, {2}}, {1, 2});
  const absl::Status status =
      TryKernel("masked_scatter", {input, mask, source}, {input.spec()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("selects 3 elements, but the source has 2"));
}

TEST(MaskedScatterTest, Gradient) {
  for (DType dtype : kFloats) {
    const Tensor dy({dtype, {2, 3}}, {1, 2, 3, 4, 5, 6});
    const Tensor mask({DType::kBool, {2, 3}}, {0, 1, 0, 1, 1, 0});
    const auto grads = RunKernel("masked_scatter_grad", {dy, mask}, {dy.spec(), {dtype, {5}}});
    ExpectClose(grads[0], {1, 0, 3, 0, 0, 6});
    ExpectClose(grads[1], {2, 4, 5, 0, 0});
  }
}

// Sample 0 has its two feature rows at positions 1 and 3, sample 1 has no image.
const TensorSpec kMaskSpec = {DType::kBool, {2, 4}};
const std::vector<double> kMask = {0, 1, 0, 1, 0, 0, 0, 0};

TEST(MergeFeaturesTest, MergesPerSample) {
  for (DType dtype : kFloats) {
    const Tensor input = Tensor::Random(dtype, {2, 4, 5}, 1),
                 features = Tensor::Random(dtype, {2, 2, 5}, 2);
    std::vector<double> expected = input.values();
    const std::vector<double> rows = features.values();
    std::copy(rows.begin(), rows.begin() + 5, expected.begin() + 5);
    std::copy(rows.begin() + 5, rows.begin() + 10, expected.begin() + 15);
    EXPECT_EQ(
        RunKernel("merge_features", {input, Tensor(kMaskSpec, kMask), features}, {input.spec()})[0]
            .values(),
        expected);
  }
}

TEST(MergeFeaturesTest, Gradient) {
  for (DType dtype : kFloats) {
    const Tensor dy = Tensor::Random(dtype, {2, 4, 5}, 3);
    std::vector<double> input_grad = dy.values();
    std::vector<double> features_grad(20, 0.0);
    std::copy_n(input_grad.begin() + 5, 5, features_grad.begin());
    std::copy_n(input_grad.begin() + 15, 5, features_grad.begin() + 5);
    std::fill_n(input_grad.begin() + 5, 5, 0.0);
    std::fill_n(input_grad.begin() + 15, 5, 0.0);
    const auto grads = RunKernel("merge_features_grad", {dy, Tensor(kMaskSpec, kMask)},
                                 {dy.spec(), {dtype, {2, 2, 5}}});
    EXPECT_EQ(grads[0].values(), input_grad);
    EXPECT_EQ(grads[1].values(), features_grad);
  }
}

TEST(MergeFeaturesTest, ManySamplesOnSeveralThreads) {
  const int64_t batch = 16, length = 64, count = 9, width = 128;
  std::vector<double> mask(batch * length, 0.0);
  for (int64_t i = 0; i < batch; ++i) {
    for (int64_t j = 0; j < count && i % 3 != 0; ++j) mask[i * length + j * 7 % length] = 1;
  }
  const Tensor input = Tensor::Random(DType::kF32, {batch, length, width}, 4);
  const Tensor features = Tensor::Random(DType::kF32, {batch, count, width}, 5);
  std::vector<double> expected = input.values();
  const std::vector<double> rows = features.values();
  for (int64_t i = 0; i < batch; ++i) {
    int64_t next = 0;
    for (int64_t j = 0; j < length; ++j) {
      if (mask[i * length + j] == 0) continue;
      std::copy_n(rows.begin() + (i * count + next++) * width, width,
                  expected.begin() + (i * length + j) * width);
    }
  }
  const Tensor m({DType::kBool, {batch, length}}, mask);
  EXPECT_EQ(RunKernel("merge_features", {input, m, features}, {input.spec()})[0].values(),
            expected);
}

TEST(MergeFeaturesTest, TooManyPositionsNameTheSample) {
  const Tensor input = Tensor::Random(DType::kF32, {2, 4, 5}, 1),
               features = Tensor::Random(DType::kF32, {2, 2, 5}, 2);
  const Tensor mask(kMaskSpec, {0, 1, 0, 1, 1, 1, 1, 0});
  for (const char* kernel : {"merge_features", "merge_features_grad"}) {
    const bool grad = kernel != std::string("merge_features");
    const absl::Status status =
        grad ? TryKernel(kernel, {input, mask}, {input.spec(), features.spec()}).status()
             : TryKernel(kernel, {input, mask, features}, {input.spec()}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("sample 1 of the microbatch has 3 image positions"),
                      HasSubstr("more than the 2 image features")));
  }
}

// Sample 0 has one of two images: its features are the first rows, the others get no cotangent.
TEST(MergeFeaturesTest, FewerImagesThanDeclared) {
  const Tensor input = Tensor::Random(DType::kF32, {1, 4, 3}, 1),
               features = Tensor::Random(DType::kF32, {1, 4, 3}, 2);
  const Tensor mask({DType::kBool, {1, 4}}, {0, 1, 1, 0});
  std::vector<double> expected = input.values();
  const std::vector<double> rows = features.values();
  std::copy_n(rows.begin(), 6, expected.begin() + 3);
  EXPECT_EQ(RunKernel("merge_features", {input, mask, features}, {input.spec()})[0].values(),
            expected);
  const auto grads =
      RunKernel("merge_features_grad", {input, mask}, {input.spec(), features.spec()});
  std::vector<double> features_grad(12, 0.0);
  std::copy_n(input.values().begin() + 3, 6, features_grad.begin());
  EXPECT_EQ(grads[1].values(), features_grad);
}

absl::StatusOr<std::vector<Tensor>> CheckSlots(const std::vector<double>& mask,
                                               const std::vector<double>& images) {
  const Tensor mask_tensor({DType::kBool, {2, 5}}, mask);
  const Tensor count({DType::kI64, {2}}, images);
  return TryKernel("check_image_slots", {mask_tensor, count}, {mask_tensor.spec()},
                   {{"rows_per_image", int64_t{2}}});
}

TEST(CheckImageSlotsTest, GivesTheMaskBack) {
  const std::vector<double> mask = {0, 1, 1, 1, 1, 0, 0, 0, 0, 0};
  const auto checked = CheckSlots(mask, {2, 0});
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ((*checked)[0].values(), mask);
}

TEST(CheckImageSlotsTest, NamesSampleAndNumbers) {
  const std::vector<double> mask = {0, 1, 1, 0, 0, 0, 0, 0, 1, 1};
  for (const double images : {0.0, 2.0, -1.0}) {
    const absl::Status status = CheckSlots(mask, {1, images}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(status.message()),
        HasSubstr("sample 1 of the microbatch has 2 image positions, but it brought " +
                  std::to_string(static_cast<int>(images)) + " images of 2 positions each"));
  }
  EXPECT_THAT(
      std::string(CheckSlots({1, 1, 1, 0, 0, 0, 0, 0, 0, 0}, {1, 0}).status().message()),
      HasSubstr("sample 0 of the microbatch has 3 image positions, but it brought 1 image"));
}

}  // namespace
}  // namespace oriel::kernels
