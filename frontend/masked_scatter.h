// Recognises what exporters write for a masked scatter, and gives it a static shape.
//
// PyTorch's `x.masked_scatter(mask, source)` and `x[mask] = source` become
//
//   indices = Transpose(NonZero(mask))                       # [count, rank], count from the data
//   rows    = Slice(Reshape(source, [-1]), 0, Shape(indices)[0])     # the first `count`; or source
//   result  = ScatterND(x, indices, rows)
//
// or, for the second, with
//
//   count   = ReduceSum(Cast(Reshape(m, [-1])))                      # mask is m, expanded to x
//   rows    = Reshape(Expand(source, Concat(count, ..)), [-1])
//
// where only the middle has a shape that depends on data. The cluster is recognised by structure:
// the scatter's indices are all true positions of a mask, and its updates are a source's leading
// rows, as many as there are positions. Names, and reshapes and casts on the way, don't matter.
#ifndef ORIEL_FRONTEND_MASKED_SCATTER_H_
#define ORIEL_FRONTEND_MASKED_SCATTER_H_

#include "frontend/graph.h"

namespace oriel {

// Op, in kOrielDomain, of the node that stands for a cluster: MaskedScatter(input, mask, source).
// With the attribute `expanded` the source is first broadcast to one row per true position, a
// tensor of that rank; 0: of a rank that isn't known.
inline constexpr char kMaskedScatter[] = "MaskedScatter";
inline constexpr char kExpanded[] = "expanded";

// Replaces each cluster by one node, and returns how many there were. What else uses the parts of a
// cluster still finds them.
int replaceMaskedScatters(Graph& graph);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_MASKED_SCATTER_H_
