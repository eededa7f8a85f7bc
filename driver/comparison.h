// Two things of a kind side by side, value by value; as text, and for scripts.
#ifndef ORIEL_DRIVER_COMPARISON_H_
#define ORIEL_DRIVER_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "driver/line_diff.h"

namespace oriel::driver {

// Nothing where one of the two has no such value.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string>;

// kNone: a name or a setting, of which no change in percent makes sense.
enum class Unit { kNone, kCount, kBytes, kMilliseconds, kPercent };

struct ComparedValue {
  std::string key;    // for scripts: stays
  std::string label;  // for people
  Unit unit = Unit::kNone;
  Value a, b;

  bool differs() const { return a != b; }
  // (b - a) / a; none where that is no number.
  std::optional<double> changePercent() const;
};

struct ComparedSection {
  std::string name;                  // for scripts: stays
  std::optional<int64_t> grid = {};  // where the values are of one
  std::string note = {};             // what they are, for people; may be empty
  std::vector<ComparedValue> values = {};

  // `label`: the key with spaces.
  void add(const std::string& key, Unit unit, Value a, Value b);
};

struct ComparedText {
  std::string name;
  std::vector<ComparedLine> lines;
};

struct Comparison {
  std::string kind;  // "plans", "strategies"
  std::string a, b;  // what they are called: paths
  std::vector<ComparedText> texts = {};
  std::vector<ComparedSection> sections = {};

  bool same() const;
};

// Ends with a newline. `all`: what is the same, too.
std::string comparisonText(const Comparison& comparison, bool all);
// One JSON object; keys are only ever added. Absent values are null.
std::string comparisonJson(const Comparison& comparison, bool all);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_COMPARISON_H_
