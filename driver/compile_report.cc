#include "driver/compile_report.h"

#include "absl/strings/str_cat.h"
#include "driver/plan_text.h"
#include "driver/weights.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/files.h"
#include "runtime/plan/plan_stats.h"

namespace oriel::driver {

std::string compileReport(const plan::Plan& plan, const std::string& path) {
  const runtime::PlanStats stats = runtime::ComputePlanStats(plan);
  std::string text =
      absl::StrCat(plan.model_name(), ": ", countText(stats.parameters), " parameters (",
                   countText(stats.trainable_parameters), " trainable, ",
                   countText(stats.parameters - stats.trainable_parameters), " frozen), ",
                   batchText(plan.training()), "\n");
  if (stats.programs.size() == 1) {
    const runtime::ProgramStats& program = stats.programs[0];
    text += memoryText(program) + segmentsText(program, /*kernels=*/false);
  }
  text += programsText(stats) + transfersText(stats) + generatedText(plan);
  absl::StrAppend(&text, "wrote       ", path);
  if (runtime::IsStream(path)) return text + "\n";
  if (hasWeightsFile(plan)) absl::StrAppend(&text, " and ", weightsFileName(path), " beside it");
  text += "\n";
  std::string quoted;
  llvm::raw_string_ostream stream(quoted);
  llvm::sys::printArg(stream, path, /*Quote=*/false);  // where it needs to be
  absl::StrAppend(&text, "next        oriel-run ", quoted, " -n ", plan.world_size(),
                  " --data SHARDS --save-dir CHECKPOINTS\n");
  return text;
}

}  // namespace oriel::driver
