#include "kernels/linear/product_choices.h"

#include <cstdlib>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/registry.h"
#include "runtime/base/folder_testing.h"

namespace oriel::kernels::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class ProductChoicesTest : public ::testing::Test {
 protected:
  // Counts how often it has to choose.
  absl::StatusOr<ProductChoice> Choose(const std::string& product) {
    return KeptChoice(
        file_, product, /*algorithm_bytes=*/3, [&]() -> absl::StatusOr<ProductChoice> {
          ++chosen_;
          return ProductChoice{std::string("\x01\x00\xff", 3), uint64_t{1} << 40, 0.5f, 12.5};
        });
  }
  std::string Text() const { return runtime::ReadFileBytes(file_); }
  void Write(const std::string& text) const { runtime::WriteFileBytes(file_, text); }

  const runtime::TempFolder folder_;
  std::string file_ = folder_ / "choices.jsonl";
  int chosen_ = 0;
};

TEST_F(ProductChoicesTest, AreMadeOnce) {
  for (const char* product : {"a \"b\"", "c", "a \"b\"", "c"}) {
    const absl::StatusOr<ProductChoice> choice = Choose(product);
    ASSERT_TRUE(choice.ok()) << choice.status();
    EXPECT_EQ(choice->algorithm, std::string("\x01\x00\xff", 3));
    EXPECT_EQ(choice->workspace, uint64_t{1} << 40);
    EXPECT_EQ(choice->waves, 0.5f);
    EXPECT_EQ(choice->microseconds, 12.5);
  }
  EXPECT_EQ(chosen_, 2);
}

TEST_F(ProductChoicesTest, WhatIsNotChosenIsNotKept) {
  const auto refuse = [] { return absl::StatusOr<ProductChoice>(absl::UnimplementedError("no")); };
  EXPECT_TRUE(absl::IsUnimplemented(KeptChoice(file_, "a", 3, refuse).status()));
  EXPECT_EQ(Text(), "");
}

TEST_F(ProductChoicesTest, DamagedFilesAreNamed) {
  ASSERT_TRUE(Choose("a").ok());
  const std::string good = Text();
  for (
      const std::string& bad :
      {std::string("{"), std::string("[]"), std::string("{\"product\": \"a\"}"),
       good.substr(0, good.size() / 2),
       std::string(
           R"({"product": "a", "algorithm": "0000", "workspace": 1, "waves": 1, "microseconds": 1})"),
       std::string(
           R"({"product": "a", "algorithm": "xyxyxy", "workspace": 1, "waves": 1, "microseconds": 1})"),
       std::string(
           R"({"product": "a", "algorithm": "000000", "workspace": -1, "waves": 1, "microseconds": 1})")}) {
    Write(good + bad);
    const absl::Status status = Choose("b").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr("choices.jsonl: line 2 is not")) << bad;
  }
  // A line whose end alone is missing is whole.
  Write(good.substr(0, good.size() - 1));
  ASSERT_TRUE(Choose("b").ok());
  EXPECT_THAT(Text(), StartsWith(good));
}

TEST_F(ProductChoicesTest, MissingFoldersAreNamed) {
  file_ = folder_ / "none/choices.jsonl";
  const absl::Status status = Choose("a").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("none/choices.jsonl: can't be opened: No such"));
}

TEST_F(ProductChoicesTest, EarlierOnesWinWhereTimesAreNoise) {
  EXPECT_EQ(FastestOf({10}), 0u);
  EXPECT_EQ(FastestOf({10, 9.9, 10.5}), 0u);
  EXPECT_EQ(FastestOf({10, 9, 8.9, 4, 12}), 3u);
}

// Products of a device are timed, and a second device takes what the first one found.
TEST_F(ProductChoicesTest, ProductsAreTimedOnce) {
  const TensorSpec x{DType::kBF16, {16, 8}}, w{DType::kBF16, {8, 24}}, y{DType::kBF16, {16, 24}};
  const KernelSpec activation{
      "linear_activation", {x, w}, {y, y}, {{"kind", std::string("gelu_tanh")}}};
  const KernelSpec grads{"linear_grads", {x, y}, {w, {DType::kBF16, {24}}}, {}};
  setenv("ORIEL_CUBLASLT_CHOICES", file_.c_str(), 1);
  std::string kept, log;
  for (int run = 0; run < 2; ++run) {
    absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(EmulatedDriver(), 0);
    ASSERT_TRUE(device.ok()) << device.status();
    setenv("ORIEL_LOG", "dispatch", 1);
    ::testing::internal::CaptureStderr();
    for (const KernelSpec& spec : {activation, grads}) {
      const absl::Status status = Registry::Get().Prepare(spec, **device).status();
      EXPECT_TRUE(status.ok()) << status;
    }
    log = ::testing::internal::GetCapturedStderr();
    unsetenv("ORIEL_LOG");
    if (run == 0) {
      kept = Text();
      ASSERT_THAT(kept, HasSubstr("\"workspace\":4096"));
      // By this the second device shows where its choice is from.
      Write(absl::StrReplaceAll(kept, {{"\"workspace\":4096", "\"workspace\":8192"}}));
    }
  }
  EXPECT_THAT(kept, HasSubstr("cuBLASLt 130"));
  EXPECT_THAT(kept, HasSubstr("[16, 24] over 8, bf16 -> bf16, epilogue "));
  EXPECT_THAT(log, HasSubstr("workspace 8192\n"));
  EXPECT_THAT(log, Not(HasSubstr("workspace 4096\n")));
  // An algorithm of no library.
  Write(absl::StrReplaceAll(kept, {{"\"algorithm\":\"", "\"algorithm\":\"00"}}));
  absl::StatusOr<std::unique_ptr<Device>> device = Device::Open(EmulatedDriver(), 0);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_THAT(std::string(Registry::Get().Prepare(activation, **device).status().message()),
              HasSubstr("line 1 is not a product's algorithm; delete the file"));
  unsetenv("ORIEL_CUBLASLT_CHOICES");
}

}  // namespace
}  // namespace oriel::kernels::cuda
