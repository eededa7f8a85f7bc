// Copies of rows between memory of a device.
#ifndef ORIEL_KERNELS_CUDA_COPY_ROWS_H_
#define ORIEL_KERNELS_CUDA_COPY_ROWS_H_

#include <cuda.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/driver.h"

namespace oriel::kernels::cuda {

// Puts copies of `rows` runs of `run` bytes on the stream, which begin so many bytes apart on
// either side; nothing for no bytes. Any strides: the driver's 2-D copy takes less than 2 GiB, and
// where they are larger there are few rows, which are copied one by one.
absl::Status CopyRows(const Driver& driver, CUdeviceptr target, int64_t target_stride,
                      CUdeviceptr source, int64_t source_stride, int64_t run, int64_t rows,
                      CUstream stream);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_COPY_ROWS_H_
