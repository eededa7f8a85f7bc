// Runs passes on IR, as mlir-opt does; loads plugins. For tests of passes.
#include <cstdio>
#include <cstdlib>

#include "driver/vocabulary.h"
#include "llvm/Support/CommandLine.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "passes/generate/code.h"

int main(int argc, char** argv) {
  oriel::Vocabulary vocabulary;
  // To read what generated kernels are lowered from.
  oriel::registerGeneratedDialects(vocabulary.dialects);
  // Beside MLIR's own options for plugins, which know no version of Oriel. Parsed, hence loaded,
  // before there is a context.
  llvm::cl::list<std::string> plugins("load-plugin", llvm::cl::desc("Load a plugin of Oriel"),
                                      llvm::cl::value_desc("file"));
  plugins.setCallback([&](const std::string& file) {
    absl::Status loaded = vocabulary.loadPlugin(file);
    if (loaded.ok()) return;
    std::fprintf(stderr, "error: %s\n", std::string(loaded.message()).c_str());
    std::exit(1);
  });
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "Pass driver for the dialects of Oriel\n", vocabulary.dialects));
}
