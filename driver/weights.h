// The weights file beside a plan: initial values by ONNX name, but for those that are made when
// training starts.
#ifndef ORIEL_DRIVER_WEIGHTS_H_
#define ORIEL_DRIVER_WEIGHTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/model_file.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::driver {

// "out/llava.oplan" -> "llava.weights.safetensors": as the plan names it, relative to its folder.
std::string weightsFileName(const std::string& planPath);

// Whether `plan` has such a file: not if all initial values are made.
bool hasWeightsFile(const plan::Plan& plan);

// Writes what `plan` expects in `path`, as the model stores it. The file appears complete or not
// at all. Returns their CRC-32, as Provenance.weights_crc32 has it. FailedPrecondition, naming the
// tensor, where the model has another type or size.
absl::StatusOr<std::string> writeWeights(const ModelFile& model, const plan::Plan& plan,
                                         const std::string& path);

// Whether the files that the plan names lie in their places and hold each parameter with its
// shape, and its type or another float, and are not damaged. The error names file and tensor.
absl::Status checkWeights(const plan::Plan& plan, const std::string& planPath);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_WEIGHTS_H_
