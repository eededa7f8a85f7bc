#include "driver/stragglers.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace oriel::driver {

absl::StatusOr<Stragglers> parseStragglers(const std::vector<std::string>& words, int64_t ranks) {
  Stragglers stragglers;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    int64_t rank = 0;
    double factor = 0;
    if (equals == std::string::npos || !absl::SimpleAtoi(word.substr(0, equals), &rank) ||
        !absl::SimpleAtod(word.substr(equals + 1), &factor) || !std::isfinite(factor)) {
      return absl::InvalidArgumentError(
          absl::StrCat("can't use '", word, "'; write RANK=FACTOR, e.g. 3=1.5"));
    }
    if (rank < 0 || rank >= ranks) {
      return absl::InvalidArgumentError(absl::StrCat(
          "can't use '", word, "': there is no rank ", rank,
          ranks == 1 ? "; the only one is 0" : absl::StrCat("; they are 0 to ", ranks - 1)));
    }
    if (factor < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("can't use '", word,
                       "': a straggler takes longer, its factor is 1 or more; devices that are all "
                       "faster are another cluster"));
    }
    if (!stragglers.emplace(rank, factor).second) {
      return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " is given twice"));
    }
  }
  return stragglers;
}

double slowdownOf(const Stragglers& stragglers, int64_t first, int64_t count) {
  double most = 1;
  const auto end = stragglers.lower_bound(first + count);
  for (auto it = stragglers.lower_bound(first); it != end; ++it) most = std::max(most, it->second);
  return most;
}

}  // namespace oriel::driver
