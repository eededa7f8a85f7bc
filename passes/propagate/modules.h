// The modules of a training program - parts with a mesh of their own - and the ops in each.
#ifndef ORIEL_PASSES_PROPAGATE_MODULES_H_
#define ORIEL_PASSES_PROPAGATE_MODULES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/strategize/sharding.h"

namespace oriel {

// The axes of a module's mesh.
struct ModuleAxes {
  std::string name;
  AxisList data;     // over which ranks have different samples
  AxisList tensor;   // over which they have pieces of the layers
  AxisList context;  // over which they have other positions of the same samples
};

// Which module an op is in. An op with a parameter is in the parameter's module; another one in
// the furthest downstream module of its operands, or in none; a backward op in its forward op's,
// which it names by its `origin`. An op without an origin is in none.
class ModuleMap {
 public:
  static constexpr int kNone = -1;

  // `forward` are the segments whose ops have the origins that backward ops name.
  ModuleMap(llvm::ArrayRef<mlir::func::FuncOp> forward, const Grid& grid, const AxisSizes& sizes);

  // The module of an op with this origin, kNone if there is none such.
  int ofOrigin(int64_t origin) const;
  // In which all ranks of the data axes get different samples, whatever the module.
  const AxisList& commonData() const { return common_.data; }
  const ModuleAxes& axes(int module) const { return module == kNone ? common_ : modules_[module]; }

 private:
  std::vector<ModuleAxes> modules_;
  ModuleAxes common_;
  llvm::DenseMap<int64_t, int> byOrigin_;
};

// The positions of a result, if it has some, cut over the axes of context parallelism.
std::optional<Sharding> positionsOf(mlir::OpResult result, const ModuleAxes& axes,
                                    const AxisSizes& sizes);
// A dimension cut so; none if it is none, or does not divide.
std::optional<Sharding> positionsAt(int64_t dim, mlir::RankedTensorType type,
                                    const ModuleAxes& axes, const AxisSizes& sizes);

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_MODULES_H_
