#include "kernels/cuda/widened.h"

#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernels/common/widened.h"
#include "kernels/cuda/registry.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int64_t kAlignment = 256;

struct Cast {
  size_t index;
  int64_t offset;  // of the f32 tensor in the device's scratch memory
  KernelFn cast;
};

struct WidenedLaunch {
  const Device* device;
  size_t num_operands, num_results;
  std::vector<Cast> operands, results;
  KernelFn kernel;

  void* Wide(const Cast& cast) const {
    return reinterpret_cast<void*>(device->scratch() + static_cast<CUdeviceptr>(cast.offset));
  }
  absl::Status operator()(const KernelArgs& args) const {
    absl::InlinedVector<const void*, 8> from(args.operands, args.operands + num_operands);
    absl::InlinedVector<void*, 4> to(args.results, args.results + num_results);
    for (const Cast& cast : operands) {
      void* wide = Wide(cast);
      ORIEL_RETURN_IF_ERROR(cast.cast({&args.operands[cast.index], &wide, args.stream}));
      from[cast.index] = wide;
    }
    for (const Cast& cast : results) to[cast.index] = Wide(cast);
    ORIEL_RETURN_IF_ERROR(kernel({from.data(), to.data(), args.stream}));
    for (const Cast& cast : results) {
      const void* wide = Wide(cast);
      ORIEL_RETURN_IF_ERROR(cast.cast({&wide, &args.results[cast.index], args.stream}));
    }
    return absl::OkStatus();
  }
};

absl::StatusOr<KernelFn> PrepareCast(Device& device, const TensorSpec& from, const TensorSpec& to) {
  return Registry::Get().Prepare(KernelSpec{"cast", {from}, {to}, {}}, device);
}

absl::StatusOr<KernelFn> Widen(Device& device, const KernelSpec& spec, const WidenedPlan& plan,
                               KernelFn kernel) {
  const int64_t behind = (device.TakeScratchAsked() + kAlignment - 1) / kAlignment * kAlignment;
  ORIEL_RETURN_IF_ERROR(device.AddScratch(behind + plan.bytes));
  WidenedLaunch launch{&device, spec.operands.size(), spec.results.size(), {},
                       {},      std::move(kernel)};
  for (const WidenedPlan::Copy& copy : plan.operands) {
    ORIEL_ASSIGN_OR_RETURN(KernelFn cast, PrepareCast(device, spec.operands[copy.index],
                                                      plan.wide.operands[copy.index]));
    launch.operands.push_back({copy.index, behind + copy.offset, std::move(cast)});
  }
  for (const WidenedPlan::Copy& copy : plan.results) {
    ORIEL_ASSIGN_OR_RETURN(KernelFn cast, PrepareCast(device, plan.wide.results[copy.index],
                                                      spec.results[copy.index]));
    launch.results.push_back({copy.index, behind + copy.offset, std::move(cast)});
  }
  return KernelFn(std::move(launch));
}

}  // namespace

absl::StatusOr<KernelFn> PrepareWidenedOn(
    Device& device, const KernelSpec& spec,
    const std::function<absl::StatusOr<KernelFn>(const KernelSpec&)>& prepare) {
  absl::StatusOr<KernelFn> kernel = absl::UnimplementedError("nothing to widen");
  for (const WidenedPlan& plan : WidenedPlans(spec)) {
    device.TakeScratchAsked();
    kernel = prepare(plan.wide);
    if (kernel.ok()) return Widen(device, spec, plan, *std::move(kernel));
  }
  return kernel;
}

}  // namespace oriel::kernels::cuda
