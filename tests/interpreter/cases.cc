#include "tests/interpreter/cases.h"

#include <algorithm>
#include <filesystem>

#include "ir/oriel/oriel.h"
#include "mlir/Parser/Parser.h"
#include "opcheck/passes.h"

namespace oriel {

using mlir::func::FuncOp;

std::string FunctionCase::name() const {
  return std::filesystem::path(path).stem().string() + "_" + function;
}

mlir::MLIRContext& CaseContext() {
  static auto* context = [] {
    mlir::DialectRegistry registry;
    registerCheckDialect(registry);
    auto* made = new mlir::MLIRContext(registry, mlir::MLIRContext::Threading::DISABLED);
    made->loadDialect<ir::OrielDialect, mlir::func::FuncDialect>();
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

}  // namespace oriel
