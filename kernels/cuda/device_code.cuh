// What every .cu file of Oriel includes: the words of device code, for nvcc and for the emulator.
//
//   ORIEL_CUDA_KERNEL(256, oriel_scale_f32, const float* x, float* y, int64_t count) {
//     for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) y[i] = 2 * x[i];
//   }
//
// defines an extern "C" __global__ function of at most 256 threads per block. A .cu file holds
// device code alone, and is compiled twice: by nvcc, into the image that Device::Open loads; and by
// the host's compiler, into functions that the emulator runs block by block, each thread of a block
// a fiber, so that barriers and exchanges within a warp work (emulator/). So what it uses beyond
// C++17 and cuda_bf16.h / cuda_fp16.h is what this header offers:
//
//   threadIdx blockIdx blockDim gridDim   as in CUDA
//   __syncthreads() __syncwarp()
//   __shfl_xor_sync __shfl_down_sync __shfl_sync   (whole warps, mask 0xffffffff)
//   atomicAdd atomicMax atomicCAS
//   __shared__ arrays of fixed size; ORIEL_DYNAMIC_SHARED(T, name) for the launch's dynamic memory
//   float4, int4, ..; __ldg; expf, erff, ..
//
// Device code has no function-local static variables but __shared__ ones.
