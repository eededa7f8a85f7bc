#include "driver/report/svg.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace oriel::driver {

std::string escapeMarkup(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        escaped += (byte < 0x20 && c != '\n') || byte == 0x7f ? ' ' : c;
      }
    }
  }
  return escaped;
}

std::string coordinate(double value) {
  const double tenths = std::round(value * 10);
  const auto whole = static_cast<int64_t>(tenths);
  if (whole % 10 == 0) return absl::StrCat(whole / 10);
  return absl::StrFormat("%.1f", tenths / 10);
}

Svg::Svg(double width, double height, const std::string& title) {
  text_ = absl::StrCat("<svg viewBox=\"0 0 ", coordinate(width), " ", coordinate(height),
                       "\" role=\"img\" aria-label=\"", escapeMarkup(title), "\">\n");
}

void Svg::rect(const Box& box, const std::string& style) {
  absl::StrAppend(&text_, "<rect class=\"", style, "\" x=\"", coordinate(box.x), "\" y=\"",
                  coordinate(box.y), "\" width=\"", coordinate(box.width), "\" height=\"",
                  coordinate(box.height), "\"/>\n");
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& style) {
  absl::StrAppend(&text_, "<line class=\"", style, "\" x1=\"", coordinate(x1), "\" y1=\"",
                  coordinate(y1), "\" x2=\"", coordinate(x2), "\" y2=\"", coordinate(y2), "\"/>\n");
}

void Svg::path(const std::string& data, const std::string& style) {
  absl::StrAppend(&text_, "<path class=\"", style, "\" d=\"", data, "\"/>\n");
}

void Svg::circle(double x, double y, double radius, const std::string& style) {
  absl::StrAppend(&text_, "<circle class=\"", style, "\" cx=\"", coordinate(x), "\" cy=\"",
                  coordinate(y), "\" r=\"", coordinate(radius), "\"/>\n");
}

void Svg::label(double x, double y, const std::string& text, Anchor anchor,
                const std::string& style) {
  absl::StrAppend(&text_, "<text x=\"", coordinate(x), "\" y=\"", coordinate(y), "\"");
  if (anchor != Anchor::kStart) {
    absl::StrAppend(&text_, " text-anchor=\"", anchor == Anchor::kEnd ? "end" : "middle", "\"");
  }
  if (!style.empty()) absl::StrAppend(&text_, " class=\"", style, "\"");
  absl::StrAppend(&text_, ">", escapeMarkup(text), "</text>\n");
}

std::string Svg::text() const { return text_ + "</svg>\n"; }

double Axis::at(double value) const {
  const double share =
      isLog ? std::log(value / least) / std::log(most / least) : (value - least) / (most - least);
  return from + (to - from) * share;
}

std::vector<double> Axis::ticks(int count) const {
  std::vector<double> values;
  constexpr double kAlmost = 1 + 1e-9;  // values that rounding pushes out of the range
  if (isLog) {
    const auto first = static_cast<int>(std::floor(std::log10(least)));
    const auto last = static_cast<int>(std::floor(std::log10(most * kAlmost)));
    const bool isDense = 3 * (last - first + 1) <= 2 * count;
    const int stride = std::max(1, (last - first + 1) / count);
    for (int power = first; power <= last; power += isDense ? 1 : stride) {
      for (double digit : {1., 2., 5.}) {
        if (digit > 1 && !isDense) break;
        const double value = digit * std::pow(10, power);
        if (value * kAlmost >= least && value <= most * kAlmost) values.push_back(value);
      }
    }
    return values;
  }
  const double rough = (most - least) / count;
  if (!(rough > 0)) return {least};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (double digit : {5., 2., 1.}) {
    if (digit * power * kAlmost >= rough) step = digit * power;
  }
  for (double i = std::ceil(least / step / kAlmost); i * step <= most * kAlmost; ++i) {
    values.push_back(i * step);
  }
  return values;
}

std::vector<size_t> shownRows(size_t rows, size_t most) {
  std::vector<size_t> shown;
  if (rows <= most) {
    for (size_t row = 0; row < rows; ++row) shown.push_back(row);
    return shown;
  }
  for (size_t i = 0; i < most; ++i) shown.push_back(i * (rows - 1) / (most - 1));
  return shown;
}

}  // namespace oriel::driver
