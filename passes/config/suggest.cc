#include "passes/config/suggest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace oriel {

size_t editDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    if (a[i] == '*') {
      for (size_t j = 0; j < b.size(); ++j) row[j + 1] = std::min(row[j], row[j + 1]);
      continue;
    }
    row[0] += 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::vector<std::string> nearestNames(const std::string& name, std::vector<std::string> candidates,
                                      size_t limit) {
  std::vector<std::pair<size_t, std::string>> ranked;
  for (std::string& candidate : candidates) {
    ranked.emplace_back(editDistance(name, candidate), std::move(candidate));
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.size() > limit) ranked.resize(limit);
  std::vector<std::string> names;
  for (auto& entry : ranked) names.push_back(std::move(entry.second));
  return names;
}

std::string suggestion(const std::string& name, const std::vector<std::string>& candidates) {
  std::vector<std::string> nearest = nearestNames(name, candidates, 5);
  if (nearest.empty()) return "";
  const size_t distance = editDistance(name, nearest[0]);
  const size_t letters = name.size() - std::count(name.begin(), name.end(), '*');
  if (distance < letters && distance <= std::max<size_t>(2, letters / 3)) {
    return "; did you mean '" + nearest[0] + "'?";
  }
  std::string text = "; known: ";
  for (size_t i = 0; i < nearest.size(); ++i) text += (i ? ", '" : "'") + nearest[i] + "'";
  if (candidates.size() > nearest.size()) text += ", ..";
  return text;
}

}  // namespace oriel
