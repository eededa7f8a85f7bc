#include "driver/extra_passes.h"

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
    mlir::PassManager passes(module.getContext(), "builtin.module");
    if (failed(mlir::parsePassPipeline(request.pipeline, passes)) || failed(passes.run(module))) {
      return module.emitError("the passes after ") << phase << " failed: " << request.pipeline;
    }
  }
  return mlir::success();
}

}  // namespace oriel::driver
