#include "driver/report/frontier_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/plan_text.h"
#include "driver/report/svg.h"
#include "driver/search_text.h"

namespace oriel::driver {

namespace {

constexpr double kWidth = 1000, kHeight = 420, kLeft = 70, kRight = 20, kTop = 20, kBottom = 46;
constexpr size_t kMaxLabels = 6;

std::string sizeText(double bytes) { return bytesText(static_cast<int64_t>(bytes)); }

// Of all values, with some room at the ends.
Axis axisFor(const std::vector<double>& values, double from, double to, double unit) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  constexpr double kRoom = 1.08, kWide = 10;
  Axis axis{*least / unit / kRoom, *most / unit * kRoom, from, to};
  axis.isLog = axis.least > 0 && axis.most > kWide * axis.least;
  if (axis.least >= axis.most) axis.most = axis.least + 1;
  return axis;
}

class FrontierChart {
 public:
  FrontierChart(const std::vector<TriedStrategy>& tried, double limit)
      : tried_(tried), limit_(limit), picture_(kWidth, kHeight, "Tried strategies") {
    std::vector<double> bytes, seconds;
    for (const TriedStrategy& strategy : tried) {
      bytes.push_back(strategy.evaluation.peakBytes());
      seconds.push_back(strategy.evaluation.seconds);
    }
    const double most = *std::max_element(bytes.begin(), bytes.end());
    while (most / unit_ >= 1024) unit_ *= 1024;
    constexpr double kNear = 1.5;
    if (limit < kNear * most) bytes.push_back(limit);
    x_ = axisFor(bytes, kLeft, kWidth - kRight, unit_);
    y_ = axisFor(seconds, kHeight - kBottom, kTop, 1);
  }

  std::string text() {
    drawAxes();
    const std::vector<size_t> frontier = frontierOf(tried_);
    drawLine(frontier);
    // What fits lies above what doesn't.
    for (bool fits : {false, true}) {
      for (const TriedStrategy& strategy : tried_) {
        if (strategy.fits == fits) drawPoint(strategy);
      }
    }
    const std::string table = drawLabels(frontier);
    return legend() + picture_.text() + table;
  }

 private:
  double x(const TriedStrategy& strategy) const {
    return x_.at(strategy.evaluation.peakBytes() / unit_);
  }
  double y(const TriedStrategy& strategy) const { return y_.at(strategy.evaluation.seconds); }

  void drawAxes() {
    const double bottom = kHeight - kBottom;
    for (double tick : x_.ticks(8)) {
      picture_.line(x_.at(tick), kTop, x_.at(tick), bottom, "grid");
      picture_.label(x_.at(tick), bottom + 16, sizeText(tick * unit_), Anchor::kMiddle);
    }
    for (double tick : y_.ticks(8)) {
      picture_.line(kLeft, y_.at(tick), kWidth - kRight, y_.at(tick), "grid");
      picture_.label(kLeft - 6, y_.at(tick) + 4, tick == 0 ? "0" : secondsText(tick), Anchor::kEnd);
    }
    picture_.line(kLeft, bottom, kWidth - kRight, bottom, "axis");
    picture_.line(kLeft, kTop, kLeft, bottom, "axis");
    picture_.label((kLeft + kWidth - kRight) / 2, kHeight - 8, "memory of the rank that needs most",
                   Anchor::kMiddle);
    picture_.label(kLeft + 6, kTop + 10, "time of a step");
    if (limit_ / unit_ <= x_.most && limit_ / unit_ >= x_.least) {
      const double at = x_.at(limit_ / unit_);
      picture_.line(at, kTop, at, bottom, "limit");
      picture_.label(at - 4, kTop - 6, "a device has " + sizeText(limit_), Anchor::kEnd, "strong");
    }
  }

  // As stairs: between two strategies, the slower one is what there is for that memory.
  void drawLine(const std::vector<size_t>& frontier) {
    std::string path;
    for (size_t i : frontier) {
      const std::string px = coordinate(x(tried_[i])), py = coordinate(y(tried_[i]));
      if (path.empty()) {
        path = absl::StrCat("M", px, " ", py);
      } else {
        absl::StrAppend(&path, "V", py, "H", px);
      }
    }
    picture_.path(path, "frontier");
  }

  void drawPoint(const TriedStrategy& strategy) {
    const double px = x(strategy), py = y(strategy);
    if (strategy.fits) {
      picture_.circle(px, py, 4, "fits");
      return;
    }
    picture_.path(
        absl::StrCat("M", coordinate(px - 3.5), " ", coordinate(py - 3.5), "l7 7m0 -7l-7 7"),
        "nofit");
  }

  // Numbers at the best and at some of the frontier, where they don't cover each other; what they
  // stand for, as a table.
  std::string drawLabels(const std::vector<size_t>& frontier) {
    std::vector<std::pair<double, double>> places;
    std::string table =
        "<table class=\"numbers\">\n<tr><th></th><th>step</th><th>memory</th><th>MFU %</th>"
        "<th class=\"words\">strategy</th></tr>\n";
    std::vector<size_t> wanted = {0};
    if (!frontier.empty()) wanted.push_back(frontier.back());
    wanted.insert(wanted.end(), frontier.begin(), frontier.end());
    for (size_t i : wanted) {
      const TriedStrategy& strategy = tried_[i];
      const double px = x(strategy), py = y(strategy);
      constexpr double kDistance = 26;
      const bool isCovered = std::any_of(places.begin(), places.end(), [&](const auto& place) {
        return std::hypot(place.first - px, place.second - py) < kDistance;
      });
      if (isCovered || places.size() == kMaxLabels) continue;
      places.emplace_back(px, py);
      const std::string number = absl::StrCat(places.size());
      picture_.circle(px, py, 9, i == 0 ? "mark best" : "mark");
      picture_.label(px, py + 3.8, number, Anchor::kMiddle, i == 0 ? "small light" : "small");
      absl::StrAppend(&table, "<tr><td>", number, "</td><td>",
                      secondsText(strategy.evaluation.seconds), "</td><td>",
                      sizeText(strategy.evaluation.peakBytes()), "</td><td>",
                      percentText(strategy.evaluation.mfu), "</td><td class=\"words\">",
                      escapeMarkup(strategy.candidate.shortText()), "</td></tr>\n");
    }
    return table + "</table>\n";
  }

  std::string legend() const {
    return "<p class=\"legend\"><span><b class=\"dark\">1</b> the chosen one</span> "
           "<span><b>2</b> others that nothing beats in both time and memory (the line)</span> "
           "<span>&#9679; fits</span> <span>&#215; does not fit</span></p>\n";
  }

  const std::vector<TriedStrategy>& tried_;
  const double limit_;
  double unit_ = 1;
  Axis x_, y_;
  Svg picture_;
};

}  // namespace

std::vector<size_t> frontierOf(const std::vector<TriedStrategy>& tried) {
  std::vector<size_t> order, frontier;
  for (size_t i = 0; i < tried.size(); ++i) {
    if (tried[i].fits) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Evaluation &left = tried[a].evaluation, &right = tried[b].evaluation;
    return std::pair(left.seconds, left.peakBytes()) < std::pair(right.seconds, right.peakBytes());
  });
  double least = std::numeric_limits<double>::infinity();
  for (size_t i : order) {
    const double bytes = tried[i].evaluation.peakBytes();
    if (bytes >= least) continue;
    least = bytes;
    frontier.push_back(i);
  }
  return frontier;
}

std::string frontierChart(const std::vector<TriedStrategy>& tried, double limit) {
  return FrontierChart(tried, limit).text();
}

}  // namespace oriel::driver
