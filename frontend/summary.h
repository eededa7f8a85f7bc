// What a model is made of, as `oriel import` prints it.
#ifndef ORIEL_FRONTEND_SUMMARY_H_
#define ORIEL_FRONTEND_SUMMARY_H_

#include <map>
#include <string>
#include <vector>

#include "frontend/model_file.h"
#include "frontend/model_parts.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"

namespace oriel {

struct ModelSummary {
  std::string name;
  std::map<std::string, int64_t> opCounts;  // by op name, constants left out
  int64_t parameterTensors = 0;
  int64_t parameters = 0;  // elements
  int64_t parameterBytes = 0;
  int64_t samples = 0;        // in one batch: the inputs' common leading size, else 1
  double flopsPerSample = 0;  // forward; a multiply-add counts as two
  std::vector<ModelPart> parts;
  MissingWeights missing;  // as ModelFile::missingWeights says; not known to the module
  std::vector<std::string> inputs, outputs;  // "pixel_values f32[2, 1, 28, 28]"
};

// Of a module after specialize (or later, as long as there is a @main).
ModelSummary summarize(mlir::ModuleOp module);
void printSummary(const ModelSummary& summary, llvm::raw_ostream& out);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_SUMMARY_H_
