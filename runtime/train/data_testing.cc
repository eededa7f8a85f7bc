#include "runtime/train/data_testing.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "runtime/train/data/npy.h"

namespace oriel::runtime {

void Truncate(const std::string& path, int64_t bytes) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - bytes);
}

std::string NpyBytes(const TensorSpec& spec, const void* data) {
  absl::StatusOr<std::string> bytes = EncodeNpyHeader(spec);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes->append(static_cast<const char*>(data), spec.bytes());
}

std::string NpyBytes(const Shape& shape, const std::vector<float>& values) {
  return NpyBytes({DType::kF32, shape}, values.data());
}

std::string NpyBytes(const Shape& shape, const std::vector<int64_t>& values) {
  return NpyBytes({DType::kI64, shape}, values.data());
}

void WriteTar(const std::string& path, const TarMembers& members) {
  archive* a = archive_write_new();
  archive_write_set_format_pax_restricted(a);
  ASSERT_EQ(archive_write_open_filename(a, path.c_str()), ARCHIVE_OK);
  for (const auto& [name, bytes] : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    // A name beyond ASCII is a warning in the C locale.
    ASSERT_GE(archive_write_header(a, entry), ARCHIVE_WARN);
    ASSERT_EQ(archive_write_data(a, bytes.data(), bytes.size()),
              static_cast<la_ssize_t>(bytes.size()));
    archive_entry_free(entry);
  }
  ASSERT_EQ(archive_write_close(a), ARCHIVE_OK);
  archive_write_free(a);
}

void WriteCountingShards(const std::string& folder, int64_t count, int64_t per_shard) {
  std::filesystem::create_directories(folder);
  for (int64_t first = 0; first < count; first += per_shard) {
    TarMembers members;
    for (int64_t i = first; i < std::min(first + per_shard, count); ++i) {
      const std::string key = absl::StrFormat("%06d", i);
      const float x = static_cast<float>(i);
      members.emplace_back(key + ".x.npy", NpyBytes({3}, std::vector<float>{x, x + 1, x + 2}));
      members.emplace_back(key + ".labels.npy", NpyBytes({2}, std::vector<int64_t>{i, -100}));
    }
    WriteTar(folder + absl::StrFormat("/shard-%04d.tar", first / per_shard), members);
  }
}

}  // namespace oriel::runtime
