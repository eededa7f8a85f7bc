// Launches with f16 and bf16 tensors for CUDA kernels that take them as f32; see common/widened.h.
//
// The kernel `cast` widens and rounds, in the device's scratch memory behind that of the launch
// itself.
#ifndef ORIEL_KERNELS_CUDA_WIDENED_H_
#define ORIEL_KERNELS_CUDA_WIDENED_H_

#include <functional>

#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "kernels/kernel.h"

namespace oriel::kernels::cuda {

// As oriel::kernels::PrepareWidened.
absl::StatusOr<KernelFn> PrepareWidenedOn(
    Device& device, const KernelSpec& spec,
    const std::function<absl::StatusOr<KernelFn>(const KernelSpec&)>& prepare);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_WIDENED_H_
