// Dialects, importers of ONNX ops and passes from outside of Oriel, in a library that the compiler
// loads: `oriel --load-plugin FILE.so`, `oriel-opt --load-plugin FILE.so`.
//
//   ORIEL_COMPILER_PLUGIN(registry) {
//     registry.dialects.insert<AcmeDialect>();
//     registry.ops.add("Snake", 1, importSnake, "com.acme");   // ONNX op, first version, domain
//     registerAcmePasses();                                    // or mlir::PassRegistration<P>()
//   }
//
// At namespace scope, once in a library. It is built by oriel_add_compiler_plugin of the installed
// CMake package and links none of Oriel's libraries: it finds their functions in the program that
// loads it. Example: docs/examples/snake/.
#ifndef ORIEL_DRIVER_PLUGIN_H_
#define ORIEL_DRIVER_PLUGIN_H_

#include "driver/abi.h"
#include "frontend/op_registry.h"
#include "mlir/IR/DialectRegistry.h"
#include "runtime/base/plugin.h"

namespace oriel {

// What a plugin adds to. Passes have MLIR's own registry.
struct PluginRegistry {
  mlir::DialectRegistry& dialects;  // all are loaded before a model is imported
  // A handler for an op that Oriel imports replaces Oriel's, from its version on.
  OpRegistry& ops;
};

}  // namespace oriel

#define ORIEL_COMPILER_PLUGIN(registry)                                       \
  ORIEL_PLUGIN_MARKER("compiler", ORIEL_COMPILER_ABI)                         \
  extern "C" __attribute__((visibility("default"))) void orielRegisterPlugin( \
      [[maybe_unused]] ::oriel::PluginRegistry registry)

#endif  // ORIEL_DRIVER_PLUGIN_H_
