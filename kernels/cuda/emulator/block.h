// Runs a grid on the CPU: block by block, each thread of a block on a stack of its own.
//
// Threads switch only where device code says that they exchange something: at a barrier, and at an
// exchange within a warp. Blocks, the threads of a block, and those that a barrier lets go come in
// an order drawn from a seed, so that code which needs another order than barriers give computes
// wrong values here. An exchange that cannot complete, because a thread has returned or is at
// another one, is an error that says who waits where, not a hang. Dynamic shared memory holds 0xff
// bytes before each block; what a block writes beyond its end is found.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_BLOCK_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_BLOCK_H_

#include <vector_types.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/emulator/emulated_kernel.h"

namespace oriel::kernels::cuda::emulator {

inline constexpr int kWarp = 32;
inline constexpr size_t kExchangeBytes = 64;  // at most, of a lane

// Runs `body(context)` once for each thread of the grid, with This() set. InvalidArgument for a
// launch that a GPU refuses, FailedPrecondition for one that hangs there.
absl::Status RunGrid(const EmulatedKernel& kernel, const EmulatedLaunch& launch,
                     void (*body)(void* context), void* context);

// The seed of the orders; each launch draws anew. For the calling thread.
void SetSeed(uint64_t seed);

// The thread of the grid that runs now, in this thread of the host.
struct Indices {
  uint3 thread, block;
  dim3 threads, blocks;
};
const Indices& This();

// The lane's place in its warp.
int Lane();

// Waits for all threads of the block. `what` is for messages. Gives the sum of all `value`.
int Barrier(const char* what, int value = 0);

// Waits for all lanes of the warp, each with `bytes` of its own; gives where those of lane i lie,
// at i * kExchangeBytes. They stay until the lane's next exchange. `mask` must be that of all
// lanes, and the block made of whole warps.
const unsigned char* Exchange(const char* what, unsigned mask, const void* value, size_t bytes);

// The launch's dynamic shared memory, aligned to 1024 bytes.
void* DynamicShared();

// Ends the launch with an error. Does not return.
[[noreturn]] void Fail(const char* what);

}  // namespace oriel::kernels::cuda::emulator

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_BLOCK_H_
