// Kernels from outside of Oriel, in a library that oriel-run loads: --load-plugin FILE.so.
//
//   ORIEL_KERNEL_PLUGIN(registry) { registry.Register("acme.snake", 0, MakeSnake); }
//
// At namespace scope, once in a library. It is built by oriel_add_kernel_plugin of the installed
// CMake package and links none of Oriel's libraries: it finds their functions in the oriel-run that
// loads it. The name of a kernel is what the op's KernelOpInterface says, by default
// "dialect.mnemonic".
#ifndef ORIEL_KERNELS_PLUGIN_H_
#define ORIEL_KERNELS_PLUGIN_H_

#include "kernels/abi.h"
#include "kernels/kernel.h"
#include "runtime/base/plugin.h"

#define ORIEL_KERNEL_PLUGIN(registry)                                          \
  ORIEL_PLUGIN_MARKER("kernels", ORIEL_KERNELS_ABI)                            \
  extern "C" __attribute__((visibility("default"))) void OrielRegisterKernels( \
      [[maybe_unused]] ::oriel::kernels::KernelRegistry& registry)

#endif  // ORIEL_KERNELS_PLUGIN_H_
