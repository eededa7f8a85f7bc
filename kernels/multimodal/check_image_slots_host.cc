#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "kernels/multimodal/multimodal.h"

namespace oriel::kernels {
namespace {

absl::StatusOr<KernelFn> MakeCheckImageSlots(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const int64_t rows, RowsPerImage(spec));
  const TensorSpec& mask_spec = spec.operands[0];
  const int64_t samples = mask_spec.shape[0], positions = mask_spec.shape[1];
  return KernelFn([=](const KernelArgs& args) -> absl::Status {
    const uint8_t* mask = args.operand<uint8_t>(0);
    const int64_t* images = args.operand<int64_t>(1);
    for (int64_t sample = 0; sample < samples; ++sample) {
      int64_t slots = 0;
      for (int64_t j = 0; j < positions; ++j) slots += mask[sample * positions + j] != 0;
      // Divided rather than multiplied: the number may be anything.
      if (slots % rows == 0 && slots / rows == images[sample]) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "sample ", sample, " of the microbatch has ", slots, " image positions, but it brought ",
          images[sample], images[sample] == 1 ? " image" : " images", " of ", rows,
          " positions each"));
    }
    std::memcpy(args.result<uint8_t>(0), mask, samples * positions);
    return absl::OkStatus();
  });
}

ORIEL_REGISTER_HOST_KERNEL("check_image_slots", 0, MakeCheckImageSlots);

}  // namespace
}  // namespace oriel::kernels
