#include "runtime/train/data/npy.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_testing.h"
#include "runtime/train/data_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

// An array of version 1 with this dictionary.
std::string Npy(const std::string& dictionary, size_t data_bytes) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(dictionary.size() & 0xff);
  bytes += static_cast<char>(dictionary.size() >> 8);
  return bytes + dictionary + std::string(data_bytes, '\0');
}

absl::StatusOr<NpyHeader> Parse(const std::string& bytes) {
  return ParseNpy(bytes.data(), static_cast<int64_t>(bytes.size()));
}

void ExpectRefused(const std::string& bytes, const std::string& message) {
  EXPECT_THAT(Parse(bytes), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
}

TEST(NpyTest, WhatIsWrittenIsRead) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  for (const Shape& shape : {Shape{2, 3}, Shape{6}, Shape{1, 6, 1}}) {
    const std::string bytes = NpyBytes(shape, values);
    ORIEL_ASSERT_OK_AND_ASSIGN(NpyHeader header, Parse(bytes));
    EXPECT_EQ(header.spec, (TensorSpec{DType::kF32, shape}));
    EXPECT_EQ(header.data_offset % 64, 0);
    EXPECT_EQ(std::memcmp(bytes.data() + header.data_offset, values.data(), 24), 0);
  }
}

TEST(NpyTest, HeadersAsNumpyWritesThem) {
  ORIEL_ASSERT_OK_AND_ASSIGN(
      NpyHeader header,
      Parse(Npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 28, 28), }   \n", 784)));
  EXPECT_EQ(header.spec, (TensorSpec{DType::kU8, {1, 28, 28}}));
  ORIEL_ASSERT_OK_AND_ASSIGN(
      header, Parse(Npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n", 8)));
  EXPECT_EQ(header.spec, (TensorSpec{DType::kI64, {}}));
  ORIEL_ASSERT_OK_AND_ASSIGN(
      header, Parse(Npy("{'descr': '<f2', 'fortran_order': True, 'shape': (3,), }\n", 6)));
  EXPECT_EQ(header.spec, (TensorSpec{DType::kF16, {3}}));
}

TEST(NpyTest, Version2) {
  std::string bytes = Npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", 2);
  bytes[6] = 2;
  bytes.insert(10, 2, '\0');
  ORIEL_ASSERT_OK_AND_ASSIGN(NpyHeader header, Parse(bytes));
  EXPECT_EQ(header.spec, (TensorSpec{DType::kBool, {2}}));
}

TEST(NpyTest, TruncatedAtAnyByte) {
  const std::string bytes = NpyBytes({2}, std::vector<int64_t>{1, 2});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Parse(bytes.substr(0, size)).ok()) << size;
  }
  ExpectRefused(bytes.substr(0, bytes.size() - 1), "truncated: i64[2]");
  ExpectRefused(bytes + "x", "damaged");
}

TEST(NpyTest, NotAnArray) { ExpectRefused("<html>no such page</html>", "not an .npy"); }

TEST(NpyTest, BigEndian) {
  ExpectRefused(Npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4), "'>f4'");
}

TEST(NpyTest, PickledObjects) {
  ExpectRefused(Npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 4), "'|O'");
}

TEST(NpyTest, FortranOrder) {
  ExpectRefused(Npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", 16),
                "Fortran order");
}

TEST(NpyTest, BrokenDictionary) {
  for (const char* dictionary :
       {"", "{", "{'descr': '<f4'}", "{'descr': [('a', '<f4')], 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x"}) {
    ExpectRefused(Npy(dictionary, 4), "cannot be read");
  }
}

TEST(NpyTest, TypeThatIsNoType) {
  for (const char* descr : {"", "|", "<", "f4", "<f", "<f44"}) {
    ExpectRefused(
        Npy(absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (1,), }"), 4),
        absl::StrCat("has dtype '", descr, "'"));
  }
}

TEST(NpyTest, SizeOverflows) {
  ExpectRefused(
      Npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 0),
      "damaged");
}

TEST(NpyTest, WriterCountsBytes) {
  TempFolder folder;
  ORIEL_ASSERT_OK_AND_ASSIGN(NpyWriter writer,
                             NpyWriter::Create(folder / "a.npy", {DType::kF32, {2}}));
  const float one = 1;
  ORIEL_ASSERT_OK(writer.Append(&one, 4));
  EXPECT_THAT(writer.Finish(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("4 bytes")));
}

}  // namespace
}  // namespace oriel::runtime
