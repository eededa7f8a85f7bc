// The oldest versions of NVIDIA's libraries that are used, as numbers of their own kind.
#ifndef ORIEL_KERNELS_CUDA_LIBRARIES_OLDEST_VERSIONS_H_
#define ORIEL_KERNELS_CUDA_LIBRARIES_OLDEST_VERSIONS_H_

namespace oriel::kernels::cuda {

// 9.19, which these tests ask for engines. Of those before it that are for CUDA 13, some give wrong
// attention on Hopper (TransformerEngine#2186, #2344).
inline constexpr int kOldestCudnn = 91900;
// 2.26: kernels of several communicators reach a GPU in the order of their calls.
inline constexpr int kOldestNccl = 22600;

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_LIBRARIES_OLDEST_VERSIONS_H_
