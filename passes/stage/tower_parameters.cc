#include "passes/stage/tower_parameters.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace oriel {

void ParameterReader::read(mlir::Value value, std::vector<ir::ParameterOp>* parameters) const {
  if (auto found = values_.parameters.find(value); found != values_.parameters.end()) {
    parameters->push_back(found->second);
    return;
  }
  mlir::Operation* op = value.getDefiningOp();
  if (!op || model_.blockOf.contains(op) || values_.fromInputs.contains(value)) return;
  for (mlir::Value operand : op->getOperands()) read(operand, parameters);
}

Encoders encodersOf(mlir::func::FuncOp main, const ModelParts& model) {
  // Towers of the same name are one to users.
  std::map<std::string, std::set<std::string>> namesOf;
  std::map<std::string, double> seconds;
  const ParameterReader reader(main, model);
  for (auto [block, ops] : llvm::enumerate(model.blockOps)) {
    std::vector<ir::ParameterOp> parameters;
    for (mlir::Operation* op : ops) {
      for (mlir::Value operand : op->getOperands()) reader.read(operand, &parameters);
    }
    std::set<std::string>& names = namesOf[model.names.shortName(static_cast<int64_t>(block))];
    for (ir::ParameterOp parameter : parameters) names.insert(parameter.getOnnxName().str());
  }
  double all = 0;
  for (const Part& part : model.parts) {
    all += part.forward;
    if (part.block >= 0) seconds[model.names.shortName(part.block)] += part.forward;
  }
  const auto longest =
      std::max_element(seconds.begin(), seconds.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  Encoders encoders;
  for (const auto& [tower, names] : namesOf) {
    if (tower == longest->first) continue;
    std::vector<std::string> own, others;
    for (const auto& [other, itsNames] : namesOf) {
      if (other != tower) others.insert(others.end(), itsNames.begin(), itsNames.end());
    }
    for (const std::string& name : names) {
      if (std::find(others.begin(), others.end(), name) == others.end()) own.push_back(name);
    }
    if (own.empty()) continue;
    encoders.modules.push_back({tower, patternsOf(own, others), std::nullopt});
    encoders.share += all > 0 ? seconds[tower] / all : 0;
  }
  return encoders;
}

}  // namespace oriel
