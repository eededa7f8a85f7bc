// What a model is made of, as `oriel import` prints it.
#ifndef ORIEL_FRONTEND_SUMMARY_H_
#define ORIEL_FRONTEND_SUMMARY_H_

#include <map>
#include <string>
#include <vector>

#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"

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

struct ModelSummary {
  std::string name;
  std::map<std::string, int64_t> opCounts;  // by op name, constants left out
  int64_t parameterTensors = 0;
  int64_t parameters = 0;  // elements
  int64_t parameterBytes = 0;
  int64_t samples = 0;        // in one batch: the inputs' common leading size, else 1
  double flopsPerSample = 0;  // forward; a multiply-add counts as two
  std::vector<ModelPart> parts;
  std::vector<std::string> inputs, outputs;  // "pixel_values f32[2, 1, 28, 28]"
};

// Of a module after specialize (or later, as long as there is a @main).
ModelSummary summarize(mlir::ModuleOp module);
void printSummary(const ModelSummary& summary, llvm::raw_ostream& out);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_SUMMARY_H_
