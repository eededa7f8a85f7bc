// Runs passes on IR, as mlir-opt does; loads plugins. For tests of passes.
#include <cstdio>
#include <string>
#include <vector>

#include "driver/vocabulary.h"
#include "llvm/Support/CommandLine.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/generate/code.h"

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

}  // namespace

int main(int argc, char** argv) {
  oriel::Vocabulary vocabulary;
  // To read what generated kernels are lowered from.
  oriel::registerGeneratedDialects(vocabulary.dialects);
  // Beside MLIR's own options for plugins, which know no version of Oriel. Loaded before options
  // are parsed: passes are options, too.
  llvm::cl::list<std::string> plugins("load-plugin", llvm::cl::desc("Load a plugin of Oriel"),
                                      llvm::cl::value_desc("file"));
  for (const std::string& file : pluginsOf(argc, argv)) {
    absl::Status loaded = vocabulary.loadPlugin(file);
    if (loaded.ok()) continue;
    std::fprintf(stderr, "error: %s\n", std::string(loaded.message()).c_str());
    return 1;
  }
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Pass driver for the dialects of Oriel\n", vocabulary.dialects));
}
