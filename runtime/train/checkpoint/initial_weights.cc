#include "runtime/train/checkpoint/initial_weights.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/crc32.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<SafetensorsFile> OpenInitialWeights(const plan::Plan& plan,
                                                   const std::string& plan_folder,
                                                   const std::string& name) {
  absl::StatusOr<SafetensorsFile> opened = SafetensorsFile::Open(JoinPath(plan_folder, name));
  if (!opened.ok()) {
    return absl::Status(opened.status().code(),
                        absl::StrCat(opened.status().message(), "; the plan reads ", name,
                                     " beside it: copy that again, or compile the plan again"));
  }
  SafetensorsFile file = *std::move(opened);
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
