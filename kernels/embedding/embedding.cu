// gather; see embedding.h for operands.
//
// Copies bits, in units of 16, 4 or 1 bytes: `inner` counts these. An index out of range is
// reported, and gathers zeros. Bytes over the memory: the result twice.
#include "kernels/embedding/indices.cuh"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// A row of the block copies a row of the table.
template <typename U, typename I>
__device__ void Gather(const GatherArgs& args, const U* table, const I* indices, U* result) {
  const int64_t first = PieceFirst(args.rows, args.indices.fault);
  const int64_t rows = args.outer * args.count;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < rows;
       i += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    const int64_t k = i % args.count, outer = i / args.count;
    if (threadIdx.x == 0) CheckIndex(args, indices, k);
    const int64_t row = RowOf(args, indices, k, first);
    const U* from = table + (outer * args.size + (row < 0 ? 0 : row)) * args.inner;
    U* to = result + i * args.inner;
    for (int64_t j = threadIdx.x; j < args.inner; j += blockDim.x) {
      to[j] = row < 0 ? U{} : from[j];
    }
  }
}

}  // namespace

#define ORIEL_GATHER_KERNELS(I, index)                                                             \
  ORIEL_CUDA_KERNEL(kThreads, oriel_gather_16_##index, const GatherArgs args, const uint4* table,  \
                    const I* indices, uint4* result) {                                             \
    Gather(args, table, indices, result);                                                          \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kThreads, oriel_gather_4_##index, const GatherArgs args,                       \
                    const uint32_t* table, const I* indices, uint32_t* result) {                   \
    Gather(args, table, indices, result);                                                          \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kThreads, oriel_gather_1_##index, const GatherArgs args, const uint8_t* table, \
                    const I* indices, uint8_t* result) {                                           \
    Gather(args, table, indices, result);                                                          \
  }

ORIEL_GATHER_KERNELS(int64_t, i64)
ORIEL_GATHER_KERNELS(int32_t, i32)

}  // namespace oriel::kernels::cuda
