#include "driver/report/memory_chart.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "driver/plan_text.h"
#include "driver/report/svg.h"
#include "driver/simulation_text.h"
#include "passes/lower/program_memory.h"

namespace oriel::driver {

namespace {

constexpr double kWidth = 1000, kLeft = 60, kRight = 80, kRow = 24, kAxis = 24, kTop = 16;
constexpr size_t kMaxRows = 32;

std::string useName(size_t use) { return absl::StrReplaceAll(memoryUseKey(use), {{"_", " "}}); }
std::string useStyle(size_t use) { return absl::StrCat("use", use); }
std::string sizeText(double bytes) { return bytesText(static_cast<int64_t>(bytes)); }

std::string numbers(const std::vector<Evaluation::Program>& programs,
                    const std::vector<std::string>& names, const std::vector<size_t>& rows) {
  std::string text = "<table class=\"numbers\">\n<tr><th>program</th><th>ranks</th>";
  for (size_t use = 0; use < kMemoryUses; ++use) {
    absl::StrAppend(&text, "<th>", useName(use), "</th>");
  }
  absl::StrAppend(&text, "<th>at the peak</th><th class=\"words\">of the model</th></tr>\n");
  for (size_t row : rows) {
    const Evaluation::Program& program = programs[row];
    absl::StrAppend(&text, "<tr><td>", escapeMarkup(names[row]), "</td><td>", program.ranks,
                    "</td>");
    for (double bytes : program.bytes) absl::StrAppend(&text, "<td>", sizeText(bytes), "</td>");
    absl::StrAppend(&text, "<td>", sizeText(program.peakBytes()), "</td><td class=\"words\">",
                    escapeMarkup(program.stages.empty() ? "all" : program.stages), "</td></tr>\n");
  }
  return text + "</table>\n";
}

// Of an axis up to so many bytes: the round numbers are those of the unit.
double unitOf(double bytes) {
  double unit = 1;
  while (bytes / unit >= 1024) unit *= 1024;
  return unit;
}

}  // namespace

std::string memoryChart(const std::vector<Evaluation::Program>& programs,
                        const std::vector<std::string>& names, double limit) {
  const std::vector<size_t> rows = shownRows(programs.size(), kMaxRows);
  double most = 1;
  for (const Evaluation::Program& program : programs) most = std::max(most, program.peakBytes());
  constexpr double kFarAway = 8;  // then bars would be too short to be read
  const bool hasLimit = limit < kFarAway * most;
  constexpr double kSpare = 1.03;
  const double unit = unitOf(hasLimit ? std::max(limit, most) : most);
  const Axis axis{0, kSpare * (hasLimit ? std::max(limit, most) : most) / unit, kLeft,
                  kWidth - kRight};
  const double bottom = kTop + static_cast<double>(rows.size()) * kRow;
  Svg picture(kWidth, bottom + kAxis, "Memory of a rank of each program");
  for (double tick : axis.ticks(8)) {
    picture.line(axis.at(tick), kTop, axis.at(tick), bottom + 4, "grid");
    picture.label(axis.at(tick), bottom + 17, tick == 0 ? "0" : sizeText(tick * unit),
                  Anchor::kMiddle);
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    const Evaluation::Program& program = programs[rows[row]];
    const double y = kTop + static_cast<double>(row) * kRow + 2;
    picture.label(kLeft - 6, y + 14, names[rows[row]], Anchor::kEnd);
    double sum = 0;
    for (size_t use = 0; use < program.bytes.size(); ++use) {
      const double x = axis.at(sum / unit);
      sum += program.bytes[use];
      const double width = axis.at(sum / unit) - x;
      if (width > 0.05) picture.rect({x, y, width, kRow - 4}, useStyle(use));
    }
    picture.label(axis.at(sum / unit) + 5, y + 14, sizeText(sum), Anchor::kStart, "halo");
  }
  if (hasLimit) {
    picture.line(axis.at(limit / unit), kTop - 4, axis.at(limit / unit), bottom, "limit");
    picture.label(axis.at(limit / unit), kTop - 6, "a device has " + sizeText(limit), Anchor::kEnd,
                  "strong");
  } else {
    picture.label(kWidth - kRight, kTop - 6,
                  absl::StrFormat("a device has %s, %.0f times the longest bar", sizeText(limit),
                                  limit / most),
                  Anchor::kEnd, "strong");
  }
  std::string legend = "<p class=\"legend\">";
  for (size_t use = 0; use < kMemoryUses; ++use) {
    absl::StrAppend(&legend, "<span><i class=\"", useStyle(use), "\"></i>", useName(use),
                    "</span> ");
  }
  std::string text = absl::StrCat(legend, "</p>\n", picture.text());
  if (rows.size() < programs.size()) {
    absl::StrAppend(&text, "<p class=\"note\">Of ", programs.size(), " programs, ", rows.size(),
                    " are shown, evenly spread with the first and the last.</p>\n");
  }
  return text + numbers(programs, names, rows);
}

}  // namespace oriel::driver
