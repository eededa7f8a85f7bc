// The order of the dimensions of scores, which einsums of models choose freely: positions of
// queries before heads (`BTNH,BSNH->BTNS`), or groups of queries behind them (`BTKGH,BSKH->BKTGS`).
#ifndef ORIEL_PASSES_RAISE_SCORE_ORDER_H_
#define ORIEL_PASSES_RAISE_SCORE_ORDER_H_

#include "mlir/IR/PatternMatch.h"

namespace oriel {

// Patterns that bring scores, and what is done to them, into the order in which attention is
// recognised: batch, heads, groups of queries, queries, keys. Queries and results are transposed
// instead, where other transposes mostly undo it.
void addScoreOrder(mlir::RewritePatternSet& patterns);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_SCORE_ORDER_H_
