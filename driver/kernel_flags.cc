#include "driver/kernel_flags.h"

#include "absl/strings/str_cat.h"
#include "driver/console.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

// So that an option behind it is not taken for its value.
const CLI::Validator& onOrOff() {
  static const auto* validator = new CLI::Validator(
      [](const std::string& value) {
        if (value == "on" || value == "off") return std::string();
        return absl::StrCat("can't use '", value, "'; give on or off");
      },
      "");
  return *validator;
}

}  // namespace

void addKernelFlags(CLI::App* command, KernelOptions* options) {
  command
      ->add_option("--unfused", options->unfused,
                   "Leave this as the model's own ops: attention, experts; to compare with")
      ->allow_extra_args(false)
      ->type_name("WHAT");
  command
      ->add_option("--fuse-kernels", options->fuseKernels,
                   "Whether products and norms do the sums, casts and activations beside them "
                   "(docs/fused_kernels.md): on, which is the default, or off")
      ->check(onOrOff())
      ->type_name("on|off");
  command
      ->add_option("--generated-kernels", options->generatedKernels,
                   "Whether chains of pointwise ops are compiled to one launch each "
                   "(docs/generated_kernels.md): on, or off, which is the default")
      ->check(onOrOff())
      ->type_name("on|off");
  command->add_flag("--fuse-loss", options->fuseLoss,
                    "Compute the cross entropy with the output layer, for some rows at a time: the "
                    "logits are never whole in memory, and computed again in the backward");
}

absl::StatusOr<KernelForms> kernelFormsOf(const KernelOptions& options) {
  KernelForms forms;
  for (const std::string& what : options.unfused) {
    if (what == "attention") {
      forms.unfusedAttention = true;
    } else if (what == "experts") {
      forms.unfusedExperts = true;
    } else {
      return usageError(absl::StrCat("--unfused: can't use '", what,
                                     "'; what can be left unfused are attention and experts"));
    }
  }
  forms.fusedLoss = options.fuseLoss;
  if (options.fuseKernels) forms.launches.fused = *options.fuseKernels == "on";
  if (options.generatedKernels) forms.launches.generated = *options.generatedKernels == "on";
  return forms;
}

std::vector<std::string> givenOptions(const KernelOptions& options) {
  std::vector<std::string> given;
  if (!options.unfused.empty()) given.push_back("--unfused");
  if (options.fuseKernels) given.push_back("--fuse-kernels");
  if (options.generatedKernels) given.push_back("--generated-kernels");
  if (options.fuseLoss) given.push_back("--fuse-loss");
  return given;
}

}  // namespace oriel::driver
