// What the device code of activations is launched with.
#ifndef ORIEL_KERNELS_ACTIVATION_ACTIVATION_LAUNCH_H_
#define ORIEL_KERNELS_ACTIVATION_ACTIVATION_LAUNCH_H_

#include <cstdint>

namespace oriel::kernels::cuda {

enum class ActivationKind : int32_t { kGelu, kGeluTanh, kGeluQuick, kSilu };

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_ACTIVATION_ACTIVATION_LAUNCH_H_
