#include "kernels/cuda/emulator/emulated_kernel.h"

#include <map>
#include <utility>

namespace oriel::kernels::cuda {
namespace {

// Made by the first registrar, whichever file's that is.
std::map<std::string_view, EmulatedKernel>& Kernels() {
  static auto* kernels = new std::map<std::string_view, EmulatedKernel>;
  return *kernels;
}

}  // namespace

const EmulatedKernel* FindEmulated(std::string_view name) {
  const auto found = Kernels().find(name);
  return found == Kernels().end() ? nullptr : &found->second;
}

EmulatedKernelRegistrar::EmulatedKernelRegistrar(EmulatedKernel kernel) {
  const std::string_view name = kernel.name;
  Kernels().emplace(name, std::move(kernel));
}

}  // namespace oriel::kernels::cuda
