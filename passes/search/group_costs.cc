#include "passes/search/group_costs.h"

#include <iterator>
#include <utility>

namespace oriel {

void GroupCosts::learn(const Candidate& of, MicrobatchCost cost) {
  if (of.dp > 1 && of.microbatches == 1) {
    // It waits for its data-parallel ranks, too, where others may wait for less.
    cost.forward -= std::exchange(cost.forwardWaits, 0);
    cost.backward -= std::exchange(cost.backwardWaits, 0);
  }
  known_.insert_or_assign(groupOf(of), Known{of, std::move(cost)});
}

const GroupCosts::Known* GroupCosts::nearest(const GroupKey& key) const {
  const auto isLike = [&](const auto& entry) {  // but for the microbatch, which is last
    return entry.first.first == key.first;
  };
  auto larger = known_.lower_bound(key);
  if (larger != known_.end() && isLike(*larger)) return &larger->second;
  if (larger == known_.begin() || !isLike(*std::prev(larger))) return nullptr;
  return &std::prev(larger)->second;
}

MicrobatchCost GroupCosts::least(const Candidate& c) const {
  // From the most pieces on that are no more than the candidate's.
  for (int64_t cp = c.cp; cp >= 1; --cp) {
    for (int64_t tp = c.tp; tp >= 1; --tp) {
      // Encoders that are not split may take less than split ones.
      const bool isApart = c.apart && tp * cp > 1;
      for (bool sequenceParallel : {c.sequenceParallel, !c.sequenceParallel}) {
        for (RematPolicy remat : {c.remat, RematPolicy::kNone}) {
          for (bool padding : {c.padding, !c.padding}) {
            const Known* known =
                nearest({{tp, cp, sequenceParallel, padding, isApart, remat}, c.micro});
            if (known) return leastCost(known->cost, known->of, c);
          }
        }
      }
    }
  }
  return MicrobatchCost();
}

}  // namespace oriel
