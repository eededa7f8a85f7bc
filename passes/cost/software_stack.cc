#include "passes/cost/software_stack.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "passes/config/suggest.h"

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

// `value` among the names, as its place in the list.
template <typename T>
absl::Status readName(const std::string& text, const std::string& value,
                      const std::vector<std::string>& names, T* number) {
  const auto found = std::find(names.begin(), names.end(), value);
  if (found == names.end()) {
    const std::vector<std::string> others(names.begin(), names.end() - 1);
    return refuse(text, absl::StrCat("give ", absl::StrJoin(others, ", "), " or ", names.back()));
  }
  *number = static_cast<T>(found - names.begin());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SoftwareStack> parseSoftwareStack(const std::vector<std::string>& values) {
  constexpr double kMaxPasses = 100;
  const std::vector<std::string> keys = {
      "kernel_overhead",      "pointwise",    "overlap", "attention", "allocator", "step_gradients",
      "microbatch_gradients", "stage_outputs"};
  SoftwareStack stack;
  std::set<std::string> seen;
  std::string needsAllocator;
  for (const std::string& text : values) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    const auto& [key, value] = parts;
    absl::Status read;
    if (key == keys[0]) {
      read = readSeconds(text, value, &stack.kernelOverhead);
    } else if (key == keys[1]) {
      read = readNumber(text, value, 0, kMaxPasses, &stack.pointwise);
    } else if (key == keys[2]) {
      read = readNumber(text, value, 0, 1, &stack.overlap);
    } else if (key == keys[3]) {
      read = readNumber(text, value, 0, kMaxPasses, &stack.attention);
    } else if (key == keys[4]) {
      read = readName(text, value, {"arena", "caching"}, &stack.memory.isCached);
    } else if (key == keys[5]) {
      read = readName(text, value, {"accumulated", "copied", "flat"}, &stack.memory.stepGradients);
      needsAllocator = text;
    } else if (key == keys[6]) {
      read = readName(text, value, {"added", "kept"}, &stack.memory.keepsGradients);
      needsAllocator = text;
    } else if (key == keys[7]) {
      read = readName(text, value, {"sent", "kept"}, &stack.memory.keepsOutputs);
      needsAllocator = text;
    } else {
      read =
          refuse(text, absl::StrCat("there is ", absl::StrJoin(keys, ", "), suggestion(key, keys)));
    }
    if (read.ok() && !seen.insert(key).second) read = refuse(text, "it is there twice");
    if (!read.ok()) return read;
  }
  if (!needsAllocator.empty() && !stack.memory.isCached) {
    return refuse(needsAllocator,
                  "it is told of software with an allocator; give "
                  "allocator=caching too");
  }
  return stack;
}

}  // namespace oriel
