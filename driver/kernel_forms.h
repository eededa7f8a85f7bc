// What a user may say of the kernels that a program is made of: which ops are one.
#ifndef ORIEL_DRIVER_KERNEL_FORMS_H_
#define ORIEL_DRIVER_KERNEL_FORMS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "passes/lower/launches.h"

namespace oriel {

struct KernelForms {
  bool unfusedAttention = false;  // attention stays what the model has
  bool unfusedExperts = false;    // all experts are computed, where the model does
  bool fusedLoss = false;         // the loss is one op with the output layer
  LaunchForms launches{/*fused=*/true, /*generated=*/false};
};

// As a plan's provenance has them: options of `oriel compile`, where they are not the default.
std::vector<std::string> provenanceOf(const KernelForms& forms);
// Takes such an option; false for any other one.
bool takeFromProvenance(absl::string_view option, KernelForms* forms);

}  // namespace oriel

#endif  // ORIEL_DRIVER_KERNEL_FORMS_H_
