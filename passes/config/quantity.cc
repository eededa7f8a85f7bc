#include "passes/config/quantity.h"

#include <algorithm>
#include <utility>

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

std::optional<int64_t> bytesIn(const std::string& text) {
  constexpr std::pair<const char*, double> kUnits[] = {
      {"", 1},         {"B", 1},    {"KB", 1e3},     {"KiB", 0x1p10}, {"MB", 1e6},
      {"MiB", 0x1p20}, {"GB", 1e9}, {"GiB", 0x1p30}, {"TB", 1e12},    {"TiB", 0x1p40}};
  constexpr double kLeastWithoutUnit = 1024;
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const absl::string_view unit =
      absl::StripLeadingAsciiWhitespace(absl::string_view(text).substr(end));
  double number = 0;
  if (!absl::SimpleAtod(text.substr(0, end), &number)) return std::nullopt;
  if (unit.empty() && number > 0 && number < kLeastWithoutUnit) return std::nullopt;
  for (const auto& [name, factor] : kUnits) {
    if (unit != name) continue;
    const double bytes = number * factor;
    if (!(bytes >= 0) || bytes > 0x1p62) return std::nullopt;
    return static_cast<int64_t>(bytes);
  }
  return std::nullopt;
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
