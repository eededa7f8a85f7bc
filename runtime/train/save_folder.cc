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

// While a lock can't be had.
class Waiting {
 public:
  Waiting(const std::string& path, std::chrono::milliseconds patience,
          const std::function<void(const std::string&)>& say, const std::function<bool()>& stop)
      : path_(path), end_(Clock::now() + patience), say_(say), stop_(stop) {}

  // For a moment, after a try that failed with this error: of flock, or ESTALE.
  absl::Status Pause(int error) {
    const std::string lock_path = LockOf(path_);
    if (error != EWOULDBLOCK && error != EINTR && error != ESTALE) {
      return ErrnoError(lock_path, "lock", error);
    }
    const std::string holder = HolderOf(lock_path);
    if (stop_()) {
      return absl::CancelledError(absl::StrCat("interrupted while waiting for another run (",
                                               holder, ") that saves in ", path_));
    }
    if (Clock::now() >= end_) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_, ": another run (", holder,
                       ") saves its checkpoints there: end it, or give this run another folder"));
    }
    if (!has_said_ && error == EWOULDBLOCK) {
      say_(absl::StrCat("waiting for another run (", holder, ") that saves its checkpoints in ",
                        path_));
      has_said_ = true;
    }
    std::this_thread::sleep_for(kPause);
    return absl::OkStatus();
  }

 private:
  const std::string& path_;
  const Clock::time_point end_;
  const std::function<void(const std::string&)>& say_;
  const std::function<bool()>& stop_;
  bool has_said_ = false;
};

bool HasNoLocks(int error) { return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP; }

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
  for (Waiting waiting(path, patience, say, stop);;) {
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
    if (HasNoLocks(error)) {
      unlink(lock_path.c_str());
      say(absl::StrCat(path,
                       ": its file system has no locks, so nothing keeps other runs from saving "
                       "there, too"));
      return std::unique_ptr<SaveFolder>(new SaveFolder(path, made, -1));
    }
    ORIEL_RETURN_IF_ERROR(waiting.Pause(error));
  }
}

absl::Status SaveFolder::AwaitOthers(const std::string& path, std::chrono::milliseconds patience,
                                     const std::function<void(const std::string&)>& say,
                                     const std::function<bool()>& stop) {
  const std::string lock_path = LockOf(path);
  for (Waiting waiting(path, patience, say, stop);;) {
    const int fd = open(lock_path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return absl::OkStatus();  // Take says what is wrong, if it is
    // Shared: the other ranks look, too.
    const int error = flock(fd, LOCK_SH | LOCK_NB) == 0 ? 0 : errno;
    close(fd);
    if (error == 0 || HasNoLocks(error)) return absl::OkStatus();
    ORIEL_RETURN_IF_ERROR(waiting.Pause(error));
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
