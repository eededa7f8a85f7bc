// Files: mapping, positioned reads, and writes that are seen whole or not at all.
#ifndef ORIEL_RUNTIME_BASE_FILES_H_
#define ORIEL_RUNTIME_BASE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

// A file mapped for reading. Errors of the functions here name the file and the system's reason.
class MappedFile {
 public:
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const char* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  MappedFile(std::string path, const char* data, int64_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const char* data_;
  int64_t size_;
};

// A file open for positioned reads.
class ReadFile {
 public:
  static absl::StatusOr<ReadFile> Open(const std::string& path);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&&) = delete;
  ~ReadFile();

  // Fills `target`; OutOfRange if the file ends before.
  absl::Status ReadAt(int64_t offset, void* target, int64_t bytes) const;
  int64_t size() const { return size_; }

 private:
  ReadFile(std::string path, int fd, int64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_;
  int64_t size_;
};

// Writes to a temporary file beside `path`; Commit syncs it to the disk and renames it.
// Without Commit nothing stays. Of a symbolic link the file is replaced that it leads to; a device
// or a pipe is written to as the data comes.
class AtomicFile {
 public:
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  absl::Status Append(const void* data, int64_t bytes);
  absl::Status Commit();

 private:
  AtomicFile(std::string path, std::string target, std::string temporary, int fd)
      : path_(std::move(path)),
        target_(std::move(target)),
        temporary_(std::move(temporary)),
        fd_(fd) {}

  std::string path_;
  std::string target_;     // where links lead to
  std::string temporary_;  // empty: `path` is written to
  int fd_;
};

absl::StatusOr<std::string> ReadText(const std::string& path);
// Of a file that has no size, as in /proc; empty where it can't be read.
std::string ReadSystemText(const std::string& path);
absl::Status WriteTextAtomically(const std::string& path, const std::string& text);
// What a chain of symbolic links leads to, which need not be there; `path` itself if it is no link.
absl::StatusOr<std::string> FollowLinks(const std::string& path);
// Whether `path` leads to a device, a pipe or a socket, which is written to as the data comes.
bool IsStream(const std::string& path);
// Makes the names in a folder durable.
absl::Status SyncFolder(const std::string& path);
// With all missing parents.
absl::Status MakeFolders(const std::string& path);

// `path` where it is absolute, else inside `folder`.
std::string JoinPath(const std::string& folder, const std::string& path);
// What is before the last slash; "." if there is none.
std::string FolderOf(const std::string& path);

// "PATH: cannot WHAT: No such file or directory", with the code that fits errno.
absl::Status ErrnoError(const std::string& path, const char* what, int error);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_FILES_H_
