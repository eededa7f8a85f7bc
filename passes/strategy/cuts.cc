#include "passes/strategy/cuts.h"

#include <algorithm>

namespace oriel {

std::optional<CutClash> nestCuts(std::vector<int64_t>* cuts) {
  std::sort(cuts->begin(), cuts->end());
  cuts->erase(std::unique(cuts->begin(), cuts->end()), cuts->end());
  for (size_t i = 1; i < cuts->size(); ++i) {
    if ((*cuts)[i] % (*cuts)[i - 1] != 0) return CutClash((*cuts)[i - 1], (*cuts)[i]);
  }
  return std::nullopt;
}

std::vector<int64_t> axisSizes(const std::vector<int64_t>& cuts, int64_t size) {
  std::vector<int64_t> sizes;
  int64_t outer = 1;
  auto cutAt = [&](int64_t cut) {
    if (cut > outer) sizes.push_back(cut / outer);
    outer = cut;
  };
  for (int64_t cut : cuts) cutAt(cut);
  cutAt(size);
  return sizes;
}

}  // namespace oriel
