// The tables behind the names that cudnn-frontend calls.
//
// cudnn-frontend calls cuDNN and the CUDA runtime by their names. Oriel links neither: it defines
// these names itself (cudnn_names.cc), hidden, and sends calls to the tables that the thread has in
// use. So the emulator's cuDNN is called by the same code as the machine's.
//
//   const CudnnInUse in_use(cudnn, driver);
//   graph.execute(..);
#ifndef ORIEL_KERNELS_CUDA_LIBRARIES_CUDNN_IN_USE_H_
#define ORIEL_KERNELS_CUDA_LIBRARIES_CUDNN_IN_USE_H_

#include "kernels/cuda/libraries/cudnn.h"

namespace oriel::kernels::cuda {

// While it lives, calls of this thread go to these tables. `driver` is null where there is no
// device; then calls of the runtime fail.
class CudnnInUse {
 public:
  CudnnInUse(const Cudnn& cudnn, const Driver* driver);
  ~CudnnInUse();
  CudnnInUse(const CudnnInUse&) = delete;
  CudnnInUse& operator=(const CudnnInUse&) = delete;

 private:
  const Cudnn* const former_cudnn_;
  const Driver* const former_driver_;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_LIBRARIES_CUDNN_IN_USE_H_
