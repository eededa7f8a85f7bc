#include "driver/phase_dump.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "driver/console.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/OperationSupport.h"
#include "passes/config/suggest.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

constexpr char kAll[] = "all";

}  // namespace

absl::Status checkPhase(const std::string& flag, const std::string& phase,
                        const std::vector<std::string>& phases) {
  if (std::find(phases.begin(), phases.end(), phase) != phases.end()) return absl::OkStatus();
  return usageError(absl::StrCat("--", flag, ": there is no phase '", phase, "'",
                                 suggestion(phase, phases), "; `oriel compile --help` lists them"));
}

absl::StatusOr<PhaseDumper> PhaseDumper::create(const DumpRequest& request,
                                                std::vector<std::string> phases) {
  DumpRequest resolved = request;
  for (const std::string& phase : request.after) {
    if (phase != kAll) ORIEL_RETURN_IF_ERROR(checkPhase("dump-after", phase, phases));
  }
  if (!request.stopAfter.empty()) {
    ORIEL_RETURN_IF_ERROR(checkPhase("stop-after", request.stopAfter, phases));
    // Stopping early is for looking.
    if (request.after.empty()) resolved.after.push_back(request.stopAfter);
    const auto stop = std::find(phases.begin(), phases.end(), request.stopAfter);
    for (const std::string& phase : request.after) {
      if (phase == kAll || std::find(phases.begin(), stop + 1, phase) != stop + 1) continue;
      return usageError(absl::StrCat("--dump-after: '", phase,
                                     "' does not run, since --stop-after=", request.stopAfter,
                                     " comes before it"));
    }
  }
  if (!request.folder.empty() && resolved.after.empty()) {
    return usageError("--dump-dir: say what goes there, e.g. --dump-after=all");
  }
  if (!request.folder.empty()) ORIEL_RETURN_IF_ERROR(runtime::MakeFolders(request.folder));
  return PhaseDumper(std::move(resolved), std::move(phases));
}

bool PhaseDumper::isWanted(const std::string& phase) const {
  return std::any_of(request_.after.begin(), request_.after.end(),
                     [&](const std::string& wanted) { return wanted == phase || wanted == kAll; });
}

absl::Status PhaseDumper::after(const std::string& phase, mlir::ModuleOp module) const {
  if (!isWanted(phase)) return absl::OkStatus();
  return after(phase, moduleText(module, request_.locations), "mlir");
}

absl::Status PhaseDumper::after(const std::string& phase, const std::string& text,
                                const std::string& extension) const {
  if (!isWanted(phase)) return absl::OkStatus();
  if (request_.folder.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return absl::OkStatus();
  }
  const auto number = std::find(phases_.begin(), phases_.end(), phase) - phases_.begin();
  const std::string name = absl::StrFormat("%02d-%s.%s", number, phase, extension);
  return runtime::WriteTextAtomically(runtime::JoinPath(request_.folder, name), text);
}

std::string moduleText(mlir::ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  if (locations) flags.enableDebugInfo();
  module.print(stream, flags);
  stream << "\n";
  return text;
}

}  // namespace oriel::driver
