#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/linear/product_choices.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

using Json = nlohmann::json;

// A file that is open and locked; both end with it.
class LockedFile {
 public:
  explicit LockedFile(const std::string& path)
      : path_(path), fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {}
  ~LockedFile() {
    if (fd_ >= 0) close(fd_);
  }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  absl::Status Lock() const {
    if (fd_ < 0) return Error("can't be opened");
    while (flock(fd_, LOCK_EX) != 0) {
      if (errno != EINTR) return Error("can't be locked");
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Read() const {
    std::string text;
    char piece[1 << 16];
    while (true) {
      const ssize_t count = pread(fd_, piece, sizeof(piece), static_cast<off_t>(text.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Error("can't be read");
      if (count == 0) return text;
      text.append(piece, static_cast<size_t>(count));
    }
  }

  // `line` behind `end` bytes; what can't be written whole is taken back.
  absl::Status Append(size_t end, const std::string& line) const {
    size_t written = 0;
    while (written < line.size()) {
      const ssize_t count = pwrite(fd_, line.data() + written, line.size() - written,
                                   static_cast<off_t>(end + written));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        absl::Status status = Error("can't be written");
        // If that fails, too, the next run names the line.
        [[maybe_unused]] const int cut = ftruncate(fd_, static_cast<off_t>(end));
        return status;
      }
      written += static_cast<size_t>(count);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Error(const char* what) const {
    return absl::UnavailableError(absl::StrCat(path_, ": ", what, ": ", std::strerror(errno)));
  }

  const std::string path_;
  const int fd_;
};

std::optional<ProductChoice> ParseChoice(const Json& line, size_t algorithm_bytes) {
  const auto has = [&](const char* key, auto is) {
    return line.contains(key) && (line[key].*is)();
  };
  if (!has("algorithm", &Json::is_string) || !has("workspace", &Json::is_number_unsigned) ||
      !has("waves", &Json::is_number) || !has("microseconds", &Json::is_number)) {
    return std::nullopt;
  }
  ProductChoice choice;
  const auto digits = line["algorithm"].get<std::string>();
  choice.algorithm = absl::HexStringToBytes(digits);
  if (choice.algorithm.size() != algorithm_bytes ||
      absl::BytesToHexString(choice.algorithm) != digits) {
    return std::nullopt;
  }
  choice.workspace = line["workspace"].get<uint64_t>();
  choice.waves = line["waves"].get<float>();
  choice.microseconds = line["microseconds"].get<double>();
  return choice;
}

}  // namespace

size_t FastestOf(const std::vector<double>& times) {
  constexpr double kNoise = 0.02;
  size_t fastest = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i] < (1 - kNoise) * times[fastest]) fastest = i;
  }
  return fastest;
}

absl::StatusOr<ProductChoice> KeptChoice(
    const std::string& file, const std::string& product, size_t algorithm_bytes,
    const std::function<absl::StatusOr<ProductChoice>()>& choose) {
  const LockedFile locked(file);
  ORIEL_RETURN_IF_ERROR(locked.Lock());
  ORIEL_ASSIGN_OR_RETURN(const std::string text, locked.Read());
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const bool has_product =
        json.is_object() && json.contains("product") && json["product"].is_string();
    const std::optional<ProductChoice> choice =
        has_product ? ParseChoice(json, algorithm_bytes) : std::nullopt;
    if (!choice) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": line ", number,
                       " is not a product's algorithm; delete the file, and it is made again"));
    }
    if (json["product"].get<std::string>() == product) return *choice;
  }
  ORIEL_ASSIGN_OR_RETURN(const ProductChoice choice, choose());
  const Json made = {{"product", product},
                     {"algorithm", absl::BytesToHexString(choice.algorithm)},
                     {"workspace", choice.workspace},
                     {"waves", choice.waves},
                     {"microseconds", choice.microseconds}};
  const bool ends_within_line = !text.empty() && text.back() != '\n';
  ORIEL_RETURN_IF_ERROR(
      locked.Append(text.size(), absl::StrCat(ends_within_line ? "\n" : "", made.dump(), "\n")));
  return choice;
}

}  // namespace oriel::kernels::cuda
