#include "passes/remat/option_path.h"

#include <algorithm>

namespace oriel {

namespace {

struct Step {
  size_t block = 0;
  int64_t saved = 0;
  double seconds = 0;

  double slope() const { return seconds / static_cast<double>(saved); }
};

// Those of a block are in its order, for its options are on a convex hull.
std::vector<Step> stepsOf(const std::vector<BlockChoice>& choices) {
  std::vector<Step> steps;
  for (size_t block = 0; block < choices.size(); ++block) {
    const std::vector<BlockOption>& options = choices[block].options;
    for (size_t i = 1; i < options.size(); ++i) {
      steps.push_back({block, (options[i - 1].bytes - options[i].bytes) * choices[block].copies,
                       options[i].seconds - options[i - 1].seconds});
    }
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.slope() < b.slope(); });
  return steps;
}

}  // namespace

std::vector<OptionPlan> optionPath(const std::vector<BlockChoice>& choices) {
  std::vector<OptionPlan> path = {OptionPlan(choices.size(), 0)};
  for (const Step& step : stepsOf(choices)) {
    path.push_back(path.back());
    ++path.back()[step.block];
  }
  return path;
}

int64_t bytesOf(const std::vector<BlockChoice>& choices, const OptionPlan& plan) {
  int64_t sum = 0;
  for (size_t i = 0; i < plan.size(); ++i) {
    sum += choices[i].options[plan[i]].bytes * choices[i].copies;
  }
  return sum;
}

double secondsOf(const std::vector<BlockChoice>& choices, const OptionPlan& plan) {
  double sum = 0;
  for (size_t i = 0; i < plan.size(); ++i) sum += choices[i].options[plan[i]].seconds;
  return sum;
}

std::optional<double> leastSeconds(const std::vector<BlockChoice>& choices, int64_t bytes) {
  const OptionPlan first(choices.size(), 0);
  int64_t over = bytesOf(choices, first) - bytes;
  double seconds = secondsOf(choices, first);
  for (const Step& step : stepsOf(choices)) {
    if (over <= 0) break;
    seconds += step.slope() * static_cast<double>(std::min(over, step.saved));
    over -= step.saved;
  }
  if (over > 0) return std::nullopt;
  return seconds;
}

}  // namespace oriel
