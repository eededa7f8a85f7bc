// A folder in memory for what is read from files. One per process, removed when it ends.
#ifndef ORIEL_TESTS_FUZZ_INPUT_FOLDER_H_
#define ORIEL_TESTS_FUZZ_INPUT_FOLDER_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace oriel::fuzz {

class InputFolder {
 public:
  InputFolder() {
    const char* parent = std::getenv("TMPDIR");
    std::string pattern = parent != nullptr ? parent : "/dev/shm";
    pattern += "/oriel_fuzz.XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string pathOf(const std::string& name) const { return path_ + "/" + name; }

  // Replaces the file; `size` may go beyond the data, as zeros that take no memory.
  std::string write(const std::string& name, const uint8_t* data, size_t bytes, size_t size = 0) {
    std::string path = pathOf(name);
    int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    bool ok = file >= 0 && ::write(file, data, bytes) == static_cast<ssize_t>(bytes) &&
              (size <= bytes || ftruncate(file, static_cast<off_t>(size)) == 0);
    if (!ok) std::abort();
    close(file);
    return path;
  }

 private:
  std::string path_;
};

}  // namespace oriel::fuzz

#endif  // ORIEL_TESTS_FUZZ_INPUT_FOLDER_H_
