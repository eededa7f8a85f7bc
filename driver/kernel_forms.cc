#include "driver/kernel_forms.h"

namespace oriel {

namespace {

struct Form {
  absl::string_view option;
  bool* value;
  bool said;  // by the option
};

std::vector<Form> formsOf(KernelForms& forms) {
  return {{"--unfused=attention", &forms.unfusedAttention, true},
          {"--unfused=experts", &forms.unfusedExperts, true},
          {"--fuse-loss", &forms.fusedLoss, true},
          {"--fuse-kernels=off", &forms.launches.fused, false},
          {"--generated-kernels=on", &forms.launches.generated, true}};
}

}  // namespace

std::vector<std::string> provenanceOf(const KernelForms& forms) {
  KernelForms copy = forms;
  std::vector<std::string> options;
  for (const Form& form : formsOf(copy)) {
    if (*form.value == form.said) options.emplace_back(form.option);
  }
  return options;
}

bool takeFromProvenance(absl::string_view option, KernelForms* forms) {
  for (const Form& form : formsOf(*forms)) {
    if (form.option != option) continue;
    *form.value = form.said;
    return true;
  }
  return false;
}

}  // namespace oriel
