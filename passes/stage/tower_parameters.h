// Which parameters the blocks of a model read.
#ifndef ORIEL_PASSES_STAGE_TOWER_PARAMETERS_H_
#define ORIEL_PASSES_STAGE_TOWER_PARAMETERS_H_

#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/stage/parts.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

// The parameters that a value is made of without any op of a block.
class ParameterReader {
 public:
  // Of a model's function before training. Both outlive this.
  ParameterReader(mlir::func::FuncOp main, const ModelParts& model)
      : values_(readValues(main)), model_(model) {}

  void read(mlir::Value value, std::vector<ir::ParameterOp>* parameters) const;

 private:
  SegmentValues values_;
  const ModelParts& model_;
};

// The towers but for the one whose forward takes longest, as modules without meshes: what encodes
// images beside a language model. Their parameters are patterns that also match what has names
// like those of the tower's blocks (its embedding, its last norm). A tower without parameters of
// its own is left out.
struct Encoders {
  std::vector<Strategy::Module> modules;
  double share = 0;  // of the predicted time of a forward
};
Encoders encodersOf(mlir::func::FuncOp main, const ModelParts& model);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_TOWER_PARAMETERS_H_
