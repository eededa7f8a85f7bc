#include "runtime/train/data/tar_shards.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kBlock = 512;
constexpr size_t kReadBytes = 1 << 16;

struct CloseArchive {
  void operator()(archive* a) const { archive_read_free(a); }
};
using ArchivePtr = std::unique_ptr<archive, CloseArchive>;

absl::Status DamagedError(archive* a) {
  const char* reason = archive_error_string(a);
  return absl::InvalidArgumentError(
      absl::StrCat("not an uncompressed tar file, or damaged: ", reason ? reason : "?"));
}

// libarchive does not promise that a filter's byte count is the data's offset after a header;
// so one member per shard is read both ways. Every read later also checks the array's magic.
absl::Status CheckOffset(archive* a, const ReadFile& file, int64_t offset, int64_t size) {
  std::string by_archive(std::min<int64_t>(size, 4096), '\0');
  std::string by_offset(by_archive.size(), '\0');
  la_ssize_t got = archive_read_data(a, by_archive.data(), by_archive.size());
  if (got < 0) return DamagedError(a);
  if (got != static_cast<la_ssize_t>(by_archive.size())) {
    return absl::InvalidArgumentError("is truncated");
  }
  ORIEL_RETURN_IF_ERROR(file.ReadAt(offset, by_offset.data(), by_offset.size()));
  if (by_archive != by_offset) {
    return absl::InternalError("the offset of a member's data could not be found");
  }
  return absl::OkStatus();
}

// Splits "dir/000123.pixel_values.npy" into "dir/000123" and "pixel_values"; other suffixes
// stay whole ("000123.json" has the member "json"). False without a dot.
bool SplitName(const std::string& path, std::string* key, std::string* member) {
  size_t slash = path.rfind('/');
  size_t dot = path.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos) return false;
  *key = path.substr(0, dot);
  *member = path.substr(dot + 1);
  if (absl::EndsWith(*member, ".npy")) member->resize(member->size() - 4);
  return true;
}

absl::StatusOr<std::vector<std::string>> ListShards(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::exists(folder, error)) {
    return absl::NotFoundError(absl::StrCat(folder, ": there is no such folder of shards"));
  }
  if (!fs::is_directory(folder, error)) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": is not a folder of .tar shards"));
  }
  std::vector<std::string> shards;
  int64_t others = 0;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".tar" && it->is_regular_file(error)) {
      shards.push_back(JoinPath(folder, it->path().filename().string()));
    } else {
      ++others;
    }
  }
  if (error) return ErrnoError(folder, "list", error.value());
  if (shards.empty()) {
    return absl::NotFoundError(
        others == 0 ? absl::StrCat(folder, ": the folder is empty; .tar shards were expected")
                    : absl::StrCat(folder, ": has no .tar file among its ", others, " entries"));
  }
  std::sort(shards.begin(), shards.end());
  return shards;
}

}  // namespace

absl::StatusOr<ShardIndex> ShardIndex::Read(const std::string& folder) {
  ShardIndex index;
  index.folder_ = folder;
  ORIEL_ASSIGN_OR_RETURN(std::vector<std::string> shards, ListShards(folder));
  for (const std::string& path : shards) {
    index.shards_.push_back(path);
    if (absl::Status status = index.AddShard(path); !status.ok()) {
      // Errors of files already start with their path.
      std::string message(status.message());
      return absl::StartsWith(message, path) ? status : Annotate(status, path);
    }
  }
  if (index.samples_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": its ", shards.size(), " shards hold no sample (KEY.NAME.npy)"));
  }
  return index;
}

absl::Status ShardIndex::AddShard(const std::string& path) {
  ORIEL_ASSIGN_OR_RETURN(ReadFile file, ReadFile::Open(path));
  if (file.size() == 0) return absl::InvalidArgumentError("the file is empty");
  ArchivePtr a(archive_read_new());
  archive_read_support_format_tar(a.get());
  if (archive_read_open_filename(a.get(), path.c_str(), kReadBytes) != ARCHIVE_OK) {
    return DamagedError(a.get());
  }
  int64_t end = 0;  // of the last member, in whole blocks
  bool checked = false;
  archive_entry* entry = nullptr;
  while (true) {
    int code = archive_read_next_header(a.get(), &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK && code != ARCHIVE_WARN) {
      return DamagedError(a.get());
    }
    const int64_t offset = archive_filter_bytes(a.get(), 0);
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
      end = offset;
      continue;
    }
    if (archive_entry_sparse_count(entry) > 0) {
      return absl::InvalidArgumentError("has a sparse member; write it with plain tar");
    }
    // Names that are not in the process's character set come out in UTF-8 only.
    const char* name = archive_entry_pathname_utf8(entry);
    if (name == nullptr) name = archive_entry_pathname(entry);
    if (name == nullptr) return absl::InvalidArgumentError("has a member with an unreadable name");
    const int64_t size = archive_entry_size(entry);
    if (size > file.size() - offset) {
      return absl::InvalidArgumentError(absl::StrCat("truncated: member ", name,
                                                     " should end at byte ", offset + size,
                                                     ", the file at ", file.size()));
    }
    ORIEL_RETURN_IF_ERROR(AddMember(name, offset, size));
    end = offset + (size + kBlock - 1) / kBlock * kBlock;
    if (!checked && size > 0) {
      ORIEL_RETURN_IF_ERROR(CheckOffset(a.get(), file, offset, size));
      checked = true;
    }
  }
  // A tar ends with two blocks of zeros. libarchive accepts a file cut between members.
  char closing[2 * kBlock];
  static const char kZeros[2 * kBlock] = {};
  if (file.size() < end + 2 * kBlock || !file.ReadAt(end, closing, sizeof closing).ok() ||
      std::memcmp(closing, kZeros, sizeof closing) != 0) {
    return absl::InvalidArgumentError("truncated: the blocks that end a tar file are missing");
  }
  return absl::OkStatus();
}

absl::Status ShardIndex::AddMember(const std::string& path, int64_t offset, int64_t size) {
  std::string key, member;
  if (!SplitName(path, &key, &member)) return absl::OkStatus();
  const int32_t shard = static_cast<int32_t>(shards_.size()) - 1;
  if (samples_.empty() || samples_.back().shard != shard || samples_.back().key != key) {
    samples_.push_back({shard, key, static_cast<int64_t>(members_.size()), 0});
  }
  ShardSample& sample = samples_.back();
  if (Find(sample, member) != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("sample ", key, " holds the member ", member, " twice"));
  }
  auto [it, is_new] = member_ids_.emplace(member, static_cast<int32_t>(member_names_.size()));
  if (is_new) member_names_.push_back(member);
  members_.push_back({it->second, offset, size});
  ++sample.member_count;
  return absl::OkStatus();
}

const ShardMember* ShardIndex::Find(const ShardSample& sample, const std::string& name) const {
  auto it = member_ids_.find(name);
  if (it == member_ids_.end()) return nullptr;
  for (int64_t i = 0; i < sample.member_count; ++i) {
    const ShardMember& member = members_[sample.first_member + i];
    if (member.name == it->second) return &member;
  }
  return nullptr;
}

std::string ShardIndex::Describe(const ShardSample& sample) const {
  return absl::StrCat(shards_[sample.shard], ": sample ", sample.key);
}

std::string ShardIndex::MemberList(const ShardSample& sample) const {
  std::string list;
  for (int64_t i = 0; i < sample.member_count; ++i) {
    absl::StrAppend(&list, i == 0 ? "" : ", ",
                    member_names_[members_[sample.first_member + i].name]);
  }
  return list;
}

}  // namespace oriel::runtime
