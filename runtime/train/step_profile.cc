#include "runtime/train/step_profile.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace oriel::runtime {

std::string StepProfile::Report() const {
  double total = 0;
  for (const auto& [phase, seconds] : seconds_) total += seconds;
  std::string report = absl::StrCat("profile of ", steps_, " steps (rank 0)\n");
  for (const auto& [phase, seconds] : seconds_) {
    absl::StrAppendFormat(&report, "  %-10s %9.3f ms/step %5.1f%%\n", phase,
                          seconds * 1000 / static_cast<double>(std::max<int64_t>(steps_, 1)),
                          total > 0 ? seconds / total * 100 : 0.0);
  }
  return report;
}

}  // namespace oriel::runtime
