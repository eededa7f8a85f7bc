#include "runtime/base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace oriel::runtime {
namespace {

// Opens a regular file for reading; anything else would block or have no size.
absl::StatusOr<int> OpenRegular(const std::string& path, int64_t* size) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ErrnoError(path, "open", errno);
  struct stat info;
  if (fstat(fd, &info) != 0) {
    int error = errno;
    close(fd);
    return ErrnoError(path, "stat", error);
  }
  if (!S_ISREG(info.st_mode)) {
    close(fd);
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not a regular file"));
  }
  *size = info.st_size;
  return fd;
}

}  // namespace

absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as Linux has it
  std::string target = path;
  std::error_code error;
  for (int i = 0; i <= kMaxLinks; ++i) {
    const std::filesystem::path link = std::filesystem::read_symlink(target, error);
    if (error) return target;
    target = JoinPath(FolderOf(target), link.string());
  }
  return ErrnoError(path, "follow", ELOOP);
}

bool IsStream(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

absl::Status ErrnoError(const std::string& path, const char* what, int error) {
  std::string message = absl::StrCat(path, ": cannot ", what, ": ", strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(message);
    default:
      return absl::InternalError(message);
  }
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  int64_t size = 0;
  absl::StatusOr<int> fd = OpenRegular(path, &size);
  if (!fd.ok()) return fd.status();
  const char* data = nullptr;
  if (size > 0) {
    void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, *fd, 0);
    if (address == MAP_FAILED) {
      int error = errno;
      close(*fd);
      return ErrnoError(path, "map", error);
    }
    data = static_cast<const char*>(address);
  }
  close(*fd);
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
}

absl::StatusOr<ReadFile> ReadFile::Open(const std::string& path) {
  int64_t size = 0;
  absl::StatusOr<int> fd = OpenRegular(path, &size);
  if (!fd.ok()) return fd.status();
  return ReadFile(path, *fd, size);
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

ReadFile::~ReadFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status ReadFile::ReadAt(int64_t offset, void* target, int64_t bytes) const {
  char* out = static_cast<char*>(target);
  while (bytes > 0) {
    ssize_t got = pread(fd_, out, bytes, offset);
    if (got < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(path_, "read", errno);
    }
    if (got == 0) {
      return absl::OutOfRangeError(
          absl::StrCat(path_, ": ends at byte ", offset, ", ", bytes, " more were expected"));
    }
    out += got;
    offset += got;
    bytes -= got;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(const std::string& path) {
  if (IsStream(path)) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoError(path, "open", errno);
    return std::unique_ptr<AtomicFile>(new AtomicFile(path, path, /*temporary=*/"", fd));
  }
  const absl::StatusOr<std::string> found = FollowLinks(path);
  if (!found.ok()) return found.status();
  const std::string& target = *found;
  std::random_device random;
  for (int attempt = 0;; ++attempt) {
    std::string temporary = absl::StrCat(target, ".tmp-", absl::Hex(random(), absl::kZeroPad8));
    const int fd = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      return std::unique_ptr<AtomicFile>(new AtomicFile(path, target, std::move(temporary), fd));
    }
    constexpr int kAttempts = 100;
    if (errno != EEXIST || attempt == kAttempts) return ErrnoError(path, "create", errno);
  }
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status AtomicFile::Append(const void* data, int64_t bytes) {
  const char* in = static_cast<const char*>(data);
  while (bytes > 0) {
    // Linux writes at most 2 GiB at once.
    ssize_t put = write(fd_, in, std::min<int64_t>(bytes, int64_t{1} << 30));
    if (put < 0) {
      if (errno == EINTR) continue;
      return ErrnoError(path_, "write", errno);
    }
    in += put;
    bytes -= put;
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  if (temporary_.empty()) {
    close(std::exchange(fd_, -1));
    return absl::OkStatus();
  }
  if (fsync(fd_) != 0) return ErrnoError(path_, "sync", errno);
  if (rename(temporary_.c_str(), target_.c_str()) != 0) {
    return ErrnoError(path_, "rename to", errno);
  }
  close(std::exchange(fd_, -1));
  return SyncFolder(FolderOf(target_));
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  absl::StatusOr<ReadFile> file = ReadFile::Open(path);
  if (!file.ok()) return file.status();
  std::string text(file->size(), '\0');
  absl::Status read = file->ReadAt(0, text.data(), file->size());
  if (!read.ok()) return read;
  return text;
}

std::string ReadSystemText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

absl::Status WriteTextAtomically(const std::string& path, const std::string& text) {
  absl::StatusOr<std::unique_ptr<AtomicFile>> file = AtomicFile::Create(path);
  if (!file.ok()) return file.status();
  absl::Status append = (*file)->Append(text.data(), text.size());
  if (!append.ok()) return append;
  return (*file)->Commit();
}

absl::Status SyncFolder(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoError(path, "open", errno);
  int failed = fsync(fd);
  int error = errno;
  close(fd);
  // Some file systems cannot sync a folder and say EINVAL; there is nothing more to do then.
  if (failed && error != EINVAL) return ErrnoError(path, "sync", error);
  return absl::OkStatus();
}

absl::Status MakeFolders(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  std::error_code ignored;
  if (std::filesystem::is_symlink(path, ignored) && !std::filesystem::exists(path, ignored)) {
    constexpr char kProblem[] =
        "' is a link to a folder that is not there: make that folder, or remove the link";
    return absl::NotFoundError(absl::StrCat("'", path, kProblem));
  }
  return ErrnoError(path, "create the folder", error.value());
}

std::string JoinPath(const std::string& folder, const std::string& path) {
  if (folder.empty() || (!path.empty() && path[0] == '/')) return path;
  return folder.back() == '/' ? folder + path : folder + "/" + path;
}

std::string FolderOf(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace oriel::runtime
