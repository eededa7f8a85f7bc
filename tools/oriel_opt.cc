// Runs passes on IR, as mlir-opt does; loads plugins. For tests of passes, and of ops by value.
#include <cstdio>
#include <string>
#include <vector>

#include "driver/vocabulary.h"
#include "kernels/plugins/load_plugins.h"
#include "llvm/Support/CommandLine.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "opcheck/passes.h"
#include "passes/generate/code.h"
#include "runtime/base/plugin.h"
#include "runtime/base/status.h"

namespace {

// The values of --load-plugin.
std::vector<std::string> pluginsOf(int argc, char** argv) {
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef word(argv[i]);
    if (!word.consume_front("--")) word.consume_front("-");
    if (!word.consume_front("load-plugin")) continue;
    if (word.consume_front("=")) {
      files.push_back(word.str());
    } else if (word.empty() && i + 1 < argc) {
      files.push_back(argv[++i]);
    }
  }
  return files;
}

// Ops and passes, or the kernels that oriel-check-ops runs.
absl::Status load(const std::string& file, oriel::Vocabulary& vocabulary) {
  ORIEL_ASSIGN_OR_RETURN(const std::string kind, oriel::runtime::KindOfPlugin(file));
  if (kind == oriel::runtime::kKernelsPlugin) {
    return oriel::kernels::LoadPlugins({file}, "oriel-opt");
  }
  return vocabulary.loadPlugin(file);
}

}  // namespace

int main(int argc, char** argv) {
  oriel::Vocabulary vocabulary;
  // To read what generated kernels are lowered from.
  oriel::registerGeneratedDialects(vocabulary.dialects);
  oriel::registerCheckDialect(vocabulary.dialects);
  oriel::registerOpCheckPasses();
  // Beside MLIR's own options for plugins, which know no version of Oriel. Loaded before options
  // are parsed: passes are options, too.
  llvm::cl::list<std::string> plugins("load-plugin", llvm::cl::desc("Load a plugin of Oriel"),
                                      llvm::cl::value_desc("file"));
  for (const std::string& file : pluginsOf(argc, argv)) {
    absl::Status loaded = load(file, vocabulary);
    if (loaded.ok()) continue;
    std::fprintf(stderr, "error: %s\n", std::string(loaded.message()).c_str());
    return 1;
  }
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Pass driver for the dialects of Oriel\n", vocabulary.dialects));
}
