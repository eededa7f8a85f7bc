#include "runtime/base/control_group.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/files.h"

namespace oriel::runtime {
namespace {

// A group's folder and those around it, "/a/b", "/a" and "", below where groups are mounted. A
// container may be shown paths of its host's, which it does not have: then only the last is there.
void AddFolders(const std::string& mount, std::string group, std::vector<std::string>* folders) {
  while (!group.empty()) {
    if (group.back() != '/') folders->push_back(mount + group);
    group.erase(group.rfind('/'));
  }
  folders->push_back(mount);
}

// Where files may say what this process may have: lines are "0::/group" in version 2, and
// "4:cpu,cpuacct:/group" in version 1, which has a mount for each controller.
std::vector<std::string> GroupFolders(const std::string& root, const std::string& controller) {
  const std::string mount = JoinPath(root, "sys/fs/cgroup");
  const std::string old_mount = JoinPath(mount, controller);
  std::vector<std::string> folders = {mount, old_mount};
  const std::string groups = ReadSystemText(JoinPath(root, "proc/self/cgroup"));
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || fields[2].empty() || fields[2][0] != '/') continue;
    const std::vector<std::string> controllers = absl::StrSplit(fields[1], ',');
    if (fields[1].empty()) AddFolders(mount, fields[2], &folders);
    if (std::count(controllers.begin(), controllers.end(), controller) > 0) {
      AddFolders(old_mount, fields[2], &folders);
    }
  }
  return folders;
}

}  // namespace

std::optional<double> CpuQuota(const std::string& root) {
  std::optional<double> least;
  for (const std::string& folder : GroupFolders(root, "cpu")) {
    // "150000 100000" of microseconds, in version 1 in two files; no limit is "max", or -1.
    const std::string text = absl::StrCat(ReadSystemText(folder + "/cpu.max"), " ",
                                          ReadSystemText(folder + "/cpu.cfs_quota_us"), " ",
                                          ReadSystemText(folder + "/cpu.cfs_period_us"));
    const std::vector<std::string> words =
        absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    int64_t quota = 0, period = 0;
    if (words.size() != 2 || !absl::SimpleAtoi(words[0], &quota) ||
        !absl::SimpleAtoi(words[1], &period) || quota <= 0 || period <= 0) {
      continue;
    }
    const double cores = static_cast<double>(quota) / static_cast<double>(period);
    least = std::min(cores, least.value_or(cores));
  }
  return least;
}

std::optional<int64_t> MemoryQuota(const std::string& root) {
  std::optional<int64_t> least;
  for (const std::string& folder : GroupFolders(root, "memory")) {
    const std::string text = absl::StrCat(ReadSystemText(folder + "/memory.max"),
                                          ReadSystemText(folder + "/memory.limit_in_bytes"));
    // No limit is "max", or a number beyond all memory.
    int64_t bytes = 0;
    if (!absl::SimpleAtoi(text, &bytes) || bytes <= 0) continue;
    least = std::min(bytes, least.value_or(bytes));
  }
  return least;
}

}  // namespace oriel::runtime
