// oriel-check-ops.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dialect.h"
#include "opcheck/arguments.h"
#include "opcheck/derivative.h"
#include "opcheck/passes.h"
#include "opcheck/sharding_rule.h"
#include "passes/train/vjp_function.h"

namespace oriel {

#define GEN_PASS_DEF_CHECKOPS
#include "opcheck/passes.h.inc"

namespace {

using mlir::func::FuncOp;

constexpr char kForwardOnly[] = "check.forward_only";

class CheckDialect : public mlir::Dialect {
 public:
  explicit CheckDialect(mlir::MLIRContext* context)
      : Dialect(getDialectNamespace(), context, mlir::TypeID::get<CheckDialect>()) {}
  static llvm::StringRef getDialectNamespace() { return "check"; }

  mlir::LogicalResult verifyOperationAttribute(mlir::Operation* op,
                                               mlir::NamedAttribute attribute) override {
    const llvm::StringRef name = attribute.getName();
    if (name == kForwardOnly && llvm::isa<mlir::UnitAttr>(attribute.getValue())) {
      return mlir::success();
    }
    if (name == "check.step" && llvm::isa<mlir::FloatAttr>(attribute.getValue())) {
      return mlir::success();
    }
    return op->emitError() << "has '" << name << "' = " << attribute.getValue()
                           << ", but of a function there are check.step, a float, and "
                           << kForwardOnly;
  }

  mlir::LogicalResult verifyRegionArgAttribute(mlir::Operation* op, unsigned, unsigned number,
                                               mlir::NamedAttribute attribute) override {
    const llvm::StringRef name = attribute.getName();
    if ((name == "check.low" || name == "check.high") &&
        llvm::isa<mlir::FloatAttr>(attribute.getValue())) {
      return mlir::success();
    }
    return op->emitError() << "argument " << number << " has '" << name
                           << "' = " << attribute.getValue()
                           << ", but of an argument there are check.low and check.high, floats";
  }
};

bool isOf(FuncOp function, llvm::function_ref<bool(mlir::Type)> holds) {
  auto ofValue = [&](mlir::Value value) { return holds(mlir::getElementTypeOrSelf(value)); };
  bool all = true;
  function.walk([&](mlir::Operation* op) { all &= llvm::all_of(op->getResults(), ofValue); });
  return all && llvm::all_of(function.getArguments(), ofValue);
}

class CheckOps : public impl::CheckOpsBase<CheckOps> {
 public:
  using Base::Base;

  void runOnOperation() override {
    // Derivatives are functions of their own.
    mlir::OwningOpRef<mlir::ModuleOp> copy = getOperation().clone();
    llvm::SmallVector<FuncOp> functions(copy->getOps<FuncOp>());
    bool isFine = true;
    llvm::erase_if(functions, [](FuncOp function) { return function.isDeclaration(); });
    for (FuncOp function : functions) isFine &= check(function);
    if (functions.empty()) {
      getOperation().emitError("has no functions to check");
      isFine = false;
    }
    if (!isFine) signalPassFailure();
    markAllAnalysesPreserved();
  }

 private:
  bool check(FuncOp function) {
    if (!llvm::hasSingleElement(function.getBody())) {
      function.emitError("has several blocks, not one");
      return false;
    }
    bool isFine = true;
    auto onFailure = [&](mlir::Operation* op, const std::string& what) {
      op->emitError(what);
      isFine = false;
    };
    std::mt19937 random(seed);
    const absl::StatusOr<Tensors> arguments = randomArguments(function, &random);
    if (!arguments.ok()) {
      onFailure(function, std::string(arguments.status().message()));
      return false;
    }
    // Once, and not by each of the checks.
    if (absl::Status runs = Interpreter::create(function).status(); !runs.ok()) {
      onFailure(function, absl::StrCat(std::string(runs.message()),
                                       absl::IsNotFound(runs)
                                           ? "; give the plugin that has it: --load-plugin FILE.so"
                                           : ""));
      return false;
    }
    CutCounts cuts;
    checkRulesByValue(function, *arguments, &random, onFailure, &cuts);
    if (!function->hasAttr(kForwardOnly)) {
      checkDerivatives(function, *arguments, &random, onFailure, &cuts);
    }
    if (isFine) sayRules(function, cuts);
    return isFine;
  }

  void checkDerivatives(FuncOp function, const Tensors& arguments, std::mt19937* random,
                        OnFailure onFailure, CutCounts* cuts) {
    auto isDoubleOrNoFloat = [](mlir::Type type) {
      return type.isF64() || !llvm::isa<mlir::FloatType>(type);
    };
    if (!isOf(function, isDoubleOrNoFloat)) {
      return onFailure(function,
                       absl::StrCat("finite differences need f64, and kernels that take it: write "
                                    "its floats in f64, or give it the attribute ",
                                    kForwardOnly));
    }
    const double worst = checkDerivative(function, arguments, random, onFailure);
    if (!std::isfinite(worst)) return;
    mlir::emitRemark(function.getLoc(), "the derivative is as by finite differences, within ")
        << absl::StrFormat("%.1e", worst);
    mlir::FailureOr<VjpFunction> vjp = buildVjpFunction(function, floatArguments(function));
    if (failed(vjp)) return;
    const absl::StatusOr<Tensors> inputs =
        vjpArguments(function, *vjp, arguments, randomCotangents(function, random));
    if (inputs.ok()) checkRulesByValue(vjp->function, *inputs, random, onFailure, cuts);
    vjp->function.erase();
  }

  static void sayRules(FuncOp function, const CutCounts& cuts) {
    std::string checked, whole;
    for (const auto& [op, count] : cuts) {
      if (count == 0) {
        absl::StrAppend(&whole, whole.empty() ? "" : ", ", op);
      } else {
        absl::StrAppend(&checked, checked.empty() ? "" : ", ", op, " (cut in ", count,
                        count == 1 ? " way)" : " ways)");
      }
    }
    if (!checked.empty()) {
      mlir::emitRemark(function.getLoc(), "pieces make the whole: ") << checked;
    }
    if (!whole.empty()) {
      mlir::emitRemark(function.getLoc(), "never cut, without a rule or of such sizes: ") << whole;
    }
  }
};

}  // namespace

void registerCheckDialect(mlir::DialectRegistry& registry) { registry.insert<CheckDialect>(); }

}  // namespace oriel
