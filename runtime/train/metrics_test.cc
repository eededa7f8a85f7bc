#include "runtime/train/metrics.h"

#include <cmath>

#include "runtime/base/status_testing.h"
#include "runtime/train/data_testing.h"
#include "runtime/train/progress.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

StepMetrics Sample(int64_t step) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.loss = 0.1f;
  metrics.grad_norm = 2.5;
  metrics.learning_rate = 1e-3;
  metrics.tokens_per_second = 12345;
  metrics.step_ms = 8;
  return metrics;
}

// All digits of the f32 0.1 are there.
TEST(MetricsTest, LineHasAllDigits) {
  EXPECT_EQ(EncodeMetrics(Sample(7)),
            R"({"step":7,"loss":0.10000000149011612,"grad_norm":2.5,"lr":0.001,)"
            R"("tokens_per_second":12345.0,"step_ms":8.0})");
}

TEST(MetricsTest, WhatIsNotFiniteOrAbsentIsNull) {
  StepMetrics metrics = Sample(1);
  metrics.loss = std::nan("");
  metrics.grad_norm.reset();
  EXPECT_THAT(EncodeMetrics(metrics), HasSubstr(R"("loss":null,"grad_norm":null)"));
}

TEST(MetricsTest, ResumedRunKeepsTheLinesBefore) {
  TempFolder folder;
  const std::string path = folder / "metrics.jsonl";
  {
    ORIEL_ASSERT_OK_AND_ASSIGN(MetricsFile file, MetricsFile::Open(path, std::nullopt));
    for (int64_t step = 1; step <= 3; ++step) ORIEL_ASSERT_OK(file.Write(Sample(step)));
  }
  WriteFileBytes(path, ReadFileBytes(path) + "{\"step\":4,\"lo");  // killed while writing
  {
    ORIEL_ASSERT_OK_AND_ASSIGN(MetricsFile file, MetricsFile::Open(path, 2));
    // At every moment: a run that is killed now loses nothing.
    EXPECT_EQ(ReadFileBytes(path),
              EncodeMetrics(Sample(1)) + "\n" + EncodeMetrics(Sample(2)) + "\n");
    ORIEL_ASSERT_OK(file.Write(Sample(3)));
  }
  EXPECT_EQ(ReadFileBytes(path), EncodeMetrics(Sample(1)) + "\n" + EncodeMetrics(Sample(2)) + "\n" +
                                     EncodeMetrics(Sample(3)) + "\n");
  { ORIEL_ASSERT_OK(MetricsFile::Open(path, std::nullopt)); }
  EXPECT_EQ(ReadFileBytes(path), "");
}

TEST(MetricsTest, OtherFilesStay) {
  TempFolder folder;
  const std::string path = folder / "notes.txt";
  for (const char* text : {"notes", "notes\nof mine\n", "{\"other\": 1}\n"}) {
    WriteFileBytes(path, text);
    for (const std::optional<int64_t>& resumed :
         {std::optional<int64_t>(), std::optional<int64_t>(2)}) {
      EXPECT_THAT(
          MetricsFile::Open(path, resumed),
          StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("something else than metrics")));
    }
    EXPECT_EQ(ReadFileBytes(path), text);
  }
  for (const char* text : {"", "{\"step\":1,\"lo"}) {
    WriteFileBytes(path, text);
    ORIEL_EXPECT_OK(MetricsFile::Open(path, 2).status());
  }
}

TEST(MetricsTest, FolderMissing) {
  EXPECT_THAT(MetricsFile::Open("/none/such/file", std::nullopt),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/none/such/file")));
}

TEST(ProgressTest, EvaluationsLeft) {
  // After steps 3, 6 and 9 of 10.
  for (const auto& [step, left] : {std::pair{1, 3}, {3, 3}, {4, 2}, {9, 1}, {10, 0}}) {
    EXPECT_EQ(EvaluationsLeft(step, 10, 3), left) << step;
  }
  EXPECT_EQ(EvaluationsLeft(6, 9, 3), 1);  // the last step's is not the training's
  EXPECT_EQ(EvaluationsLeft(9, 9, 3), 0);
  EXPECT_EQ(EvaluationsLeft(1, 10, 0), 0);
}

TEST(ProgressTest, Line) {
  EXPECT_EQ(FormatProgress(Sample(120), 1000, 125.4),
            "step 120/1000  loss 0.1000  lr 1.00e-03  12.3k tok/s  ETA 2:05");
  EXPECT_THAT(FormatProgress(Sample(1), 10, 3725), HasSubstr("ETA 1:02:05"));
}

}  // namespace
}  // namespace oriel::runtime
