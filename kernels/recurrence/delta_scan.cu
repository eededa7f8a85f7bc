// Delta-rule scans, see delta_scan.h: a block for each kColumns columns of a state, which stay in
// its shared memory from chunk to chunk, beside what the chunk writes.
//
// Products with keys are taken for kPassRows rows at a time, of which a thread has some in
// registers, for one column; keys are shared in tiles of kDepth terms. Sums are in the type that is
// computed in, in the order of the terms. Bytes over the memory: values, written, states and added
// once; keys once for all columns, where they stay in the cache.
#include "kernels/cuda/elements.cuh"
#include "kernels/recurrence/delta_scan_args.h"

namespace oriel::kernels::cuda {
namespace {

constexpr int kPassRows = 64, kDepth = 16;

// For each of `rows` rows of this thread's column: to(row, start(row) + Σ_i keys[row * row_step + i
// * depth_step] x[i][column]), over `depth` terms.
template <int kColumns, typename S, typename T, typename Start, typename To>
__device__ void Products(int rows, int depth, const S* keys, int row_step, int depth_step,
                         const T* x, T (*tile)[kPassRows], const Start& start, const To& to) {
  constexpr int kGroups = kDeltaScanThreads / kColumns, kRows = kPassRows / kGroups;
  constexpr int kOwn = kDepth * kPassRows / kDeltaScanThreads;
  const int thread = static_cast<int>(threadIdx.x);
  const int column = thread % kColumns, group = thread / kColumns;
  for (int row0 = 0; row0 < rows; row0 += kPassRows) {
    T sums[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = row0 + group * kRows + r;
      sums[r] = row < rows ? start(row, column) : T(0);
    }
    // Calls visit(n, term, row) for what this thread brings into a tile. Neighbours in memory are
    // neighbouring terms, or rows.
    const auto for_own = [&](const auto& visit) {
      const bool along = depth_step == 1;
#pragma unroll
      for (int n = 0; n < kOwn; ++n) {
        const int e = thread + n * kDeltaScanThreads;
        visit(n, along ? e % kDepth : e / kPassRows, along ? e / kDepth : e % kPassRows);
      }
    };
    S own[kOwn];  // of the next tile: it is on its way while this one is multiplied
    const auto fetch = [&](int i0) {
      for_own([&](int n, int i, int r) {
        const bool reads = row0 + r < rows && i0 + i < depth;
        own[n] = reads ? keys[(row0 + r) * row_step + (i0 + i) * depth_step] : Narrow<S>(T(0));
      });
    };
    fetch(0);
    for (int i0 = 0; i0 < depth; i0 += kDepth) {
      __syncthreads();
      for_own([&](int n, int i, int r) { tile[i][r] = Widen(own[n]); });
      __syncthreads();
      if (i0 + kDepth < depth) fetch(i0 + kDepth);
      const int terms = depth - i0 < kDepth ? depth - i0 : kDepth;
#pragma unroll 4
      for (int i = 0; i < terms; ++i) {
        const T factor = x[(i0 + i) * kColumns + column];
#pragma unroll
        for (int r = 0; r < kRows; ++r) sums[r] += tile[i][group * kRows + r] * factor;
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int row = row0 + group * kRows + r;
      if (row < rows) to(row, column, sums[r]);
    }
  }
  __syncthreads();
}

template <int kColumns, typename S>
__device__ void Scan(const DeltaScan& s, const S* values, const S* read_keys, const S* write_keys,
                     const Compute<S>* decays, const Compute<S>* initial, const S* added,
                     S* written, S* states, Compute<S>* last) {
  using T = Compute<S>;
  alignas(16) __shared__ T shared[kDeltaScanBytes / sizeof(T)];
  alignas(16) __shared__ T tile[kDepth][kPassRows];
  const int c = static_cast<int>(s.c), k = static_cast<int>(s.k);
  T* const state = shared;             // [k, kColumns]
  T* const x = shared + k * kColumns;  // [c, kColumns]
  const int64_t tiles = (s.v + kColumns - 1) / kColumns, of_state = s.k * s.v, of_keys = s.c * s.k;
  for (int64_t unit = blockIdx.x; unit < s.batch * tiles; unit += gridDim.x) {
    const int64_t batch = unit / tiles, first = unit % tiles * kColumns;
    const int columns = static_cast<int>(s.v - first < kColumns ? s.v - first : kColumns);
    const int elements = k * kColumns;
    for (int e = static_cast<int>(threadIdx.x); e < elements; e += kDeltaScanThreads) {
      const int row = e / kColumns, column = e % kColumns;
      state[e] = column < columns ? initial[batch * of_state + row * s.v + first + column] : T(0);
    }
    for (int64_t i = 0; i < s.chunks; ++i) {
      const int64_t chunk = batch * s.chunks + (s.reverse ? s.chunks - 1 - i : i);
      const int64_t at = chunk * s.c * s.v + first, at_state = chunk * of_state + first;
      __syncthreads();
      for (int e = static_cast<int>(threadIdx.x); e < elements; e += kDeltaScanThreads) {
        const int row = e / kColumns, column = e % kColumns;
        if (column < columns) states[at_state + row * s.v + column] = Narrow<S>(state[e]);
      }
      Products<kColumns>(
          c, k, read_keys + chunk * of_keys, k, 1, state, tile,
          [&](int row, int column) {
            return column < columns ? Widen(values[at + row * s.v + column]) : T(0);
          },
          [&](int row, int column, T value) {
            x[row * kColumns + column] = value;
            if (column < columns) written[at + row * s.v + column] = Narrow<S>(value);
          });
      const T* const factors = decays + chunk * (s.decays_rows ? s.k : 1);
      Products<kColumns>(
          k, c, write_keys + chunk * of_keys, 1, k, x, tile,
          [&](int row, int column) {
            return factors[s.decays_rows ? row : 0] * state[row * kColumns + column];
          },
          [&](int row, int column, T value) {
            if (s.adds && column < columns) value += Widen(added[at_state + row * s.v + column]);
            state[row * kColumns + column] = value;
          });
    }
    __syncthreads();
    for (int e = static_cast<int>(threadIdx.x); e < elements; e += kDeltaScanThreads) {
      const int row = e / kColumns, column = e % kColumns;
      if (column < columns) last[batch * of_state + row * s.v + first + column] = state[e];
    }
    __syncthreads();
  }
}

}  // namespace

#define ORIEL_DELTA_SCAN(columns, suffix, S)                                                 \
  ORIEL_CUDA_KERNEL(kDeltaScanThreads, oriel_delta_scan_##suffix, const DeltaScan s,         \
                    const S* values, const S* read_keys, const S* write_keys,                \
                    const Compute<S>* decays, const Compute<S>* initial, const S* added,     \
                    S* written, S* states, Compute<S>* last) {                               \
    Scan<columns>(s, values, read_keys, write_keys, decays, initial, added, written, states, \
                  last);                                                                     \
  }
ORIEL_DELTA_SCAN(kDeltaScanColumns, f32, float)
ORIEL_DELTA_SCAN(kDeltaScanColumns, bf16, __nv_bfloat16)
ORIEL_DELTA_SCAN(kDeltaScanFewColumns, few_f32, float)
ORIEL_DELTA_SCAN(kDeltaScanFewColumns, few_f64, double)
ORIEL_DELTA_SCAN(kDeltaScanFewColumns, few_bf16, __nv_bfloat16)
#undef ORIEL_DELTA_SCAN

}  // namespace oriel::kernels::cuda
