// The parts of a vision-language model.
#ifndef ORIEL_FRONTEND_MODEL_PARTS_H_
#define ORIEL_FRONTEND_MODEL_PARTS_H_

#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {

// A part of a vision-language model. Parts are found by structure: what feeds the features operand
// of the image merge is vision and projector, everything else is language. Within the former, the
// projector is the modules that no attention depends on. A model without a merge is one part.
struct ModelPart {
  std::string kind;        // "vision", "projector", "language"
  std::string label;       // the modules that are read in it: "lm_head, model.language_model"
  int64_t parameters = 0;  // elements
  int64_t parameterBytes = 0;
  int64_t ops = 0;
  double flops = 0;  // forward, of the whole batch
};

// `parameters` names the arguments of @main that are parameters, by their names in the model.
std::vector<ModelPart> findParts(mlir::func::FuncOp main,
                                 const llvm::DenseMap<mlir::Value, std::string>& parameters);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_MODEL_PARTS_H_
