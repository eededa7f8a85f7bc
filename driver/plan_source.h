// What a plan was compiled from, as its provenance has it.
#ifndef ORIEL_DRIVER_PLAN_SOURCE_H_
#define ORIEL_DRIVER_PLAN_SOURCE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/kernel_forms.h"
#include "passes/strategy/strategy.h"
#include "passes/train/recipe.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::driver {

// The ONNX file that the plan at `planPath` was compiled from, and no other: `given` (--model), or
// where it is empty the path that the compiler was given, from here or from the plan's folder.
// NotFound if it is not there, FailedPrecondition for a file with another SHA-256.
absl::StatusOr<std::string> modelOfPlan(const std::string& planPath, const plan::Provenance& from,
                                        const std::string& given);

struct PlanSource {
  std::string modelPath;
  Recipe recipe;
  Strategy strategy;
  KernelForms kernels;
  // Flags that change the program behind the phases that a simulation has, or in plugins' ways.
  std::vector<std::string> notSimulated;
};

// FailedPrecondition for a plan without provenance, and for one that needs a plugin which was not
// loaded; else as modelOfPlan(), and InvalidArgument for texts that this version can't read.
absl::StatusOr<PlanSource> sourceOfPlan(const std::string& planPath, const plan::Provenance& from,
                                        const std::string& givenModel,
                                        const std::vector<std::string>& plugins);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PLAN_SOURCE_H_
