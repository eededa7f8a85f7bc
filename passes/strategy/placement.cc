#include "passes/strategy/placement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "passes/config/suggest.h"

namespace oriel {

const std::vector<std::string>& placementNames() {
  static const auto* const names = new std::vector<std::string>{"pp_outermost", "dp_outermost"};
  return *names;
}

const std::string& placementName(Placement placement) {
  return placementNames()[static_cast<size_t>(placement)];
}

absl::StatusOr<Placement> parsePlacement(const std::string& name) {
  const std::vector<std::string>& names = placementNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<Placement>(found - names.begin());
  return absl::InvalidArgumentError(
      absl::StrCat("there is no placement '", name, "'", suggestion(name, names)));
}

}  // namespace oriel
