// From strategies that were found to others that differ in one choice, also what is not in the
// space.
#ifndef ORIEL_PASSES_SEARCH_LOCAL_SEARCH_H_
#define ORIEL_PASSES_SEARCH_LOCAL_SEARCH_H_

#include "passes/search/trials.h"

namespace oriel {

// All take trials that are sorted and of which one fits, and leave them sorted but for
// lookAround().

// Of strategies that were tried: other numbers of stages on a grid, encoders on a mesh of their
// own, and stages side by side, where that could be the best if it gained what their bounds
// differ by, or about what the encoders take of a forward, or all that stages wait for each other
// but for the fill.
void tryVariants(Trials& trials);

// What differs from the fastest in one choice and may be faster, until nothing is. First in the
// number of stages on a grid, which takes many steps of one.
void climb(Trials& trials);

// What is next to the best, which goes to the front: `result.neighbours`.
void lookAround(Trials& trials);

}  // namespace oriel

#endif  // ORIEL_PASSES_SEARCH_LOCAL_SEARCH_H_
