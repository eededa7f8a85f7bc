// What a model computes on the rows that a mask chooses, and puts back, on all rows instead.
//
//   x[mask] = f(x[mask], d)      # DeepStack: x[mask] += d; experts of the positions of images
//
// has in the middle as many rows as there are true positions, which depends on the data. As long as
// f works row by row, this is
//
//   where(mask, f(x, D), x)      # D: the k-th row of d at the k-th true position
//
// of static shape, for more operations: those of the rows that nobody chose. f may be made of the
// ops that compute element by element, products with weights, and norms and softmax of a row.
#ifndef ORIEL_FRONTEND_MASKED_ROWS_H_
#define ORIEL_FRONTEND_MASKED_ROWS_H_

#include "frontend/graph.h"

namespace oriel {

// Ops, in kOrielDomain, of the nodes that are made. `like` are rows of the whole tensor.
//   RowsAtMask(x, mask) -> x, which must have rows that the mask can choose
//   SpreadRows(like, mask, rows) -> what `rows` are to all rows: themselves where they are the same
//     for all, else at the true positions, with `fill` at the others
//   SelectRows(x, mask, rows) -> `rows` where the mask is true
inline constexpr char kRowsAtMask[] = "RowsAtMask";
inline constexpr char kSpreadRows[] = "SpreadRows";
inline constexpr char kSelectRows[] = "SelectRows";
inline constexpr char kFill[] = "fill";

// To be called behind replaceMaskedScatters, before dead nodes are removed.
void replaceMaskedRows(Graph& graph);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_MASKED_ROWS_H_
