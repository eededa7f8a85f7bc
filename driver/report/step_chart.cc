#include "driver/report/step_chart.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "driver/report/svg.h"
#include "driver/search_text.h"

namespace oriel::driver {

namespace {

constexpr double kWidth = 1000, kLeft = 60, kRight = 10;
constexpr double kNarrowest = 2;  // of a bar that is drawn on its own
constexpr size_t kMaxRows = 32;
constexpr double kDigit = 5.6;  // width of one, of the small labels

// As the classes of the style sheet, and for the legend.
constexpr const char* kStyles[kStepPhases] = {"forward", "backward", "weight", "update", "aside"};
constexpr const char* kMeanings[kStepPhases] = {"forward", "backward (or its input half)",
                                                "weight half of the backward", "update", "other"};

std::string boxPath(const Box& box) {
  return absl::StrCat("M", coordinate(box.x), " ", coordinate(box.y), "h", coordinate(box.width),
                      "v", coordinate(box.height), "h", coordinate(-box.width), "z");
}

class StepChart {
 public:
  StepChart(const StepTimeline& step, const std::vector<std::string>& names)
      : step_(step),
        names_(names),
        rows_(shownRows(step.programs.size(), kMaxRows)),
        rowHeight_(rows_.size() > kMaxRows / 2 ? 16 : 26),
        axis_{0, step.seconds > 0 ? step.seconds : 1, kLeft, kWidth - kRight},
        picture_(kWidth, height(), "Timeline of a step") {}

  std::string text() {
    drawAxis();
    for (size_t row = 0; row < rows_.size(); ++row) drawRow(row);
    std::string text = legend() + picture_.text();
    if (!notes().empty()) absl::StrAppend(&text, "<p class=\"note\">", notes(), "</p>\n");
    return text;
  }

 private:
  static constexpr double kAxis = 22;  // height

  double height() const { return static_cast<double>(rows_.size()) * rowHeight_ + kAxis; }

  void drawAxis() {
    const double bottom = height() - kAxis;
    for (double tick : axis_.ticks(8)) {
      picture_.line(axis_.at(tick), 0, axis_.at(tick), bottom + 4, "grid");
      const bool isAtEnd = axis_.at(tick) > kWidth - 3 * kRight;
      picture_.label(axis_.at(tick), bottom + 16, tick == 0 ? "0" : secondsText(tick),
                     isAtEnd ? Anchor::kEnd : Anchor::kMiddle);
    }
  }

  void drawRow(size_t row) {
    const size_t program = rows_[row];
    const double top = static_cast<double>(row) * rowHeight_ + 2, height = rowHeight_ - 4;
    picture_.label(kLeft - 6, top + height / 2 + 4, names_[program], Anchor::kEnd);
    picture_.rect({kLeft, top, kWidth - kRight - kLeft, height}, "idle");
    const double shortest = kNarrowest * axis_.most / (axis_.to - axis_.from);
    const std::vector<StepBar> bars = barsOf(step_.programs[program].runs, shortest);
    std::array<std::string, kStepPhases> paths;
    for (const StepBar& bar : bars) {
      const double x = axis_.at(bar.start), width = axis_.at(bar.end) - x;
      double all = 0, y = top;
      for (double seconds : bar.seconds) all += seconds;
      for (size_t phase = 0; phase < kStepPhases && all > 0; ++phase) {
        const double share = height * bar.seconds[phase] / all;
        if (share <= 0) continue;
        absl::StrAppend(&paths[phase], boxPath({x, y, std::max(width, 0.3), share}));
        y += share;
        seen_[phase] = true;
      }
      hasJoined_ |= !bar.run;
    }
    for (size_t phase = 0; phase < kStepPhases; ++phase) {
      if (!paths[phase].empty()) picture_.path(paths[phase], kStyles[phase]);
    }
    for (const StepBar& bar : bars) number(bar, top + height / 2 + 3.5);
  }

  void number(const StepBar& bar, double y) {
    if (!bar.run || bar.seconds[static_cast<size_t>(StepPhase::kUpdate)] > 0) return;
    const std::string text = absl::StrCat(bar.run->microbatch);
    const double width = axis_.at(bar.end) - axis_.at(bar.start);
    if (width < kDigit * static_cast<double>(text.size()) + 3) return;
    const bool isDark = bar.seconds[static_cast<size_t>(StepPhase::kBackward)] > 0;
    picture_.label(axis_.at((bar.start + bar.end) / 2), y, text, Anchor::kMiddle,
                   isDark ? "small light" : "small");
    hasNumbers_ = true;
  }

  std::string legend() const {
    std::string text = "<p class=\"legend\">";
    for (size_t phase = 0; phase < kStepPhases; ++phase) {
      if (!seen_[phase]) continue;
      absl::StrAppend(&text, "<span><i class=\"", kStyles[phase], "\"></i>", kMeanings[phase],
                      "</span> ");
    }
    return absl::StrCat(text, "<span><i class=\"idle\"></i>waiting for other stages</span></p>\n");
  }

  std::string notes() const {
    std::string text;
    if (hasNumbers_) absl::StrAppend(&text, "The numbers are microbatches. ");
    if (hasJoined_) {
      absl::StrAppend(&text, "Runs narrower than ", coordinate(kNarrowest), " of the ",
                      coordinate(kWidth),
                      " units across are drawn as one with those next to them, "
                      "each phase as high as its share of the time. ");
    }
    if (rows_.size() < step_.programs.size()) {
      absl::StrAppend(&text, "Of ", step_.programs.size(), " programs, ", rows_.size(),
                      " are shown, evenly spread with the first and the last. ");
    }
    return text;
  }

  const StepTimeline& step_;
  const std::vector<std::string>& names_;
  const std::vector<size_t> rows_;
  const double rowHeight_;
  const Axis axis_;
  Svg picture_;
  std::array<bool, kStepPhases> seen_ = {};
  bool hasJoined_ = false, hasNumbers_ = false;
};

}  // namespace

StepPhase phaseOfSegment(const std::string& segment) {
  if (absl::StartsWith(segment, "forward")) return StepPhase::kForward;
  if (absl::StartsWith(segment, "backward_weight")) return StepPhase::kBackwardWeight;
  if (absl::StartsWith(segment, "backward")) return StepPhase::kBackward;
  if (absl::StartsWith(segment, "update")) return StepPhase::kUpdate;
  return StepPhase::kOther;
}

std::vector<StepBar> barsOf(const std::vector<TimedSegment>& runs, double shortest) {
  std::vector<StepBar> bars;
  bool isOpen = false;  // short ones may join the last bar
  auto add = [&](const TimedSegment& run, double start, double end) {
    const double seconds = end - start;
    if (seconds <= 0) return;
    const bool isShort = seconds < shortest;
    if (!isShort || !isOpen || start - bars.back().start >= shortest) {
      bars.push_back({start, end, {}, run.run});
      isOpen = isShort;
    } else {
      bars.back().end = end;
      bars.back().run.reset();
    }
    bars.back().seconds[static_cast<size_t>(phaseOfSegment(run.run.segment))] += seconds;
  };
  for (const TimedSegment& run : runs) {
    double start = run.start;
    for (const auto& [from, to] : run.waits) {
      add(run, start, from);
      start = to;
    }
    add(run, start, run.end);
  }
  return bars;
}

std::string stepChart(const StepTimeline& step, const std::vector<std::string>& names) {
  return StepChart(step, names).text();
}

}  // namespace oriel::driver
