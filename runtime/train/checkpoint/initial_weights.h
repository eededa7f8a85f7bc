// The file of a plan's initial weights.
#ifndef ORIEL_RUNTIME_TRAIN_CHECKPOINT_INITIAL_WEIGHTS_H_
#define ORIEL_RUNTIME_TRAIN_CHECKPOINT_INITIAL_WEIGHTS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/train/checkpoint/safetensors.h"

namespace oriel::runtime {

// In the file's metadata: the checksum that the plan has as Provenance.weights_crc32.
inline constexpr char kWeightsChecksum[] = "crc32";

// The file `name` in the plan's folder. FailedPrecondition if it says that it belongs to another
// plan: one that was compiled later, perhaps, under a name that differs in its ending alone.
absl::StatusOr<SafetensorsFile> OpenInitialWeights(const plan::Plan& plan,
                                                   const std::string& plan_folder,
                                                   const std::string& name);
// Whether plan and file say one; older plans don't, nor does a file that somebody made.
bool HasChecksum(const plan::Plan& plan, const SafetensorsFile& file);
// DataLoss, naming the file, if its data has not the plan's checksum but `crc`.
absl::Status CheckWeightsChecksum(const plan::Plan& plan, const SafetensorsFile& file,
                                  uint32_t crc);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_CHECKPOINT_INITIAL_WEIGHTS_H_
