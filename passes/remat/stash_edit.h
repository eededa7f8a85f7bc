// Carries out what was decided about a stash: values leave it, and clones in the backward take
// their place.
#ifndef ORIEL_PASSES_REMAT_STASH_EDIT_H_
#define ORIEL_PASSES_REMAT_STASH_EDIT_H_

#include <vector>

#include "passes/remat/forward_graph.h"

namespace oriel {

// Of the blocks of a forward segment, which is not used any more by `graph` afterwards. Each
// segment of the backward gets clones of what it needs of its own; a value that enters the stash is
// called remat.N.SEGMENT. Fails with a diagnostic for bad roles.
mlir::LogicalResult editStash(const ForwardGraph& graph, const Blocks& blocks,
                              const std::vector<Recomputation>& edits);

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_STASH_EDIT_H_
