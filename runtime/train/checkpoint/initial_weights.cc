#include "runtime/train/checkpoint/initial_weights.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<SafetensorsFile> OpenInitialWeights(const plan::Plan& plan,
                                                   const std::string& plan_folder,
                                                   const std::string& name) {
  ORIEL_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(JoinPath(plan_folder, name)));
  const std::string& expected = plan.provenance().weights_crc32();
  const auto found = file.metadata().find(kWeightsChecksum);
  // Older plans don't say, nor does a file that somebody made.
  if (!expected.empty() && found != file.metadata().end() && found->second != expected) {
    return absl::FailedPreconditionError(
        absl::StrCat(file.path(), ": these are the weights of another plan (checksum ",
                     found->second, ", the plan has ", expected,
                     "): compile the plan again, or put its own weights beside it"));
  }
  return file;
}

}  // namespace oriel::runtime
