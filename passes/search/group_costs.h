// What a microbatch takes in groups of candidates: exact where one of a group was simulated, at
// least so much where one of another was.
#ifndef ORIEL_PASSES_SEARCH_GROUP_COSTS_H_
#define ORIEL_PASSES_SEARCH_GROUP_COSTS_H_

#include <map>
#include <tuple>
#include <utility>

#include "passes/search/bound.h"
#include "passes/search/candidate.h"

namespace oriel {

// Candidates with the same work of a rank for a microbatch, but for the stages that it is cut into.
// How layers are split and kept, and the samples of a microbatch.
using GroupKey = std::pair<std::tuple<int64_t, int64_t, bool, bool, bool, RematPolicy>, int64_t>;
inline GroupKey groupOf(const Candidate& c) {
  return {{c.tp, c.cp, c.sequenceParallel, c.padding, c.apart != nullptr, c.remat}, c.micro};
}

class GroupCosts {
 public:
  // `of` was simulated, with one stage. The cost is of its first microbatch, in which data-parallel
  // ranks communicate only if there is no other.
  void learn(const Candidate& of, MicrobatchCost cost);
  bool isExact(const Candidate& candidate) const { return known_.count(groupOf(candidate)) > 0; }

  // From what is nearest: the same policy rather than `none`, the next larger microbatch (a sample
  // of a smaller one is no faster), else the largest; a layer that is split into fewer pieces,
  // samples with fewer cuts.
  MicrobatchCost least(const Candidate& candidate) const;

 private:
  struct Known {
    Candidate of;
    MicrobatchCost cost;
  };
  const Known* nearest(const GroupKey& key) const;

  std::map<GroupKey, Known> known_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_GROUP_COSTS_H_
