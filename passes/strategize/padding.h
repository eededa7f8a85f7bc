// Parameters that are larger than in files, so that ranks divide them (oriel-pad-blocks,
// oriel-pad-vocabulary).
//
// What is behind the end of a dimension is zero: value, gradient and optimizer state.
#ifndef ORIEL_PASSES_STRATEGIZE_PADDING_H_
#define ORIEL_PASSES_STRATEGIZE_PADDING_H_

#include <cstdint>
#include <optional>

#include "ir/oriel/oriel.h"

namespace oriel {

// The shape in files, of a parameter that is padded: its attribute `oriel.unpadded`.
std::optional<llvm::ArrayRef<int64_t>> unpaddedShape(ir::ParameterOp parameter);

// Makes a dimension larger.
void padParameter(ir::ParameterOp parameter, int64_t dim, int64_t size);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_PADDING_H_
