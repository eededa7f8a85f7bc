#include "tests/interpreter/cases.h"

#include <algorithm>
#include <filesystem>

#include "ir/oriel/oriel.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Parser/Parser.h"

namespace oriel {

using mlir::func::FuncOp;

std::string FunctionCase::name() const {
  return std::filesystem::path(path).stem().string() + "_" + function;
}

mlir::MLIRContext& CaseContext() {
  static auto* context = [] {
    auto* made = new mlir::MLIRContext(mlir::MLIRContext::Threading::DISABLED);
    made->loadDialect<ir::OrielDialect, mlir::func::FuncDialect>();
    made->allowUnregisteredDialects();  // test.*
    return made;
  }();
  return *context;
}

mlir::OwningOpRef<mlir::ModuleOp> ParseCases(const std::string& path) {
  return mlir::parseSourceFile<mlir::ModuleOp>(path, &CaseContext());
}

std::vector<std::string> CaseFiles(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ORIEL_SOURCE_DIR "/" + folder)) {
    if (entry.path().extension() == ".mlir") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<FunctionCase> FunctionCases(const std::string& folder) {
  std::vector<FunctionCase> cases;
  for (const std::string& path : CaseFiles(folder)) {
    auto module = ParseCases(path);
    if (!module) continue;
    for (FuncOp function : module->getOps<FuncOp>()) {
      cases.push_back({path, function.getName().str()});
    }
  }
  return cases;
}

double NumberOr(mlir::Attribute attribute, double fallback) {
  auto number = llvm::dyn_cast_or_null<mlir::FloatAttr>(attribute);
  return number ? number.getValueAsDouble() : fallback;
}

HostTensor RandomTensor(mlir::Type type, double low, double high, std::mt19937* random) {
  HostTensor tensor(*SpecOf(type));
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int64_t i = 0; i < tensor.spec().num_elements(); ++i) {
    tensor.set(i, low + (high - low) * uniform(*random));
  }
  return tensor;
}

std::vector<HostTensor> RandomArguments(FuncOp function, std::mt19937* random) {
  std::vector<HostTensor> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    arguments.push_back(RandomTensor(function.getArgumentTypes()[i],
                                     NumberOr(function.getArgAttr(i, "test.low"), -2),
                                     NumberOr(function.getArgAttr(i, "test.high"), 2), random));
  }
  return arguments;
}

std::vector<const HostTensor*> Pointers(const std::vector<HostTensor>& tensors) {
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& tensor : tensors) pointers.push_back(&tensor);
  return pointers;
}

absl::StatusOr<std::vector<HostTensor>> ValuesOf(FuncOp function,
                                                 llvm::ArrayRef<mlir::Value> values,
                                                 const std::vector<HostTensor>& arguments) {
  mlir::OpBuilder builder(function);
  mlir::IRMapping mapping;
  auto probe = llvm::cast<FuncOp>(builder.clone(*function, mapping));
  probe.setName("probe");
  llvm::SmallVector<mlir::Value> mapped;
  for (mlir::Value value : values) mapped.push_back(mapping.lookup(value));
  probe.getBody().front().getTerminator()->setOperands(mapped);
  auto interpreter = Interpreter::Create(probe);
  probe.erase();
  if (!interpreter.ok()) return interpreter.status();
  return interpreter->Run(Pointers(arguments));
}

absl::StatusOr<std::vector<HostTensor>> VjpArguments(FuncOp function, const VjpFunction& vjp,
                                                     const std::vector<HostTensor>& arguments,
                                                     const std::vector<HostTensor>& cotangents) {
  absl::StatusOr<std::vector<HostTensor>> inputs = ValuesOf(function, vjp.captured, arguments);
  if (!inputs.ok()) return inputs;
  for (const HostTensor& cotangent : cotangents) {
    inputs->emplace_back(cotangent.spec());
    for (int64_t i = 0; i < cotangent.spec().num_elements(); ++i) {
      inputs->back().set(i, cotangent.get(i));
    }
  }
  return inputs;
}

}  // namespace oriel
