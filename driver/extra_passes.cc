#include "driver/extra_passes.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/console.h"
#include "driver/phase_dump.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

// MLIR says where in the pipeline, and shows it again below.
std::string firstError(llvm::StringRef text) {
  constexpr llvm::StringLiteral kError("error: ");
  if (size_t at = text.find(kError); at != llvm::StringRef::npos) {
    text = text.drop_front(at + kError.size());
  }
  text = text.ltrim().take_until([](char c) { return c == '\n'; });
  return text.empty() ? "it is no pipeline of passes" : text.str();
}

// "a{x=1,2}", "func.func(b,c)" of "a{x=1,2},func.func(b,c)".
std::vector<std::string> elementsOf(llvm::StringRef pipeline) {
  std::vector<std::string> elements(1);
  int depth = 0;
  for (const char c : pipeline) {
    depth += llvm::StringRef("({[").contains(c) ? 1 : llvm::StringRef(")}]").contains(c) ? -1 : 0;
    if (c == ',' && depth == 0) {
      elements.emplace_back();
    } else {
      elements.back() += c;
    }
  }
  for (std::string& element : elements) element = llvm::StringRef(element).trim().str();
  llvm::erase(elements, "");
  return elements;
}

// An element with passes for ops of its own, NAME(PASSES).
std::optional<std::pair<llvm::StringRef, llvm::StringRef>> nestedIn(llvm::StringRef element) {
  const size_t bracket = element.find_first_of("({");
  if (bracket == llvm::StringRef::npos || element[bracket] != '(' || !element.ends_with(")")) {
    return std::nullopt;
  }
  return std::make_pair(element.take_front(bracket).trim(),
                        element.substr(bracket + 1).drop_back());
}

// The ops that passes for NAME are for: those in a module and, as the programs of pipeline stages
// are modules of their own, in the modules within. A module without others is its own.
std::vector<mlir::Operation*> opsFor(mlir::ModuleOp module, llvm::StringRef name) {
  std::vector<mlir::Operation*> ops, inner;
  for (mlir::Operation& op : module.getBody()->getOperations()) {
    const bool isIsolated = op.hasTrait<mlir::OpTrait::IsIsolatedFromAbove>();
    if (op.getName().getStringRef() == name || (name == "any" && isIsolated)) ops.push_back(&op);
    if (auto nested = llvm::dyn_cast<mlir::ModuleOp>(op); nested && name != "builtin.module") {
      llvm::append_range(inner, opsFor(nested, name));
    }
  }
  if (name == "builtin.module" && ops.empty()) ops.push_back(module);
  llvm::append_range(ops, inner);
  return ops;
}

mlir::LogicalResult runOn(mlir::Operation* op, llvm::StringRef pipeline) {
  mlir::PassManager passes(op->getContext(), op->getName().getStringRef());
  return mlir::success(succeeded(mlir::parsePassPipeline(pipeline, passes)) &&
                       succeeded(passes.run(op)));
}

// A pass that runs on nothing would silently change nothing.
mlir::LogicalResult runElement(mlir::ModuleOp module, llvm::StringRef element,
                               llvm::StringRef phase) {
  const auto nested = nestedIn(element);
  if (!nested) return runOn(module, element);
  const std::vector<mlir::Operation*> ops = opsFor(module, nested->first);
  if (ops.empty()) {
    return module.emitError("no op '") << nested->first << "' is there after " << phase << ", so '"
                                       << element << "' runs on nothing";
  }
  for (mlir::Operation* op : ops) {
    auto inner = llvm::dyn_cast<mlir::ModuleOp>(op);
    for (const std::string& one : elementsOf(nested->second)) {
      if (failed(inner ? runElement(inner, one, phase) : runOn(op, one))) return mlir::failure();
    }
  }
  return mlir::success();
}

}  // namespace

absl::StatusOr<ExtraPasses> ExtraPasses::create(const std::vector<std::string>& requests,
                                                const std::vector<std::string>& phases) {
  ExtraPasses extra;
  for (const std::string& text : requests) {
    const size_t colon = text.find(':');
    if (colon == std::string::npos) {
      return usageError(absl::StrCat("--passes-after: '", text,
                                     "' is not PHASE:PIPELINE, such as raise:canonicalize,cse"));
    }
    Request request{text.substr(0, colon), text.substr(colon + 1)};
    ORIEL_RETURN_IF_ERROR(checkPhase("passes-after", request.phase, phases));
    if (request.phase == phases.back()) {
      return usageError(absl::StrCat("--passes-after: ", request.phase,
                                     " leaves a plan, on which no pass can work"));
    }
    std::string why;
    llvm::raw_string_ostream stream(why);
    mlir::OpPassManager parsed("builtin.module");
    if (llvm::StringRef(request.pipeline).trim().empty()) {
      return usageError(absl::StrCat("--passes-after: '", text, "' names no pass after the colon"));
    }
    if (failed(mlir::parsePassPipeline(request.pipeline, parsed, stream))) {
      return usageError(
          absl::StrCat("--passes-after: ", firstError(why), " (in '", request.pipeline,
                       "'); write PHASE:func.func(PASS) for a pass on functions, and --load-plugin "
                       "FILE.so for one of a plugin"));
    }
    extra.requests_.push_back(std::move(request));
  }
  return extra;
}

mlir::LogicalResult ExtraPasses::runAfter(const std::string& phase, mlir::ModuleOp module) const {
  for (const Request& request : requests_) {
    if (request.phase != phase) continue;
    for (const std::string& element : elementsOf(request.pipeline)) {
      if (succeeded(runElement(module, element, phase))) continue;
      return module.emitError("the passes after ") << phase << " failed: " << request.pipeline;
    }
  }
  return mlir::success();
}

}  // namespace oriel::driver
