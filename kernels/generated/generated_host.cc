#include <algorithm>

#include "kernels/common/parallel.h"
#include "kernels/generated/generated.h"
#include "runtime/base/status.h"

namespace oriel::kernels {
namespace {

absl::StatusOr<KernelFn> MakeGenerated(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const GeneratedUnits units, UnitsOf(spec));
  ORIEL_ASSIGN_OR_RETURN(std::shared_ptr<const HostCode> code, LoadForThisProcessor(spec));
  // Units that threads share out: as in a flat loop, or single ones where they are larger.
  const int64_t grain = std::max<int64_t>(1, kFlatUnit / units.unit_elements);
  const int64_t grains = (units.units + grain - 1) / grain;
  const auto values = static_cast<int64_t>(spec.operands.size() + spec.results.size());
  const int64_t work = grain * units.unit_elements * std::max<int64_t>(1, values / 3);
  return KernelFn([=, threads = spec.num_threads, count = units.units](const KernelArgs& args) {
    ParallelFor(threads, grains, work, [&](int64_t begin, int64_t end) {
      code->function()(args.operands, args.results, begin * grain, std::min(end * grain, count));
    });
    return absl::OkStatus();
  });
}

ORIEL_REGISTER_HOST_KERNEL("generated", 0, MakeGenerated);

}  // namespace
}  // namespace oriel::kernels
