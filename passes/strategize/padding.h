// Parameters that are larger than in files, so that ranks divide them (oriel-pad-blocks,
// oriel-pad-vocabulary).
//
// What is behind the end of a dimension, or of each of its groups, is zero: value, gradient and
// optimizer state.
#ifndef ORIEL_PASSES_STRATEGIZE_PADDING_H_
#define ORIEL_PASSES_STRATEGIZE_PADDING_H_

#include <cstdint>
#include <optional>

#include "ir/oriel/oriel.h"

namespace oriel {

// The shape in files, of a parameter that is padded: its attribute `oriel.unpadded`.
std::optional<llvm::ArrayRef<int64_t>> unpaddedShape(ir::ParameterOp parameter);

// Of the dimensions of a parameter that is padded, how many equal groups have zeros behind them:
// its attribute `oriel.padded_groups`. None if each dimension is one.
std::optional<llvm::ArrayRef<int64_t>> paddedGroups(ir::ParameterOp parameter);

// Makes a dimension larger, each of so many groups that it is made of.
void padParameter(ir::ParameterOp parameter, int64_t dim, int64_t size, int64_t groups = 1);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_PADDING_H_
