#include "runtime/backend/cuda/plugin.h"

namespace oriel::runtime {

absl::StatusOr<const kernels::cuda::Driver*> PluginDriver() {
  return kernels::cuda::SystemDriver();
}

}  // namespace oriel::runtime
