#include "frontend/summary.h"

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {
namespace {

using mlir::Operation;
using mlir::Value;

std::string typeText(mlir::Type type) {
  auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
  std::string text;
  llvm::raw_string_ostream out(text);
  if (!tensor) {
    out << type;
    return text;
  }
  out << tensor.getElementType() << "[";
  llvm::interleaveComma(tensor.getShape(), out);
  out << "]";
  return text;
}

// "1.25 MB", "414 k", "6"
std::string withUnit(double value, llvm::StringRef unit = "") {
  const char* prefixes[] = {"", "k", "M", "G", "T", "P"};
  int prefix = 0;
  for (; value >= 1000 && prefix < 5; ++prefix) {
    value /= 1000;
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format(prefix == 0 ? "%.0f" : "%.3g", value) << " "
                                 << prefixes[prefix] << unit;
  return llvm::StringRef(text).rtrim().str();
}

}  // namespace

ModelSummary summarize(mlir::ModuleOp module) {
  ModelSummary summary;
  if (auto name = module->getAttrOfType<mlir::StringAttr>("oriel.model_name")) {
    summary.name = name.str();
  }
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  if (!main) {
    return summary;
  }
  llvm::DenseMap<Value, std::string> parameters;
  bool isFirst = true;
  for (mlir::BlockArgument argument : main.getArguments()) {
    auto role = ir::argumentRole(main, argument.getArgNumber());
    auto type = ir::tensorType(argument);
    if (failed(role)) {
      return summary;
    }
    if (role->kind == ir::ValueKind::kParameter) {
      auto symbol = module.lookupSymbol<ir::ParameterOp>(role->ref);
      parameters[argument] = symbol ? symbol.getOnnxName().str() : role->ref;
      ++summary.parameterTensors;
      summary.parameters += type.getNumElements();
      summary.parameterBytes += ir::typeBytes(type);
    } else if (role->kind == ir::ValueKind::kInput) {
      summary.inputs.push_back(role->ref + " " + typeText(type));
      int64_t size = type.getRank() > 0 ? type.getShape().front() : 1;
      summary.samples = isFirst || summary.samples == size ? size : 1;
      isFirst = false;
    }
  }
  summary.samples = std::max<int64_t>(1, summary.samples);
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    auto role = ir::resultRole(main, i);
    summary.outputs.push_back((succeeded(role) ? role->ref + " " : "") +
                              typeText(main.getResultTypes()[i]));
  }
  double flops = 0;
  main.walk([&](Operation* op) {
    if (llvm::isa<mlir::func::FuncOp, mlir::func::ReturnOp, ir::ConstantOp>(op)) {
      return;
    }
    mlir::OperationName opName = op->getName();
    bool ours = llvm::isa_and_nonnull<ir::OrielDialect>(op->getDialect());
    ++summary.opCounts[(ours ? opName.stripDialect() : opName.getStringRef()).str()];
    if (auto cost = llvm::dyn_cast<ir::CostOpInterface>(op)) {
      flops += static_cast<double>(cost.getFlops());
    }
  });
  summary.flopsPerSample = flops / static_cast<double>(summary.samples);
  summary.parts = findParts(main, parameters);
  return summary;
}

void printSummary(const ModelSummary& summary, llvm::raw_ostream& out) {
  out << "model " << summary.name << "\n";
  for (const std::string& input : summary.inputs) {
    out << "  input   " << input << "\n";
  }
  for (const std::string& output : summary.outputs) {
    out << "  output  " << output << "\n";
  }
  out << "parameters: " << withUnit(static_cast<double>(summary.parameters)) << " in "
      << summary.parameterTensors << " tensors, "
      << withUnit(static_cast<double>(summary.parameterBytes), "B") << "\n";
  if (!summary.missing.parameters.empty()) {
    out << "weights: " << summary.missing.parameters.size() << " of " << summary.parameterTensors
        << " parameters have none, because \"" << llvm::join(summary.missing.files, "\", \"")
        << "\" does not exist\n"
        << "  to train from random values, add `init` to the recipe (docs/recipe.md); for the "
           "model's own, put the file there\n";
  }
  out << "forward: " << withUnit(summary.flopsPerSample, "FLOP") << " per sample (batch of "
      << summary.samples << ")\n";
  out << "modules:\n";
  for (const ModelPart& part : summary.parts) {
    out << "  " << llvm::left_justify(part.kind, 10) << llvm::left_justify(part.label, 34) << "  "
        << withUnit(static_cast<double>(part.parameters)) << " parameters, "
        << withUnit(part.flops / static_cast<double>(summary.samples), "FLOP") << " per sample, "
        << part.ops << " ops\n";
  }
  std::vector<std::pair<int64_t, std::string>> counts;
  int64_t total = 0;
  for (const auto& [name, count] : summary.opCounts) {
    counts.emplace_back(-count, name);
    total += count;
  }
  llvm::sort(counts);
  out << "ops: " << total << "\n";
  for (const auto& [negated, name] : counts) {
    out << "  " << llvm::format("%6d  ", static_cast<int>(-negated)) << name << "\n";
  }
}

}  // namespace oriel
