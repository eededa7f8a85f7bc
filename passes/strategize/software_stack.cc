#include "passes/strategize/software_stack.h"

#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "passes/train/suggest.h"

namespace oriel {

namespace {

absl::Status refuse(const std::string& text, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("can't use '", text, "': ", why));
}

absl::Status readNumber(const std::string& text, const std::string& value, double least,
                        double most, double* number) {
  // Written so that a NaN is refused.
  if (absl::SimpleAtod(value, number) && *number >= least && *number <= most) {
    return absl::OkStatus();
  }
  return refuse(text, absl::StrCat("give a number from ", least, " to ", most));
}

absl::Status readSeconds(const std::string& text, const std::string& value, double* seconds) {
  absl::Duration duration;
  if (!absl::ParseDuration(value, &duration) || duration < absl::ZeroDuration() ||
      duration > absl::Hours(1)) {
    return refuse(text, "give a time with its unit, e.g. 6us or 10ms");
  }
  *seconds = absl::ToDoubleSeconds(duration);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SoftwareStack> parseSoftwareStack(const std::vector<std::string>& values) {
  constexpr double kMostPasses = 100;
  const std::vector<std::string> keys = {"kernel_overhead", "pointwise", "overlap", "attention",
                                         "allocator"};
  SoftwareStack stack;
  std::set<std::string> seen;
  for (const std::string& text : values) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    const auto& [key, value] = parts;
    absl::Status read;
    if (key == keys[0]) {
      read = readSeconds(text, value, &stack.kernelOverhead);
    } else if (key == keys[1]) {
      read = readNumber(text, value, 0, kMostPasses, &stack.pointwise);
    } else if (key == keys[2]) {
      read = readNumber(text, value, 0, 1, &stack.overlap);
    } else if (key == keys[3]) {
      read = readNumber(text, value, 0, kMostPasses, &stack.attention);
    } else if (key == keys[4]) {
      stack.cachesMemory = value == "caching";
      if (!stack.cachesMemory && value != "arena") read = refuse(text, "give caching or arena");
    } else {
      read = refuse(text, absl::StrCat("there is kernel_overhead, pointwise, overlap, attention "
                                       "and allocator",
                                       suggestion(key, keys)));
    }
    if (read.ok() && !seen.insert(key).second) read = refuse(text, "it is there twice");
    if (!read.ok()) return read;
  }
  return stack;
}

}  // namespace oriel
