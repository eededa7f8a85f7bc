// What a kernel finds wrong with its data, in device memory. Device code and the host share it.
#ifndef ORIEL_KERNELS_CUDA_FAULT_H_
#define ORIEL_KERNELS_CUDA_FAULT_H_

#include <cstdint>

namespace oriel::kernels::cuda {

enum FaultKind : int32_t {
  kIndexOutOfRange = 1,  // value is not in [0, limit), or not in [-limit, limit)
  kDivisionByZero = 2,
  kCountMismatch = 3,  // value where limit was declared
};

// The first one stays. See ReportFault in device_code.cuh.
struct Fault {
  int32_t kind;    // 0: none; else FaultKind
  int32_t launch;  // which: what Device::NextLaunch gave
  int64_t value;   // the offending one
  int64_t limit;
  int64_t position;  // of the value in its tensor
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_FAULT_H_
