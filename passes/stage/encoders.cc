#include "passes/stage/encoders.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "passes/cost/op_time.h"
#include "passes/stage/parameter_reader.h"

namespace oriel {

namespace {

// Of the parameters that blocks read, by tower. Towers of the same name are one to users.
std::map<std::string, std::set<std::string>> namesByTower(mlir::func::FuncOp main,
                                                          const ModelParts& model) {
  std::map<std::string, std::set<std::string>> namesOf;
  const ParameterReader reader(main, model);
  for (auto [block, ops] : llvm::enumerate(model.blockOps)) {
    std::set<std::string>& names = namesOf[model.names.shortName(static_cast<int64_t>(block))];
    for (mlir::Operation* op : ops) {
      for (mlir::Value operand : op->getOperands()) {
        for (ir::ParameterOp parameter : reader.read(operand)) {
          names.insert(parameter.getOnnxName().str());
        }
      }
    }
  }
  return namesOf;
}

}  // namespace

Encoders encodersOf(mlir::func::FuncOp main, const ModelParts& model) {
  const std::map<std::string, std::set<std::string>> namesOf = namesByTower(main, model);
  if (namesOf.empty()) return {};
  std::map<std::string, double> seconds;
  double all = 0;
  const OpTimes times(main);
  for (mlir::Operation& op : main.getBody().front().without_terminator()) {
    const double own = times.seconds(&op);
    const Part& part = model.parts[model.partOf.lookup(&op)];
    all += own;
    if (part.block >= 0) seconds[model.names.shortName(part.block)] += own;
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
