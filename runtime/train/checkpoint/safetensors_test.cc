#include "runtime/train/checkpoint/safetensors.h"

#include <cstring>

#include "runtime/base/status_testing.h"
#include "runtime/train/data_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A file with this header (its length is added) and so many bytes of data.
void WriteRaw(const std::string& path, const std::string& header, size_t data_bytes) {
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  WriteFileBytes(path, bytes + header + std::string(data_bytes, '\0'));
}

class SafetensorsTest : public ::testing::Test {
 protected:
  void ExpectRefused(const std::string& header, size_t data_bytes, const std::string& message) {
    WriteRaw(path_, header, data_bytes);
    EXPECT_THAT(
        SafetensorsFile::Open(path_),
        StatusIs(absl::StatusCode::kInvalidArgument, AllOf(HasSubstr(path_), HasSubstr(message))));
  }

  TempFolder folder_;
  std::string path_ = folder_ / "file.safetensors";
};

TEST_F(SafetensorsTest, WhatIsWrittenIsRead) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<uint8_t> b = {7, 8, 9};
  const int64_t c = -1;
  const std::vector<NamedTensor> tensors = {{"layer.0.weight", {DType::kF32, {2, 3}}, a.data()},
                                            {"ünïcode \"name\"", {DType::kU8, {3}}, b.data()},
                                            {"scalar", {DType::kI64, {}}, &c},
                                            {"empty", {DType::kF16, {0, 4}}, nullptr}};
  ORIEL_ASSERT_OK(WriteSafetensors(path_, tensors, {{"format", "pt"}}));
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file, SafetensorsFile::Open(path_));
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.tensors().size(), 4u);
  for (const NamedTensor& tensor : tensors) {
    std::string copy(tensor.spec.bytes(), '\0');
    ORIEL_ASSERT_OK(file.Read(tensor.name, tensor.spec, copy.data()));
    EXPECT_EQ(std::memcmp(copy.data(), tensor.data ? tensor.data : "", copy.size()), 0);
  }
}

TEST_F(SafetensorsTest, FileOfAnotherWriter) {
  WriteRaw(path_,
           R"({"b":{"dtype":"BF16","shape":[1],"data_offsets":[4,6]},)"
           R"("a":{"dtype":"I32","shape":[],"data_offsets":[0,4]}}  )",
           6);
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file, SafetensorsFile::Open(path_));
  EXPECT_EQ(file.tensors().at("b").spec, (TensorSpec{DType::kBF16, {1}}));
}

TEST_F(SafetensorsTest, MissingFileAndTensor) {
  EXPECT_THAT(SafetensorsFile::Open(path_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(path_)));
  WriteRaw(path_, "{}", 0);
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file, SafetensorsFile::Open(path_));
  EXPECT_THAT(file.Find("w"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"w\"")));
}

TEST_F(SafetensorsTest, OtherTypeOrShapeThanExpected) {
  WriteRaw(path_, R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file, SafetensorsFile::Open(path_));
  char target[8];
  EXPECT_THAT(file.Read("w", {DType::kF32, {1, 2}}, target),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("\"w\" is f32[2], expected f32[1, 2]")));
}

TEST_F(SafetensorsTest, TruncatedAtAnyByte) {
  const float a[4] = {1, 2, 3, 4};
  ORIEL_ASSERT_OK(WriteSafetensors(path_, std::vector<NamedTensor>{{"a", {DType::kF32, {4}}, a}}));
  const std::string bytes = ReadFileBytes(path_);
  for (size_t size = 0; size < bytes.size(); ++size) {
    WriteFileBytes(path_, bytes.substr(0, size));
    EXPECT_FALSE(SafetensorsFile::Open(path_).ok()) << size;
  }
}

TEST_F(SafetensorsTest, HeaderBeyondTheFile) {
  WriteFileBytes(path_, std::string(8, '\xff'));
  EXPECT_THAT(SafetensorsFile::Open(path_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("header would take")));
}

TEST_F(SafetensorsTest, HeaderIsNotJson) { ExpectRefused("{\"a\":", 0, "not a JSON object"); }

TEST_F(SafetensorsTest, EntryWithoutShape) {
  ExpectRefused(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4, "tensor \"w\"");
}

TEST_F(SafetensorsTest, UnknownDType) {
  ExpectRefused(R"({"w":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", 4, "F8_E4M3");
}

TEST_F(SafetensorsTest, NegativeSize) {
  ExpectRefused(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "needs dtype");
}

TEST_F(SafetensorsTest, SizeOverflows) {
  ExpectRefused(R"({"w":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
                "does not take");
}

TEST_F(SafetensorsTest, SizeDoesNotFitOffsets) {
  ExpectRefused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "does not take");
}

TEST_F(SafetensorsTest, OffsetsBeyondTheData) {
  ExpectRefused(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "truncated");
}

TEST_F(SafetensorsTest, TensorsOverlap) {
  ExpectRefused(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                6, "overlaps");
}

TEST_F(SafetensorsTest, GapBetweenTensors) {
  ExpectRefused(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                3, "gap");
}

TEST_F(SafetensorsTest, DataBehindTheTensors) { ExpectRefused("{}", 1, "1 bytes of data"); }

TEST_F(SafetensorsTest, NameTwiceOrNotText) {
  const uint8_t byte = 0;
  const TensorSpec spec{DType::kU8, {1}};
  EXPECT_THAT(
      WriteSafetensors(path_, std::vector<NamedTensor>{{"a", spec, &byte}, {"a", spec, &byte}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"a\"")));
  EXPECT_THAT(WriteSafetensors(path_, std::vector<NamedTensor>{{"\xff", spec, &byte}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("UTF-8")));
}

TEST_F(SafetensorsTest, FolderMissing) {
  EXPECT_THAT(WriteSafetensors(folder_ / "none/file", std::vector<NamedTensor>()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/file")));
}

}  // namespace
}  // namespace oriel::runtime
