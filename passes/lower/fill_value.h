// Constants that the kernel "fill" makes, so that their bytes need not be in the plan.
#ifndef ORIEL_PASSES_LOWER_FILL_VALUE_H_
#define ORIEL_PASSES_LOWER_FILL_VALUE_H_

#include <optional>

#include "mlir/IR/BuiltinAttributes.h"

namespace oriel {

// The number that fills all elements of a constant; none if they differ, or if a double does
// not hold it exactly. A boolean is 0 or 1.
std::optional<double> fillValue(mlir::ElementsAttr constant);

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_FILL_VALUE_H_
