// gather and scatter_add; see embedding.h for operands.
//
// gather copies bits, in units of 16, 4 or 1 bytes: `inner` counts these. An index out of range is
// reported, and gathers zeros. Bytes over the memory: the result twice.
//
// scatter_add is deterministic: no atomic adds. The updates of a row are added in T (f32 for bf16)
// in the order of their indices, by one group, and rounded once: as on the host, bit for bit.
//   1. link    for each index, a warp looks for the next equal one, and whether it is the first:
//              about count² / 32 steps of a warp at worst, fewer where indices repeat
//   2. the table is cleared (by the launch, before)
//   3. add     for each first index, a group walks the chain
// Bytes over the memory: the table is written once, rows with updates twice, and updates are read
// once. An index that occurs very often (padding, the places of an image) is one group's work. It
// follows kAhead links, which are in the cache, and then waits for as many updates at once.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/piece.cuh"
#include "kernels/embedding/gather_args.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kAhead = 6;

// The row of the table that an index names; -1 for one of another piece, or none at all.
template <typename I>
__device__ int64_t RowOf(const GatherArgs& args, const I* indices, int64_t k, int64_t first) {
  const int64_t index = indices[k], rows = args.rows.whole;
  const int64_t row = (index < 0 ? index + rows : index) - first;
  return index >= -rows && index < rows && row >= 0 && row < args.size ? row : -1;
}

template <typename I>
__device__ void CheckIndex(const GatherArgs& args, const I* indices, int64_t k) {
  const int64_t index = indices[k], rows = args.rows.whole;
  if (index >= -rows && index < rows) return;
  ReportFault(args.indices.fault, args.indices.launch, kIndexOutOfRange, index, rows, k);
}

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

// next[k]: the next index equal to that at k, `count` if there is none; -1 - that where k is not
// the first. A warp for each k.
template <typename I>
__device__ void Link(const GatherArgs& args, const I* indices, int64_t* next) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t first = PieceFirst(args.rows, args.indices.fault);
  for (int64_t k = GlobalThread() / 32; k < args.count; k += GlobalThreads() / 32) {
    if (lane == 0) CheckIndex(args, indices, k);
    const int64_t row = RowOf(args, indices, k, first);
    if (row < 0) {
      if (lane == 0) next[k] = -1 - args.count;
      continue;
    }
    bool is_first = true;
    for (int64_t begin = 0; begin < k && is_first; begin += 32) {
      const int64_t at = begin + lane;
      const bool same = at < k && RowOf(args, indices, at, first) == row;
      is_first = __any_sync(kWholeWarp, same) == 0;
    }
    int64_t found = args.count;
    for (int64_t begin = k + 1; begin < args.count && found == args.count; begin += 32) {
      const int64_t at = begin + lane;
      const bool same = at < args.count && RowOf(args, indices, at, first) == row;
      const unsigned lanes = __ballot_sync(kWholeWarp, same);
      if (lanes != 0) found = begin + __ffs(static_cast<int>(lanes)) - 1;
    }
    if (lane == 0) next[k] = is_first ? found : -1 - found;
  }
}

// A block for `blockDim.x` columns of the rows that begin at k = blockIdx.x, in a table of zeros.
template <typename S, typename R, typename I>
__device__ void AddChains(const GatherArgs& args, const I* indices, const S* updates,
                          const int64_t* next, R* table) {
  using T = Compute<S>;
  const int64_t first = PieceFirst(args.rows, args.indices.fault);
  for (int64_t i = blockIdx.x; i < args.outer * args.count; i += gridDim.x) {
    const int64_t begin = i % args.count, outer = i / args.count;
    const int64_t row = RowOf(args, indices, begin, first);
    if (row < 0 || next[begin] < 0) continue;
    const S* from = updates + outer * args.count * args.inner;
    R* to = table + (outer * args.size + row) * args.inner;
    for (int64_t column = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
         column < args.inner; column += static_cast<int64_t>(gridDim.y) * blockDim.x) {
      T sum = 0;
      for (int64_t k = begin; k < args.count;) {
        T update[kAhead];
#pragma unroll
        for (T& ahead : update) {
          ahead = T{};  // behind the last one
          if (k >= args.count) continue;
          ahead = Widen(from[k * args.inner + column]);
          const int64_t link = next[k];
          k = link < 0 ? -1 - link : link;
        }
#pragma unroll
        for (const T& ahead : update) sum += ahead;
      }
      if constexpr (std::is_same_v<R, T>) {
        to[column] = sum;
      } else {
        to[column] = Narrow<R>(sum);
      }
    }
  }
}

}  // namespace

#define ORIEL_EMBEDDING_KERNELS(I, index)                                                          \
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
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kThreads, oriel_scatter_link_##index, const GatherArgs args, const I* indices, \
                    int64_t* next) {                                                               \
    Link(args, indices, next);                                                                     \
  }
#define ORIEL_SCATTER_KERNEL(S, updates_type, R, type, I, index)                   \
  ORIEL_CUDA_KERNEL(kThreads, oriel_scatter_add_##updates_type##_##type##_##index, \
                    const GatherArgs args, const I* indices, const S* updates,     \
                    const int64_t* next, R* table) {                               \
    AddChains(args, indices, updates, next, table);                                \
  }
#define ORIEL_SCATTER_KERNELS(S, updates_type, R, type)        \
  ORIEL_SCATTER_KERNEL(S, updates_type, R, type, int64_t, i64) \
  ORIEL_SCATTER_KERNEL(S, updates_type, R, type, int32_t, i32)

ORIEL_EMBEDDING_KERNELS(int64_t, i64)
ORIEL_EMBEDDING_KERNELS(int32_t, i32)
ORIEL_SCATTER_KERNELS(float, f32, float, f32)
ORIEL_SCATTER_KERNELS(double, f64, double, f64)
ORIEL_SCATTER_KERNELS(__nv_bfloat16, bf16, __nv_bfloat16, bf16)
ORIEL_SCATTER_KERNELS(__nv_bfloat16, bf16, float, f32)

}  // namespace oriel::kernels::cuda
