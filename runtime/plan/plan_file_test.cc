#include "runtime/plan/plan_file.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "google/protobuf/util/message_differencer.h"
#include "runtime/base/crc32.h"
#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder_testing.h"

namespace oriel::runtime {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PlanFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("oriel_plan_file_" + std::to_string(getpid()) + "_" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  std::string WriteBytes(const std::string& bytes) const {
    std::ofstream(Path("model.oplan"), std::ios::binary) << bytes;
    return Path("model.oplan");
  }

  // A valid file, to be damaged.
  static std::string Bytes() { return EncodePlan(SmallTrainingPlan(2, 3)).value(); }

  // Sets a little-endian number of the header and makes its checksum right again.
  static void Patch(std::string& bytes, size_t offset, uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes[offset + i] = static_cast<char>(value >> (8 * i));
    const uint32_t sum = Crc32(std::string_view(bytes).substr(0, 28));
    for (int i = 0; i < 4; ++i) bytes[28 + i] = static_cast<char>(sum >> (8 * i));
  }

  fs::path folder_;
};

TEST_F(PlanFileTest, ReadsWhatWasWritten) {
  const plan::Plan plan = SmallTrainingPlan(2, 3);
  ORIEL_ASSERT_OK(WritePlan(plan, Path("model.oplan")));
  ORIEL_ASSERT_OK_AND_ASSIGN(const plan::Plan read, ReadPlan(Path("model.oplan")));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(plan, read));
}

TEST_F(PlanFileTest, SamePlanSameBytes) {
  plan::Plan plan = SmallTrainingPlan(2, 3);
  auto& attributes = *plan.mutable_programs(0)
                          ->mutable_segments(0)
                          ->mutable_instructions(0)
                          ->mutable_launch()
                          ->mutable_attributes();
  for (int i = 0; i < 50; ++i) attributes["a" + std::to_string(i)].set_i(i);
  const plan::Plan copy = DecodePlan(EncodePlan(plan).value(), "copy").value();
  EXPECT_EQ(EncodePlan(plan).value(), EncodePlan(copy).value());
}

TEST_F(PlanFileTest, ReplacesAndLeavesNothingBehind) {
  ORIEL_ASSERT_OK(WritePlan(SmallTrainingPlan(1, 1), Path("model.oplan")));
  ORIEL_ASSERT_OK(WritePlan(SmallTrainingPlan(4, 1), Path("model.oplan")));
  EXPECT_EQ(ReadPlan(Path("model.oplan"))->world_size(), 4);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(PlanFileTest, WriteNamesTheFile) {
  EXPECT_THAT(WritePlan(SmallTrainingPlan(1, 1), Path("none/model.oplan")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/model.oplan")));
}

// It could not be read again.
TEST_F(PlanFileTest, WriteRefusesNamesThatAreNotUtf8) {
  plan::Plan plan = SmallTrainingPlan(1, 1);
  plan.mutable_provenance()->set_model_path("mod\xe8le.onnx");
  EXPECT_THAT(WritePlan(plan, Path("model.oplan")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("UTF-8")));
}

TEST_F(PlanFileTest, Missing) {
  EXPECT_THAT(
      ReadPlan(Path("none.oplan")),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("there is no plan " + folder_.string())));
}

TEST_F(PlanFileTest, Folder) {
  EXPECT_THAT(ReadPlan(folder_.string()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
}

TEST_F(PlanFileTest, NotAPlan) {
  for (const std::string& text : {std::string("model: llava\n"), std::string(100, 'x')}) {
    EXPECT_THAT(ReadPlan(WriteBytes(text)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not a plan")));
  }
}

// Every way to cut the file says how much there should be, as far as that is known.
TEST_F(PlanFileTest, Truncated) {
  const std::string bytes = Bytes();
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto plan = DecodePlan(std::string_view(bytes).substr(0, size), "model.oplan");
    const std::string expected = size < 32 ? "expected at least 32 bytes"
                                           : "expected " + std::to_string(bytes.size()) + " bytes";
    ASSERT_THAT(plan, StatusIs(absl::StatusCode::kDataLoss,
                               AllOf(HasSubstr("model.oplan is truncated: " + expected),
                                     HasSubstr("have " + std::to_string(size)))));
  }
  EXPECT_THAT(ReadPlan(WriteBytes("")), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("empty")));
}

TEST_F(PlanFileTest, CorruptAnywhere) {
  const std::string bytes = Bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] ^= 0x10;
    const auto plan = DecodePlan(damaged, "model.oplan");
    ASSERT_FALSE(plan.ok()) << "byte " << i;
    if (i >= 32) {
      ASSERT_THAT(plan, StatusIs(absl::StatusCode::kDataLoss,
                                 HasSubstr("corrupt: the checksum of its contents")));
    } else if (i >= 8) {
      ASSERT_THAT(plan, StatusIs(absl::StatusCode::kDataLoss,
                                 HasSubstr("corrupt: the checksum of its header")));
    }
  }
}

TEST_F(PlanFileTest, BytesBehindTheEnd) {
  EXPECT_THAT(ReadPlan(WriteBytes(Bytes() + "!")),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("is corrupt: expected")));
}

TEST_F(PlanFileTest, NewerFormat) {
  std::string bytes = Bytes();
  Patch(bytes, 8, 99);
  ORIEL_EXPECT_OK(ReadPlan(WriteBytes(bytes)));  // newer, but compatible
  Patch(bytes, 12, 99);
  EXPECT_THAT(
      ReadPlan(WriteBytes(bytes)),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("was written by a newer Oriel (format 99, this one reads up to "),
                     HasSubstr("): update oriel-run"))));
}

// Readers of before the format are told so, but not of plans without what it adds.
TEST_F(PlanFileTest, PlansWithWhatIsNewNeedANewerReader) {
  const auto oldest_reader = [](const plan::Plan& plan) -> uint32_t {
    absl::StatusOr<std::string> bytes = EncodePlan(plan);
    return bytes.ok() ? static_cast<unsigned char>((*bytes)[12]) : 0;
  };
  plan::Plan plan;
  plan.add_parameters()->set_name("w");
  EXPECT_EQ(oldest_reader(plan), kOldestPlanFormat);
  plan.mutable_parameters(0)->mutable_part_of()->set_tensor("whole");
  EXPECT_EQ(oldest_reader(plan), kOldestReaderOfParts);
  plan::Buffer* buffer = plan.add_programs()->add_buffers();
  buffer->set_kind(plan::GRADIENT);
  EXPECT_EQ(oldest_reader(plan), kOldestReaderOfParts);
  buffer->set_kind(plan::STEP_GRADIENT);
  EXPECT_EQ(oldest_reader(plan), kOldestReaderOfStepGradients);
  plan.add_optimizer_states()->mutable_global()->set_dtype(plan::I16);
  EXPECT_EQ(oldest_reader(plan), kOldestReaderOfRemainders);
  plan.mutable_training()->mutable_learning_rate()->set_hold_steps(1);
  EXPECT_EQ(oldest_reader(plan), kOldestReaderOfHeldRates);
  plan.add_inputs()->set_image_count(true);
  EXPECT_EQ(oldest_reader(plan), kOldestReaderOfHeldRates);
  plan.add_inputs()->set_image_count(true);
  EXPECT_EQ(oldest_reader(plan), kOldestReaderOfImageKinds);
  plan.mutable_parameters(0)->add_padded_shape(5);
  EXPECT_EQ(oldest_reader(plan), kOldestReaderOfPaddedHeads);
}

TEST_F(PlanFileTest, PaddingOfHeadsNeedsANewerReader) {
  plan::Plan plan;
  plan.set_world_size(4);
  plan::Parameter* parameter = plan.add_parameters();
  parameter->mutable_global()->add_shape(12);
  const auto oldest_reader = [&](int64_t padded) -> uint32_t {
    parameter->clear_padded_shape();
    parameter->add_padded_shape(padded);
    absl::StatusOr<std::string> bytes = EncodePlan(plan);
    return bytes.ok() ? static_cast<unsigned char>((*bytes)[12]) : 0;
  };
  EXPECT_EQ(oldest_reader(15), kOldestPlanFormat);
  EXPECT_EQ(oldest_reader(16), kOldestReaderOfPaddedHeads);
}

TEST_F(PlanFileTest, OlderFormat) {
  std::string bytes = Bytes();
  Patch(bytes, 8, kOldestPlanFormat - 1);
  EXPECT_THAT(ReadPlan(WriteBytes(bytes)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("was written by an older Oriel (format 7, this one reads "),
                             HasSubstr("): compile the model again"))));
}

TEST_F(PlanFileTest, PayloadThatIsNoMessage) {
  std::string bytes = Bytes();
  const std::string payload = "\xff\xff\xff\xff";
  bytes.resize(32);
  bytes += payload;
  Patch(bytes, 24, Crc32(payload));
  Patch(bytes, 16, 4);
  EXPECT_THAT(ReadPlan(WriteBytes(bytes)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("cannot be decoded")));
}

}  // namespace
}  // namespace oriel::runtime
