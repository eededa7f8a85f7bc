#include "driver/vocabulary.h"

#include <cstdio>
#include <cstdlib>

#include "driver/pipelines.h"
#include "driver/plugin.h"
#include "llvm/Support/ErrorHandling.h"
#include "mlir/Transforms/Passes.h"
#include "runtime/base/plugin.h"
#include "runtime/base/status.h"

namespace oriel {

namespace {

constexpr runtime::PluginKind kCompiler = {runtime::kCompilerPlugin, ORIEL_COMPILER_ABI,
                                           "the compiler", "orielRegisterPlugin"};
using Entry = void (*)(PluginRegistry);

// MLIR gives up where two plugins register different things under one name.
[[noreturn]] void clash(void* file, const char* reason, bool) {
  std::fprintf(stderr, "error: %s: %s; another plugin has that name\n",
               static_cast<const std::string*>(file)->c_str(), reason);
  std::exit(1);
}

}  // namespace

Vocabulary::Vocabulary() : ops(OpRegistry::standard()) {
  registerOrielDialects(dialects);
  registerOrielPasses();
  mlir::registerTransformsPasses();
}

absl::Status Vocabulary::loadPlugin(const std::string& file) {
  ORIEL_ASSIGN_OR_RETURN(void* entry, runtime::LoadPlugin(file, kCompiler));
  std::string name = file;
  llvm::ScopedFatalErrorHandler handler(clash, &name);
  const OpRegistry before = ops;
  ORIEL_RETURN_IF_ERROR(runtime::CallPlugin(file, [&] {
    reinterpret_cast<Entry>(entry)(PluginRegistry{dialects, ops});
  }));
  ops.takeOver(before);
  plugins.push_back(file);
  return absl::OkStatus();
}

}  // namespace oriel
