#include "driver/comparison.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "driver/plan_text.h"

namespace oriel::driver {

namespace {

using Json = nlohmann::ordered_json;

std::optional<double> numberOf(const Value& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return std::nullopt;
}

std::string numberText(double number, Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return bytesText(static_cast<int64_t>(number));
    case Unit::kCount:
      return countText(static_cast<int64_t>(number));
    case Unit::kMilliseconds:
      return timeText(number);
    case Unit::kPercent:
      return absl::StrFormat("%.1f %%", number);
    case Unit::kNone:
      break;
  }
  return absl::StrCat(number);
}

std::string valueText(const Value& value, Unit unit) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  const auto* whole = std::get_if<int64_t>(&value);
  if (whole != nullptr && unit == Unit::kNone) return absl::StrCat(*whole);
  const std::optional<double> number = numberOf(value);
  return number ? numberText(*number, unit) : "-";
}

// Never "0.0 %" of what differs.
std::string changeText(const ComparedValue& value) {
  if (!value.differs()) return "=";
  if (const std::optional<double> percent = value.changePercent()) {
    return absl::StrFormat(std::abs(*percent) < 0.05 ? "%+.1g %%" : "%+.1f %%", *percent);
  }
  const std::optional<double> a = numberOf(value.a), b = numberOf(value.b);
  return value.unit != Unit::kNone && a == 0.0 && b ? "new" : "";
}

const char* unitName(Unit unit) {
  switch (unit) {
    case Unit::kCount:
      return "count";
    case Unit::kBytes:
      return "bytes";
    case Unit::kMilliseconds:
      return "ms";
    case Unit::kPercent:
      return "percent";
    case Unit::kNone:
      break;
  }
  return "none";
}

Json valueJson(const Value& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) {
          return nullptr;
        } else {
          return held;
        }
      },
      value);
}

// A row of the table.
struct Row {
  std::string label, a, b, change;
};

// Values that are longer get lines of their own.
constexpr size_t kWidest = 28;

bool isLong(const Row& row) { return row.a.size() > kWidest || row.b.size() > kWidest; }

class Table {
 public:
  void addHeading(const std::string& heading) { parts_.push_back({heading, std::nullopt}); }
  void addRow(Row row) {
    labelWidth_ = std::max(labelWidth_, row.label.size());
    if (!isLong(row)) valueWidth_ = std::max({valueWidth_, row.a.size(), row.b.size()});
    parts_.push_back({"", std::move(row)});
  }
  bool empty() const { return parts_.empty(); }

  std::string text() const {
    std::string text = rowText({"", "A", "B", "change"});
    for (const auto& [heading, row] : parts_) text += row ? rowText(*row) : heading;
    return text;
  }

 private:
  std::string rowText(const Row& row) const {
    if (isLong(row)) {
      return absl::StrCat("  ", row.label, "\n    A  ", row.a, "\n    B  ", row.b, "\n");
    }
    const int label = static_cast<int>(labelWidth_), value = static_cast<int>(valueWidth_);
    std::string text = absl::StrFormat("  %-*s  %*s  %*s  %10s", label, row.label, value, row.a,
                                       value, row.b, row.change);
    absl::StripTrailingAsciiWhitespace(&text);
    return text + "\n";
  }

  // Each a heading or a row.
  std::vector<std::pair<std::string, std::optional<Row>>> parts_;
  size_t labelWidth_ = 18, valueWidth_ = 12;
};

std::string headingText(const std::string& name, const std::string& note) {
  return note.empty() ? name + "\n" : absl::StrFormat("%-11s %s\n", name, note);
}

// Of a grid: "grid 0      memory at its peak".
std::string headingText(const ComparedSection& section) {
  if (!section.grid) return headingText(section.name, section.note);
  const std::string grid = absl::StrCat("grid ", *section.grid);
  if (section.name == "grid") return headingText(grid, section.note);
  return headingText(grid, absl::StrCat(section.name, " ", section.note));
}

std::string linesText(const ComparedText& text, bool all) {
  std::string result;
  for (const ComparedLine& line : text.lines) {
    const bool both = line.in == ComparedLine::In::kBoth;
    if (both && !all) continue;
    const char* mark = both ? " " : line.in == ComparedLine::In::kA ? "-" : "+";
    absl::StrAppend(&result, "  ", mark, " ", line.text, "\n");
  }
  if (result.empty()) return "";
  return headingText(text.name, "- only in A, + only in B") + result;
}

bool isSame(const ComparedText& text) {
  return std::all_of(text.lines.begin(), text.lines.end(),
                     [](const ComparedLine& line) { return line.in == ComparedLine::In::kBoth; });
}

bool isSame(const ComparedSection& section) {
  return std::none_of(section.values.begin(), section.values.end(),
                      [](const ComparedValue& value) { return value.differs(); });
}

}  // namespace

std::optional<double> ComparedValue::changePercent() const {
  const std::optional<double> from = numberOf(a), to = numberOf(b);
  if (unit == Unit::kNone || !from || !to) return std::nullopt;
  if (*from == *to) return 0;
  if (*from == 0) return std::nullopt;
  return 100 * (*to - *from) / *from;
}

void ComparedSection::add(const std::string& key, Unit unit, Value a, Value b) {
  values.push_back({key, absl::StrReplaceAll(key, {{"_", " "}}), unit, std::move(a), std::move(b)});
}

bool Comparison::same() const {
  return std::all_of(texts.begin(), texts.end(), [](const auto& each) { return isSame(each); }) &&
         std::all_of(sections.begin(), sections.end(),
                     [](const auto& each) { return isSame(each); });
}

std::string comparisonText(const Comparison& comparison, bool all) {
  std::string text = absl::StrFormat("%-11s %s\n%-11s %s\n", "A", comparison.a, "B", comparison.b);
  for (const ComparedText& each : comparison.texts) text += linesText(each, all);
  Table table;
  for (const ComparedSection& section : comparison.sections) {
    if (section.values.empty() || (!all && isSame(section))) continue;
    table.addHeading(headingText(section));
    for (const ComparedValue& value : section.values) {
      if (!all && !value.differs()) continue;
      table.addRow({value.label, valueText(value.a, value.unit), valueText(value.b, value.unit),
                    changeText(value)});
    }
  }
  if (!table.empty()) text += table.text();
  if (comparison.same()) text += "nothing differs\n";
  return text;
}

std::string comparisonJson(const Comparison& comparison, bool all) {
  Json json = {{"kind", comparison.kind},
               {"a", comparison.a},
               {"b", comparison.b},
               {"same", comparison.same()}};
  Json& texts = json["texts"] = Json::object();
  for (const ComparedText& text : comparison.texts) {
    Json& lines = texts[text.name] = Json::array();
    for (const ComparedLine& line : text.lines) {
      const bool both = line.in == ComparedLine::In::kBoth;
      if (both && !all) continue;
      lines.push_back({{"in", both                              ? "both"
                              : line.in == ComparedLine::In::kA ? "a"
                                                                : "b"},
                       {"text", line.text}});
    }
  }
  Json& values = json["values"] = Json::array();
  for (const ComparedSection& section : comparison.sections) {
    for (const ComparedValue& value : section.values) {
      if (!all && !value.differs()) continue;
      const std::optional<double> change = value.changePercent();
      values.push_back({{"section", section.name},
                        {"grid", section.grid ? Json(*section.grid) : Json()},
                        {"key", value.key},
                        {"unit", unitName(value.unit)},
                        {"a", valueJson(value.a)},
                        {"b", valueJson(value.b)},
                        {"change_percent", change ? Json(*change) : Json()}});
    }
  }
  // A name that is not UTF-8 must not end the process.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace oriel::driver
