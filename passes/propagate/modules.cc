#include "passes/propagate/modules.h"

#include <algorithm>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/location.h"
#include "llvm/ADT/StringMap.h"
#include "passes/strategize/positions.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

ModuleMap::ModuleMap(llvm::ArrayRef<mlir::func::FuncOp> forward, const Grid& grid,
                     const AxisSizes& sizes) {
  llvm::StringMap<int> index;
  auto add = [&](const std::string& name) {
    index[name] = static_cast<int>(modules_.size());
    modules_.push_back({name, sizes.findAll(grid.dataAxes(name)),
                        sizes.findAll(grid.atomicAxes("tp", name)),
                        sizes.findAll(grid.atomicAxes("cp", name))});
  };
  add("");
  for (const ModuleMesh& mesh : grid.modules) add(mesh.module);
  common_.data = sizes.findAll(grid.commonDataAxes());
  common_.context = modules_.front().context;
  for (const ModuleAxes& module : modules_) {
    llvm::erase_if(common_.context,
                   [&](int axis) { return !llvm::is_contained(module.context, axis); });
  }

  llvm::DenseMap<mlir::Value, ir::ParameterOp> parameters;
  llvm::SmallVector<mlir::Operation*> ops;
  for (mlir::func::FuncOp segment : forward) {
    for (auto [argument, parameter] : readValues(segment).parameters) {
      parameters[argument] = parameter;
    }
    for (mlir::Operation& op : segment.getBody().front()) ops.push_back(&op);
  }
  auto moduleOf = [&](ir::ParameterOp parameter) {
    auto found = index.find(parameter.getModule());
    return found == index.end() ? kNone : found->second;
  };
  // Further downstream is what has parameters later in the program.
  std::vector<int64_t> place(modules_.size(), -1);
  int64_t position = 0;
  for (mlir::Operation* op : ops) {
    ++position;
    for (mlir::Value operand : op->getOperands()) {
      auto parameter = parameters.find(operand);
      if (parameter == parameters.end()) continue;
      if (int of = moduleOf(parameter->second); of != kNone) place[of] = position;
    }
  }
  auto later = [&](int a, int b) {
    if (a == kNone || b == kNone) return std::max(a, b);
    return place[a] >= place[b] ? a : b;
  };
  llvm::DenseMap<mlir::Value, int> moduleOfValue;
  for (mlir::Operation* op : ops) {
    int own = kNone, upstream = kNone;
    for (mlir::Value operand : op->getOperands()) {
      auto parameter = parameters.find(operand);
      if (parameter != parameters.end()) {
        own = later(own, moduleOf(parameter->second));
      } else {
        auto found = moduleOfValue.find(operand);
        if (found != moduleOfValue.end()) upstream = later(upstream, found->second);
      }
    }
    int chosen = own != kNone ? own : upstream;
    for (mlir::Value result : op->getResults()) moduleOfValue[result] = chosen;
    if (int64_t origin = ir::originOf(op); origin >= 0) byOrigin_[origin] = chosen;
  }
}

int ModuleMap::ofOrigin(int64_t origin) const {
  auto found = byOrigin_.find(origin);
  return found == byOrigin_.end() ? kNone : found->second;
}

std::optional<Sharding> positionsOf(mlir::OpResult result, const ModuleAxes& axes,
                                    const AxisSizes& sizes) {
  auto dims = result.getOwner()->getAttrOfType<mlir::DenseI64ArrayAttr>(kPositionsAttr);
  if (!dims) return std::nullopt;
  return positionsAt(dims[result.getResultNumber()], ir::tensorType(result), axes, sizes);
}

std::optional<Sharding> positionsAt(int64_t dim, mlir::RankedTensorType type,
                                    const ModuleAxes& axes, const AxisSizes& sizes) {
  if (axes.context.empty() || dim < 0 || dim >= type.getRank()) return std::nullopt;
  Sharding cut = Sharding::replicated(type.getRank());
  cut.dims[dim] = axes.context;
  if (!sizes.divides(type.getShape(), cut)) return std::nullopt;
  return cut;
}

}  // namespace oriel
