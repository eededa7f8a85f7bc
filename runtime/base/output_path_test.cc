#include "runtime/base/output_path.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

TEST(OutputPath, SaysWhyNoFileCanBeThere) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "output_path";
  std::filesystem::create_directories(folder);
  const std::string file = folder / "file";
  std::ofstream(file) << "text";
  EXPECT_TRUE(CheckOutputPath("").ok());
  EXPECT_TRUE(CheckOutputPath(file).ok());
  EXPECT_TRUE(CheckOutputPath(folder / "new", {file, "", "/no/such/file"}).ok());
  EXPECT_THAT(std::string(CheckOutputPath(folder).message()), HasSubstr("it is a folder"));
  EXPECT_TRUE(absl::IsNotFound(CheckOutputPath(folder / "no" / "file")));
  EXPECT_TRUE(absl::IsNotFound(CheckOutputPath(file + "/below")));
}

TEST(OutputPath, WhatIsReadIsNotOverwritten) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "output_path";
  std::filesystem::create_directories(folder);
  const std::string file = folder / "read";
  std::ofstream(file) << "text";
  const absl::Status refused = CheckOutputPath(folder / ".." / "output_path" / "read", {"", file});
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("it is '" + file + "', which is read; give another path"));
}

}  // namespace
}  // namespace oriel::runtime
