// Which strategy is the best of those that are about as fast as the fastest.
#ifndef ORIEL_PASSES_SEARCH_PREFERENCE_H_
#define ORIEL_PASSES_SEARCH_PREFERENCE_H_

#include <vector>

#include "passes/search/search.h"

namespace oriel {

// Of `tried`, which are as in SearchResult, with one that fits first: by the tolerances of
// SearchOptions.
Candidate simplestOf(const std::vector<TriedStrategy>& tried, const SearchOptions& options);

// What a candidate has to take less than, in seconds, to be the best: than those with its
// structure, and about as little as the fastest where its structure is simpler.
double secondsToBeat(const Candidate& candidate, const std::vector<TriedStrategy>& tried,
                     const SearchOptions& options);

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_PREFERENCE_H_
