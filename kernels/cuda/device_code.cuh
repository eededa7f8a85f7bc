// What every .cu file of Oriel includes: the words of device code, for nvcc and for the emulator.
//
//   ORIEL_CUDA_KERNEL(256, oriel_scale_f32, const float* x, float* y, int64_t count) {
//     for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) y[i] = 2 * x[i];
//   }
//
// defines an extern "C" __global__ function of at most 256 threads per block. A .cu file holds
// device code alone, and is compiled twice: by nvcc, into the image that Device::Open loads; and by
// the host's compiler, into functions that the emulator runs block by block, each thread of a block
// on a stack of its own, so that barriers and exchanges within a warp work (emulator/). So what it
// uses beyond C++17 and cuda_bf16.h / cuda_fp16.h is what this header offers:
//
//   threadIdx blockIdx blockDim gridDim warpSize
//   __syncthreads() __syncthreads_count() __syncthreads_or() __syncwarp() __threadfence()
//   __threadfence_system()
//   __shfl_sync __shfl_xor_sync __shfl_down_sync __shfl_up_sync __ballot_sync __any_sync __all_sync
//     of whole warps: mask kWholeWarp, blocks of whole warps, no lane has returned
//   atomicAdd atomicMax atomicMin atomicCAS atomicExch atomicOr
//   __shared__ arrays of fixed size; ORIEL_DYNAMIC_SHARED(T, name) for the launch's dynamic memory
//   float4, int4, ..; __ldg, __stwb, __popc, ..; __uint_as_float, ..; expf, erff, rsqrtf, ..
//   max and min of two of one type
//
//   CopyAsync16, WaitForCopies, FastExp2 (below); LoadMatrices, LoadMatricesTransposed, MultiplyAdd
//     of whole warps: tensor cores (below)
//
// A barrier is for all threads of a block: none may have returned. Device code has no
// function-local static variables but __shared__ ones, and its helpers stand in an unnamed
// namespace: the host's compiler links all files into one library.
#ifndef ORIEL_KERNELS_CUDA_DEVICE_CODE_CUH_
#define ORIEL_KERNELS_CUDA_DEVICE_CODE_CUH_

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/fault.h"

#ifdef __CUDACC__

#define ORIEL_CUDA_KERNEL(threads, name, ...) \
  extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)

// All uses within a module must agree on the type of the symbol.
#define ORIEL_DYNAMIC_SHARED(T, name)                                    \
  extern __shared__ __align__(128) unsigned char oriel_dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(oriel_dynamic_shared)

// Starts a copy of 16 aligned bytes to shared memory. This thread sees them behind WaitForCopies,
// others behind a barrier after that.
__device__ inline void CopyAsync16(void* shared, const void* global) {
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
}
__device__ inline void WaitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
// 2 to the power of x by one instruction, within 2^-22 of it; 0 below 2^-126.
__device__ inline float FastExp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Products on tensor cores, by whole warps, as PTX defines them (ISA 8.0, ldmatrix and
// mma.m16n8k16). LoadMatrices loads four 8 x 8 matrices of 16-bit elements from shared memory: lane
// 8 i + r gives the address of row r of matrix i, 16 aligned bytes, and lane l gets of each matrix
// elements 2 (l % 4) and the next of row l / 4; transposed, of column l / 4.
__device__ inline void LoadMatrices(const void* row, uint32_t (&to)[4]) {
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from)
               : "memory");
}
__device__ inline void LoadMatricesTransposed(const void* row, uint32_t (&to)[4]) {
  const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from)
               : "memory");
}
// c += a b of a [16, 16] and b [16, 8], bf16, in f32. Of a, four 8 x 8 matrices: rows from 0 and
// from 8 on, of columns from 0 on, then of columns from 8 on, each as LoadMatrices gives them; of
// b, columns as rows, two: k from 0 and from 8 on; c: elements 2 (l % 4) and the next of row
// l / 4, then of row 8 + l / 4.
__device__ inline void MultiplyAdd(const uint32_t (&a)[4], const uint32_t* b, float (&c)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#else

#include "kernels/cuda/emulator/device_words.h"

#endif

namespace oriel::kernels::cuda {

inline constexpr unsigned kWholeWarp = 0xffffffffu;

// The thread's number in the grid, and how many there are, along x.
__device__ inline int64_t GlobalThread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t GlobalThreads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// Notes what is wrong with the data, unless something has been before. `launch` is of
// Device::NextLaunch; the kernel goes on, and its results are of no use.
__device__ inline void ReportFault(Fault* fault, int32_t launch, int32_t kind, int64_t value,
                                   int64_t limit, int64_t position = 0) {
  if (atomicCAS(&fault->kind, 0, kind) != 0) return;
  fault->launch = launch;
  fault->value = value;
  fault->limit = limit;
  fault->position = position;
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_DEVICE_CODE_CUH_
