#include "kernels/cuda/copy_rows.h"

#include <algorithm>
#include <limits>

#include "runtime/base/status.h"

namespace oriel::kernels::cuda {

absl::Status CopyRows(const Driver& driver, CUdeviceptr target, int64_t target_stride,
                      CUdeviceptr source, int64_t source_stride, int64_t run, int64_t rows,
                      CUstream stream) {
  constexpr int64_t kMaxPitch = std::numeric_limits<int32_t>::max();
  if (run == 0 || rows == 0) return absl::OkStatus();
  const auto bytes = static_cast<size_t>(run);
  if (rows == 1 || (run == target_stride && run == source_stride)) {
    return ORIEL_CUDA(driver, cuMemcpyAsync, target, source, bytes * rows, stream);
  }
  if (std::max(target_stride, source_stride) > kMaxPitch) {
    for (int64_t row = 0; row < rows; ++row) {
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuMemcpyAsync, target + row * target_stride,
                                       source + row * source_stride, bytes, stream));
    }
    return absl::OkStatus();
  }
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = source;
  copy.srcPitch = static_cast<size_t>(source_stride);
  copy.dstDevice = target;
  copy.dstPitch = static_cast<size_t>(target_stride);
  copy.WidthInBytes = bytes;
  copy.Height = static_cast<size_t>(rows);
  return ORIEL_CUDA(driver, cuMemcpy2DAsync, &copy, stream);
}

}  // namespace oriel::kernels::cuda
