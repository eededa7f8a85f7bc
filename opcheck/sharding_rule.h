// Sharding rules, by value.
#ifndef ORIEL_OPCHECK_SHARDING_RULE_H_
#define ORIEL_OPCHECK_SHARDING_RULE_H_

#include <map>
#include <random>
#include <string>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "opcheck/arguments.h"
#include "opcheck/derivative.h"

namespace oriel {

// By name of an op, in how many ways it was cut; 0 also for one that has no rule.
using CutCounts = std::map<std::string, int64_t>;

// Runs each op of the function whole. Then, for each factor of its rule and each pair of factors,
// its operands are cut into pieces, the op that `buildLocal` makes runs on each combination of
// pieces, and the results are put together as the rule says: they must be the whole op's. Linear
// groups are checked by op(x + y) = op(x) + op(y). Where a factor needs several steps, the ops that
// `decompose` makes must compute the same, split by the factor, and are checked like any.
void checkRulesByValue(mlir::func::FuncOp function, const Tensors& arguments, std::mt19937* random,
                       OnFailure onFailure, CutCounts* cuts);

}  // namespace oriel

#endif  // ORIEL_OPCHECK_SHARDING_RULE_H_
