#include "kernels/packing/packing.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/packing/packing_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kUnits = 5;

// The largest unit that addresses and runs are multiples of: 2^result bytes.
int UnitOf(const RunsToSwap& tensor) {
  const uint64_t all = reinterpret_cast<uintptr_t>(tensor.source) |
                       reinterpret_cast<uintptr_t>(tensor.target) |
                       static_cast<uint64_t>(tensor.run);
  int unit = 0;
  while (unit + 1 < kUnits && (all >> unit & 1) == 0) ++unit;
  return unit;
}

// Launches what it holds, and holds nothing.
absl::Status Launch(const Function& function, PackArgs& args, CUstream stream) {
  if (args.used == 0) return absl::OkStatus();
  const auto blocks = static_cast<unsigned>(args.first_block[args.used]);
  ORIEL_RETURN_IF_ERROR(function.Launch({blocks, 1, 1}, {kPackThreads, 1, 1}, stream, args));
  args.used = 0;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Packer> Packer::Find(const Device& device) {
  Packer packer;
  for (int unit = 0; unit < kUnits; ++unit) {
    ORIEL_ASSIGN_OR_RETURN(packer.functions_[unit],
                           device.Find(absl::StrCat("oriel_swap_runs_", 1 << unit)));
  }
  return packer;
}

absl::Status Packer::Swap(absl::Span<const RunsToSwap> tensors, CUstream stream) const {
  for (int unit = 0; unit < kUnits; ++unit) {
    PackArgs args = {};
    for (const RunsToSwap& tensor : tensors) {
      if (UnitOf(tensor) != unit || tensor.outer * tensor.inner * tensor.run == 0) continue;
      const int64_t units = tensor.outer * tensor.inner * (tensor.run >> unit);
      if (units > std::numeric_limits<int32_t>::max()) {
        return absl::InvalidArgumentError(
            absl::StrCat("a tensor of ", units, " units of ", 1 << unit,
                         " bytes is too large to be packed; the kernel takes fewer than 2^31"));
      }
      const int64_t blocks = (units + kPackUnits - 1) / kPackUnits;
      if (args.used == kPackTensors || (args.used > 0 && args.first_block[args.used] + blocks >
                                                             std::numeric_limits<int32_t>::max())) {
        ORIEL_RETURN_IF_ERROR(Launch(functions_[unit], args, stream));
      }
      args.tensors[args.used] = {tensor.source,
                                 tensor.target,
                                 static_cast<uint32_t>(tensor.outer),
                                 static_cast<uint32_t>(tensor.inner),
                                 static_cast<uint32_t>(tensor.run >> unit),
                                 static_cast<uint32_t>(units)};
      args.first_block[args.used + 1] = args.first_block[args.used] + static_cast<int32_t>(blocks);
      ++args.used;
    }
    ORIEL_RETURN_IF_ERROR(Launch(functions_[unit], args, stream));
  }
  return absl::OkStatus();
}

}  // namespace oriel::kernels::cuda
