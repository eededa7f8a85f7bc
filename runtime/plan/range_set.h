// Ranges of memory, together.
#ifndef ORIEL_RUNTIME_PLAN_RANGE_SET_H_
#define ORIEL_RUNTIME_PLAN_RANGE_SET_H_

#include <algorithm>
#include <cstdint>
#include <map>

#include "runtime/plan/verify_contents.h"

namespace oriel::runtime {

// Those that are inserted may overlap. Empty ones are left out, and overlap nothing.
class RangeSet {
 public:
  void Insert(Range range) {
    if (range.empty()) return;
    auto next = ends_.upper_bound(range.begin);
    while (next != ends_.end() && next->second < range.end) {
      range.begin = std::min(range.begin, next->second);
      range.end = std::max(range.end, next->first);
      next = ends_.erase(next);
    }
    ends_[range.end] = range.begin;
  }

  bool Overlaps(const Range& range) const {
    const auto next = ends_.upper_bound(range.begin);
    return !range.empty() && next != ends_.end() && next->second < range.end;
  }

 private:
  std::map<int64_t, int64_t> ends_;  // disjoint: beginnings by ends
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_RANGE_SET_H_
