// Device code of cuda_backend_test.cc.
#include "kernels/cuda/device_code.cuh"

namespace oriel::kernels::cuda {

ORIEL_CUDA_KERNEL(64, oriel_test_double, const float* x, float* y, int64_t count) {
  const int64_t i = GlobalThread();
  if (i < count) y[i] = 2 * x[i];
}

// Reports the first element that is not 0 or 1.
ORIEL_CUDA_KERNEL(64, oriel_test_index, const float* x, Fault* fault, int32_t launch,
                  int64_t count) {
  const int64_t i = GlobalThread();
  if (i >= count || x[i] == 0 || x[i] == 1) return;
  ReportFault(fault, launch, kIndexOutOfRange, static_cast<int64_t>(x[i]), 2, i);
}

}  // namespace oriel::kernels::cuda
