#include "passes/strategy/remat_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "passes/config/suggest.h"

namespace oriel {

const std::vector<std::string>& rematNames() {
  static const auto* const names =
      new std::vector<std::string>{"none", "full", "selective", "auto"};
  return *names;
}

const std::string& rematName(RematPolicy policy) {
  return rematNames()[static_cast<size_t>(policy)];
}

absl::StatusOr<RematPolicy> parseRemat(const std::string& name) {
  const std::vector<std::string>& names = rematNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<RematPolicy>(found - names.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("there is no remat policy '", name, "'", suggestion(name, names)));
}

}  // namespace oriel
