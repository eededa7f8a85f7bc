#include "driver/bindings.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "driver/console.h"

namespace oriel::driver {

absl::StatusOr<std::map<std::string, int64_t>> parseBindings(
    const std::vector<std::string>& words) {
  std::map<std::string, int64_t> sizes;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    int64_t size = 0;
    if (equals == 0 || equals == std::string::npos ||
        !absl::SimpleAtoi(word.substr(equals + 1), &size) || size < 0) {
      return usageError(
          absl::StrCat("--bind: can't use '", word,
                       "'; write NAME=N, N a whole number, e.g. --bind batch=4 (0: empty)"));
    }
    const auto [it, isNew] = sizes.emplace(word.substr(0, equals), size);
    if (!isNew && it->second != size) {
      return usageError(
          absl::StrCat("--bind: ", it->first, " has two sizes, ", it->second, " and ", size));
    }
  }
  return sizes;
}

}  // namespace oriel::driver
