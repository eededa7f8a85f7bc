#include "passes/config/quantity.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace oriel {

const Quantity& bytesPerSecond() {
  static const auto* const quantity = new Quantity{"450 GB/s",
                                                   {{"B/s", 1},
                                                    {"KB/s", 1e3},
                                                    {"MB/s", 1e6},
                                                    {"GB/s", 1e9},
                                                    {"TB/s", 1e12},
                                                    {"Gb/s", 1.25e8},
                                                    {"Gbit/s", 1.25e8}}};
  return *quantity;
}

const Quantity& flopsPerSecond() {
  static const auto* const quantity =
      new Quantity{"989 TFLOP/s", {{"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}}};
  return *quantity;
}

const Quantity& seconds() {
  static const auto* const quantity =
      new Quantity{"5 us", {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}}};
  return *quantity;
}

double readQuantity(YamlMap& map, const std::string& key, const Quantity& quantity,
                    double fallback) {
  if (!map.has(key)) return fallback;
  const YAML::Node node = map.node(key);
  if (node.IsScalar()) {
    const std::string& text = node.Scalar();
    const size_t end = std::min(text.find_first_not_of("0123456789.eE+"), text.size());
    const absl::string_view unit =
        absl::StripLeadingAsciiWhitespace(absl::string_view(text).substr(end));
    double number = 0;
    for (const Unit& known : quantity.units) {
      if (unit == known.name && absl::SimpleAtod(text.substr(0, end), &number) && number > 0) {
        return number * known.factor;
      }
    }
  }
  std::string units;
  for (const Unit& known : quantity.units)
    absl::StrAppend(&units, units.empty() ? "" : ", ", known.name);
  map.fail(key, absl::StrCat("'", map.pathOf(key), "' must be a number above 0 with a unit (",
                             units, "), e.g. `", quantity.example, "`"));
  return fallback;
}

}  // namespace oriel
