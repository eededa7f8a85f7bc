#include "runtime/train/save_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/checkpoint/checkpoint_writer.h"

namespace oriel::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPause{50};

std::string LockOf(const std::string& path) { return JoinPath(path, ".lock"); }

// "process 123 on node7", as the holder of a lock has written it.
std::string HolderOf(const std::string& lock_path) {
  const absl::StatusOr<std::string> text = ReadText(lock_path);
  return text.ok() && !text->empty() ? *text : "another process";
}

void WriteHolder(int fd) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string text = absl::StrCat("process ", getpid(), " on ", host);
  // Only for messages.
  if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) < 0) return;
}

// Whether the open file is still the one of that name: who had the lock removes it.
bool IsNamed(int fd, const std::string& path) {
  struct stat open = {}, named = {};
  return fstat(fd, &open) == 0 && stat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

void RemoveUnfinished(const std::string& path) {
  std::vector<std::filesystem::path> left;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    if (IsUnfinishedCheckpoint(it->path().filename().string())) left.push_back(it->path());
  }
  for (const std::filesystem::path& folder : left) std::filesystem::remove_all(folder, error);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SaveFolder>> SaveFolder::Take(
    const std::string& path, std::chrono::milliseconds patience,
    const std::function<void(const std::string&)>& say, const std::function<bool()>& stop) {
  const bool made = access(path.c_str(), F_OK) != 0;
  ORIEL_RETURN_IF_ERROR(MakeFolders(path));
  const std::string lock_path = LockOf(path);
  const Clock::time_point end = Clock::now() + patience;
  for (bool has_said = false;;) {
    const int fd = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return ErrnoError(lock_path, "create", errno);
    const bool is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const int error = is_locked ? ESTALE : errno;  // of one that its holder has removed since
    if (is_locked && IsNamed(fd, lock_path)) {
      WriteHolder(fd);
      RemoveUnfinished(path);
      return std::unique_ptr<SaveFolder>(new SaveFolder(path, made, fd));
    }
    close(fd);
    if (error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP) {
      unlink(lock_path.c_str());
      say(absl::StrCat(path,
                       ": its file system has no locks, so nothing keeps other runs from saving "
                       "there, too"));
      return std::unique_ptr<SaveFolder>(new SaveFolder(path, made, -1));
    }
    if (error != EWOULDBLOCK && error != EINTR && error != ESTALE) {
      return ErrnoError(lock_path, "lock", error);
    }
    const std::string holder = HolderOf(lock_path);
    if (stop()) {
      return absl::CancelledError(absl::StrCat("interrupted while waiting for another run (",
                                               holder, ") that saves in ", path));
    }
    if (Clock::now() >= end) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, ": another run (", holder,
                       ") saves its checkpoints there: end it, or give this run another folder"));
    }
    if (!has_said && error == EWOULDBLOCK) {
      say(absl::StrCat("waiting for another run (", holder, ") that saves its checkpoints in ",
                       path));
      has_said = true;
    }
    std::this_thread::sleep_for(kPause);
  }
}

SaveFolder::~SaveFolder() {
  if (fd_ >= 0) {
    unlink(LockOf(path_).c_str());
    close(fd_);
  }
  if (made_) rmdir(path_.c_str());
}

}  // namespace oriel::runtime
