// Contract: packing.h. A block moves kPackUnits units of one tensor; a thread loads its units,
// which lie as far apart as the block is wide, before it stores the first.
//
// Bytes over the memory: reads and writes each tensor once.
#include "kernels/cuda/device_code.cuh"
#include "kernels/packing/packing_args.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kOfThread = kPackUnits / kPackThreads;

// The tensor of a block: first_block[t] <= block < first_block[t + 1].
__device__ inline int TensorOf(const PackArgs& args, int32_t block) {
  int low = 0, high = args.used - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (args.first_block[middle] <= block) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

template <typename Unit>
__device__ inline void SwapRuns(const PackArgs& args) {
  const auto block = static_cast<int32_t>(blockIdx.x);
  const int number = TensorOf(args, block);
  const PackTensor& tensor = args.tensors[number];
  const auto* source = static_cast<const Unit*>(tensor.source);
  auto* target = static_cast<Unit*>(tensor.target);
  const uint32_t first =
      static_cast<uint32_t>(block - args.first_block[number]) * kPackUnits + threadIdx.x;
  Unit units[kOfThread];
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) {
    const uint32_t unit = first + i * kPackThreads;
    if (unit < tensor.units) units[i] = source[unit];
  }
#pragma unroll
  for (int i = 0; i < kOfThread; ++i) {
    const uint32_t unit = first + i * kPackThreads;
    if (unit >= tensor.units) continue;
    const uint32_t run = unit / tensor.run, within = unit - run * tensor.run;
    const uint32_t outer = run / tensor.inner, inner = run - outer * tensor.inner;
    target[(inner * tensor.outer + outer) * tensor.run + within] = units[i];
  }
}

}  // namespace

ORIEL_CUDA_KERNEL(kPackThreads, oriel_swap_runs_1, const PackArgs args) { SwapRuns<uint8_t>(args); }
ORIEL_CUDA_KERNEL(kPackThreads, oriel_swap_runs_2, const PackArgs args) {
  SwapRuns<uint16_t>(args);
}
ORIEL_CUDA_KERNEL(kPackThreads, oriel_swap_runs_4, const PackArgs args) {
  SwapRuns<uint32_t>(args);
}
ORIEL_CUDA_KERNEL(kPackThreads, oriel_swap_runs_8, const PackArgs args) {
  SwapRuns<uint64_t>(args);
}
ORIEL_CUDA_KERNEL(kPackThreads, oriel_swap_runs_16, const PackArgs args) { SwapRuns<int4>(args); }

}  // namespace oriel::kernels::cuda
