// What a model computes on the rows that a mask chooses, and puts back, on all rows instead.
//
//   x[mask] = f(x[mask], d)      # DeepStack: x[mask] += d; experts of the positions of images
//
// has in the middle as many rows as there are true positions, which depends on the data. As long as
// f works row by row, this is
//
//   where(mask, f(x, D), x)      # D: the k-th row of d at the k-th true position
//
// of static shape, for more operations: those of the rows that nobody chose. There f computes on
// numbers of no meaning (ones, and twos of D), so that it has a value and a derivative there, which
// nothing reads, whatever x holds. f may be made of the ops that compute element by element,
// products with weights, and norms and softmax of a row.
#ifndef ORIEL_FRONTEND_MASKED_ROWS_H_
#define ORIEL_FRONTEND_MASKED_ROWS_H_

#include "frontend/graph.h"

namespace oriel {

// Ops, in kOrielDomain, of the nodes that are made. `like` are rows of the whole tensor.
//   RowsAtMask(x, mask, first, wide) -> x at the true positions of the mask, which must choose rows
//     of it; as many dimensions as `first`, of which other rows are. `wide`, if given, must be the
//     mask, for all elements of its rows
//   SpreadRows(like, mask, rows, wide) -> what `rows` are to all rows: themselves where they are
//   the
//     same for all, else at the true positions. With `wide`, by which elements one behind the other
//     are chosen, they must be one number, or have all dimensions of a row
//   SelectRows(x, mask, rows, wide) -> `rows` where the mask is true; `wide` must be the mask, for
//     all elements of its rows
inline constexpr char kRowsAtMask[] = "RowsAtMask";
inline constexpr char kSpreadRows[] = "SpreadRows";
inline constexpr char kSelectRows[] = "SelectRows";

// To be called behind replaceMaskedScatters, before dead nodes are removed.
void replaceMaskedRows(Graph& graph);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_MASKED_ROWS_H_
