#include "runtime/train/event_file.h"

#include <cstring>
#include <filesystem>

#include "runtime/base/folder_testing.h"
#include "runtime/base/status_testing.h"
#include "runtime/train/tensorboard.pb.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

// RFC 3720, appendix B.4, and the usual check value.
TEST(EventFileTest, Crc32c) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

// The events in a folder's one file, whose sums are right.
std::vector<tensorboard::Event> EventsIn(const std::string& folder) {
  const std::filesystem::directory_iterator first(folder);
  EXPECT_THAT(first->path().filename().string(), HasSubstr("tfevents"));
  const std::string bytes = ReadFileBytes(first->path());
  std::vector<tensorboard::Event> events;
  const auto is_sum_of = [&](size_t at, size_t begin, size_t size) {
    uint32_t masked;
    std::memcpy(&masked, bytes.data() + at, sizeof masked);
    const uint32_t rotated = masked - 0xa282ead8u;
    return ((rotated >> 17) | (rotated << 15)) == Crc32c(bytes.substr(begin, size));
  };
  for (size_t at = 0; at < bytes.size();) {
    uint64_t size;
    std::memcpy(&size, bytes.data() + at, sizeof size);
    EXPECT_TRUE(is_sum_of(at + 8, at, 8));
    EXPECT_TRUE(is_sum_of(at + 12 + size, at + 12, size));
    EXPECT_TRUE(events.emplace_back().ParseFromString(bytes.substr(at + 12, size)));
    at += 12 + size + 4;
  }
  return events;
}

TEST(EventFileTest, WhatIsWritten) {
  const TempFolder folder;
  ORIEL_ASSERT_OK_AND_ASSIGN(EventFile events, EventFile::Create(folder / "a/b"));
  ORIEL_ASSERT_OK(events.Write(7, {{"train/loss", 0.5}, {"train/lr", 0}}));
  const std::vector<tensorboard::Event> found = EventsIn(folder / "a/b");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].file_version(), "brain.Event:2");
  EXPECT_EQ(found[1].step(), 7);
  EXPECT_GT(found[1].wall_time(), 1.7e9);
  ASSERT_EQ(found[1].summary().value_size(), 2);
  EXPECT_EQ(found[1].summary().value(0).tag(), "train/loss");
  EXPECT_EQ(found[1].summary().value(0).simple_value(), 0.5f);
  EXPECT_TRUE(found[1].summary().value(1).has_simple_value());
}

TEST(EventFileTest, ResumedRun) {
  const TempFolder folder;
  ORIEL_ASSERT_OK_AND_ASSIGN(EventFile events, EventFile::Create(folder.path()));
  ORIEL_ASSERT_OK(events.StartAt(21));
  const std::vector<tensorboard::Event> found = EventsIn(folder.path());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].step(), 21);
  EXPECT_EQ(found[1].session_log().status(), tensorboard::SessionLog::START);
}

TEST(EventFileTest, FolderIsAFile) {
  const TempFolder folder;
  WriteFileBytes(folder / "file", "x");
  EXPECT_THAT(EventFile::Create(folder / "file").status().message(), HasSubstr(folder / "file"));
}

}  // namespace
}  // namespace oriel::runtime
