// Parameters that are parts of what files have as one (oriel-cut-products).
#ifndef ORIEL_PASSES_STRATEGIZE_PARAMETER_PART_H_
#define ORIEL_PASSES_STRATEGIZE_PARAMETER_PART_H_

#include <optional>
#include <string>

#include "ir/oriel/oriel.h"

namespace oriel {

// Where the part lies: its attributes `oriel.whole` and `oriel.start`. The onnx_name is that of the
// whole.
struct ParameterPart {
  llvm::ArrayRef<int64_t> whole;  // shape
  llvm::ArrayRef<int64_t> start;
};

// Nothing for a parameter that is whole.
std::optional<ParameterPart> partOf(ir::ParameterOp parameter);

// A copy that is the elements [begin, end) along a dimension of a parameter, which may be a part
// itself. In no module yet.
ir::ParameterOp clonePart(ir::ParameterOp parameter, int64_t dim, int64_t begin, int64_t end);

// The onnx_name, and of a part which: "qkv.weight[:, 64:128]".
std::string uniqueName(ir::ParameterOp parameter);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_PARAMETER_PART_H_
