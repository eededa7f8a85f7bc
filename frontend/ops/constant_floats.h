// Floats that an op takes at compile time.
#ifndef ORIEL_FRONTEND_OPS_CONSTANT_FLOATS_H_
#define ORIEL_FRONTEND_OPS_CONSTANT_FLOATS_H_

#include <vector>

#include "frontend/node_importer.h"

namespace oriel {

// Of an operand that must be known at compile time; an error names it else.
mlir::FailureOr<std::vector<double>> constantFloats(NodeImporter& n, unsigned index);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OPS_CONSTANT_FLOATS_H_
