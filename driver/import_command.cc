// `oriel import`: reads a model, says what is in it, and shows it as IR.
#include "driver/bindings.h"
#include "driver/command.h"
#include "driver/compiler.h"
#include "driver/console.h"
#include "driver/diagnostics.h"
#include "driver/phase_dump.h"
#include "frontend/summary.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

struct Arguments {
  std::string model;
  std::vector<std::string> bindings;
  std::string output;
};

absl::Status importFile(const Arguments& arguments, const Vocabulary& vocabulary) {
  ImportOptions options;
  options.ops = &vocabulary.ops;
  ORIEL_ASSIGN_OR_RETURN(options.bind, parseBindings(arguments.bindings));
  llvm::Expected<ModelFile> model = ModelFile::open(arguments.model);
  if (!model) return toStatus(model.takeError());
  mlir::MLIRContext context(vocabulary.dialects);
  context.loadAllAvailableDialects();
  DiagnosticPrinter diagnostics(&context, arguments.model);
  ORIEL_ASSIGN_OR_RETURN(mlir::OwningOpRef<mlir::ModuleOp> module,
                         importStatic(context, *model, options, diagnostics));
  ModelSummary summary = summarize(*module);
  summary.missing = model->missingWeights();
  std::string text;
  llvm::raw_string_ostream stream(text);
  printSummary(summary, stream);
  std::fputs(text.c_str(), stdout);
  if (arguments.output.empty()) return absl::OkStatus();
  return runtime::WriteTextAtomically(arguments.output, moduleText(*module, /*locations=*/true));
}

}  // namespace

void addImportCommand(CLI::App& app, const Vocabulary* vocabulary, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("import", "Reads a model and says what is in it");
  command->add_option("MODEL", arguments->model, "The model (.onnx)")->required()->type_name("");
  command->add_option("--bind", arguments->bindings, "Sizes of symbolic dimensions")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME=N,..");
  command
      ->add_option("-o,--output", arguments->output, "Write the IR (.mlir) after shapes are static")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  oriel import model.onnx --bind batch=1\n"
      "  oriel import model.onnx --bind batch=4,sequence=64 -o model.mlir");
  command->callback([=] { *run = [=] { return importFile(*arguments, *vocabulary); }; });
}

}  // namespace oriel::driver
