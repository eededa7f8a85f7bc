// "Did you mean": the names nearest to a misspelt one.
#ifndef ORIEL_PASSES_CONFIG_SUGGEST_H_
#define ORIEL_PASSES_CONFIG_SUGGEST_H_

#include <cstddef>
#include <string>
#include <vector>

namespace oriel {

// Levenshtein distance: insertions, deletions and substitutions of one character. A `*` in `a` is
// any characters of `b`, at no cost.
size_t editDistance(const std::string& a, const std::string& b);

// At most `limit` candidates by growing distance from `name`.
std::vector<std::string> nearestNames(const std::string& name, std::vector<std::string> candidates,
                                      size_t limit);

// "; did you mean 'x'?" for the nearest candidate if it is near, else "; known: 'x', 'y', .."
// (the nearest ones), or nothing without candidates.
std::string suggestion(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace oriel

#endif  // ORIEL_PASSES_CONFIG_SUGGEST_H_
