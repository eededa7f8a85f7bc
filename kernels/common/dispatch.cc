#include "kernels/common/dispatch.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_split.h"

namespace oriel::kernels {

std::string LaunchName(const KernelSpec& spec) {
  std::string types;
  for (const TensorSpec& operand : spec.operands) {
    absl::StrAppend(&types, types.empty() ? "" : ", ", operand.ToString());
  }
  return absl::StrCat(spec.kernel, "(", types, ")");
}

bool LogsDispatch() {
  const char* topics = std::getenv("ORIEL_LOG");
  if (topics == nullptr) return false;
  const std::vector<std::string> listed = absl::StrSplit(topics, ',');
  return std::find(listed.begin(), listed.end(), "dispatch") != listed.end();
}

void LogDispatch(const char* device, const KernelSpec& spec, const char* taken,
                 const std::string& refusals) {
  if (!LogsDispatch()) return;
  const std::string line = absl::StrCat(
      "dispatch: ", device, ": ", LaunchName(spec), ": ", taken == nullptr ? "none" : taken,
      refusals.empty() ? "" : absl::StrCat(" (not: ", refusals, ")"), "\n");
  std::fputs(line.c_str(), stderr);
}

absl::Status NoImplementation(const KernelSpec& spec, const std::string& refusals) {
  return absl::UnimplementedError(
      absl::StrCat("kernel ", LaunchName(spec), " has no implementation: ", refusals));
}

}  // namespace oriel::kernels
