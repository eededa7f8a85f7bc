#include "runtime/train/checkpoint/initial_weights.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/crc32.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<SafetensorsFile> OpenInitialWeights(const plan::Plan& plan,
                                                   const std::string& plan_folder,
                                                   const std::string& name) {
  ORIEL_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(JoinPath(plan_folder, name)));
  if (!HasChecksum(plan, file)) return file;
  const std::string& expected = plan.provenance().weights_crc32();
  const std::string& found = file.metadata().at(kWeightsChecksum);
  if (found != expected) {
    return absl::FailedPreconditionError(absl::StrCat(
        file.path(), ": these are the weights of another plan (checksum ", found, ", the plan has ",
        expected, "): compile the plan again, or put its own weights beside it"));
  }
  return file;
}

bool HasChecksum(const plan::Plan& plan, const SafetensorsFile& file) {
  return !plan.provenance().weights_crc32().empty() && file.metadata().count(kWeightsChecksum) > 0;
}

absl::Status CheckWeightsChecksum(const plan::Plan& plan, const SafetensorsFile& file,
                                  uint32_t crc) {
  const std::string& expected = plan.provenance().weights_crc32();
  const std::string found = Crc32Text(crc);
  if (found == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      file.path(), " is damaged: its data has the checksum ", found, ", and had ", expected,
      " when the plan was compiled; copy it again, or compile the plan again"));
}

}  // namespace oriel::runtime
