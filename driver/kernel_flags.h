// The options of a command that say which ops are one kernel (kernel_forms.h).
#ifndef ORIEL_DRIVER_KERNEL_FLAGS_H_
#define ORIEL_DRIVER_KERNEL_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "driver/kernel_forms.h"

namespace oriel::driver {

// As they were given.
struct KernelOptions {
  std::vector<std::string> unfused;
  bool fuseLoss = false;
  std::optional<std::string> fuseKernels, generatedKernels;
};

// `options` lives as long as the command.
void addKernelFlags(CLI::App* command, KernelOptions* options);

// InvalidArgument for a value that an option can't have.
absl::StatusOr<KernelForms> kernelFormsOf(const KernelOptions& options);

// The names of those that were given.
std::vector<std::string> givenOptions(const KernelOptions& options);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_KERNEL_FLAGS_H_
