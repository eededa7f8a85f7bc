// Scaled dot-product attention, see attention.h: oriel_attention_<type>_<depth>, for heads of up to
// `depth` columns.
//
// A block takes 32 query rows of a head and goes over the keys that they see, a tile at a time: it
// keeps each row's maximum, the sum of exponentials below it and the weighted sum of values, and
// scales the latter two when the maximum grows (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao et al., "FlashAttention", 2022). Scores stay in shared
// memory. All is computed in f32, or f64; the order of sums depends on shapes alone. It may spill:
// the widest of heads, some bytes of a thread.
//
// Bytes over the memory: reads query and mask once, keys and values of a head once for each of its
// tiles of query rows (from the L2 cache, but for long sequences); writes output and logsumexp.
#include "kernels/attention/attention.cuh"

namespace oriel::kernels::cuda {
namespace {

template <typename S, int kDepth>
__device__ void Forward(const AttentionLaunch& a, const S* query, const S* key, const S* value,
                        const void* mask, const void* sink, S* output, Compute<S>* logsumexp) {
  using T = Compute<S>;
  constexpr int kTile = kAttentionTile;
  constexpr int kColumns = AttentionColumns(kDepth, sizeof(T));
  constexpr int kKeys = kColumns / 16;  // of a thread
  constexpr int kValues = kDepth / 16;  // columns of the output, of a thread
  const int depth = static_cast<int>(a.depth), value_depth = static_cast<int>(a.value_depth);
  ORIEL_DYNAMIC_SHARED(T, shared);
  T* const query_tile = shared;                               // [depth][kTile]
  T* const scores = query_tile + kDepth * PaddedTile(kTile);  // [kColumns][kTile]
  T* const tile = scores + kColumns * PaddedTile(kTile);      // keys, then values
  const int64_t tiles = (a.queries + kTile - 1) / kTile;
  const int64_t head = blockIdx.x / tiles % a.heads, sample = blockIdx.x / tiles / a.heads;
  // The last rows see the most by causality: they come first.
  const int64_t first = (tiles - 1 - blockIdx.x % tiles) * kTile;
  const int64_t group = head / (a.heads / a.groups);
  query += sample * a.query.sample + head * a.query.head;
  key += sample * a.key.sample + group * a.key.head;
  value += sample * a.value.sample + group * a.value.head;
  output += sample * a.output.sample + head * a.output.head;
  const int column = threadIdx.x % 16 * kKeys, row = threadIdx.x / 16 * 4;
  LoadTransposed<kTile>(query, a.query.row, first, a.queries, depth, query_tile);

  T maximum[4], sum[4], weighted[4][kValues] = {};
  const T sink_score = SinkAt<T>(a, sink, head);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    maximum[i] = sink_score;
    sum[i] = sink_score == Hidden<T>() ? T(0) : T(1);
  }
  int64_t begin, end;
  VisibleKeys(a, first, first + kTile - 1 < a.queries ? first + kTile - 1 : a.queries - 1, &begin,
              &end);
  for (int64_t at = begin; at < end; at += kColumns) {
    __syncthreads();  // the tile before is done with
    LoadTransposed<kColumns>(key, a.key.row, at, end, depth, tile);
    __syncthreads();
    T score[4][kKeys];
    TileProduct<kColumns>(query_tile, tile, depth, row, column, score);
    __syncthreads();  // the keys are done with
    for (int i = threadIdx.x; i < kColumns * kDepth; i += kAttentionThreads) {
      const int k = i / kDepth, x = i % kDepth;
      tile[i] =
          at + k < end && x < value_depth ? T(Widen(value[(at + k) * a.value.row + x])) : T(0);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t query_row = first + row + i;
      const int64_t mask_row = MaskRow(a, sample, head, query_row);
      T highest = maximum[i];
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        score[i][j] = Score(a, mask, mask_row, query_row, at + column + j, score[i][j]);
        highest = score[i][j] > highest ? score[i][j] : highest;
      }
      highest = RowMaximum(highest);
      // A row that has seen nothing yet keeps zeros.
      const T shift = highest == Hidden<T>() ? T(0) : highest;
      const T shrinks = Exp(maximum[i] - shift);
      maximum[i] = highest;
      T part = T(0);
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        const T p = Exp(score[i][j] - shift);
        part += p;
        scores[(column + j) * PaddedTile(kTile) + row + i] = p;
      }
      sum[i] = sum[i] * shrinks + RowTotal(part);
#pragma unroll
      for (int x = 0; x < kValues; ++x) weighted[i][x] *= shrinks;
    }
    __syncthreads();
    for (int k = 0; k < kColumns; ++k) {
      T p[4], v[kValues];
#pragma unroll
      for (int i = 0; i < 4; ++i) p[i] = scores[k * PaddedTile(kTile) + row + i];
#pragma unroll
      for (int x = 0; x < kValues; ++x) v[x] = tile[k * kDepth + threadIdx.x % 16 + 16 * x];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int x = 0; x < kValues; ++x) weighted[i][x] += p[i] * v[x];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t query_row = first + row + i;
    if (query_row >= a.queries) continue;
    // A row that sees nothing has the sum 0, and zeros; a NaN stays.
    const T scale = sum[i] == T(0) ? T(0) : T(1) / sum[i];
#pragma unroll
    for (int x = 0; x < kValues; ++x) {
      const int to = threadIdx.x % 16 + 16 * x;
      if (to < value_depth) {
        output[query_row * a.output.row + to] = Narrow<S>(weighted[i][x] * scale);
      }
    }
    if (threadIdx.x % 16 == 0) {
      logsumexp[(sample * a.heads + head) * a.queries + query_row] =
          maximum[i] + (sum[i] > T(0) ? Log(sum[i]) : sum[i]);
    }
  }
}

}  // namespace

#define ORIEL_ATTENTION(type, S, depth)                                                          \
  ORIEL_CUDA_KERNEL(kAttentionThreads, oriel_attention_##type##_##depth, AttentionLaunch launch, \
                    const S* query, const S* key, const S* value, const void* mask,              \
                    const void* sink, S* output, Compute<S>* logsumexp) {                        \
    Forward<S, depth>(launch, query, key, value, mask, sink, output, logsumexp);                 \
  }
ORIEL_ATTENTION(f32, float, 64)
ORIEL_ATTENTION(f32, float, 128)
ORIEL_ATTENTION(f32, float, 256)
ORIEL_ATTENTION(bf16, __nv_bfloat16, 64)
ORIEL_ATTENTION(bf16, __nv_bfloat16, 128)
ORIEL_ATTENTION(bf16, __nv_bfloat16, 256)
ORIEL_ATTENTION(f64, double, 128)

}  // namespace oriel::kernels::cuda
