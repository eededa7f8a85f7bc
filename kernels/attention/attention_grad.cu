// The gradients of attention, see attention.h: oriel_attention_<..>_<type>_<depth>.
//
// Probabilities are computed anew from logsumexp. One kernel prepares what belongs to a query row;
// one sums the query's gradient over tiles of keys, a block for 32 rows; one sums those of key and
// value over the heads of their group and tiles of query rows, a block for 32 keys. Nothing is
// added by atomics, so the order of sums depends on shapes alone. It may spill: the widest of
// heads, some bytes of a thread.
//
// Bytes over the memory: as attention.cu's, three times: what a tile meets is read again for it.
#include "kernels/attention/attention.cuh"

namespace oriel::kernels::cuda {
namespace {

template <typename T>
__device__ T WarpMaximum(T x) {
  x = RowMaximum(x);
  const T other = __shfl_xor_sync(kWholeWarp, x, 16);
  return other > x ? other : x;
}
template <typename T>
__device__ T WarpTotal(T x) {
  x = RowTotal(x);
  return x + __shfl_xor_sync(kWholeWarp, x, 16);
}

// Above this, exp(score - logsumexp) would lose digits to the rounding of logsumexp: the row's
// maximum and sum are computed anew.
constexpr double kExactLogsumexp = 64;

// One warp for each row of [b, h, s].
template <typename S>
__device__ void Prepare(const AttentionLaunch& a, int64_t rows, const S* cotangent, const S* query,
                        const S* key, const S* output, const Compute<S>* logsumexp,
                        const void* mask, const void* sink, AttentionRow<Compute<S>>* prepared) {
  using T = Compute<S>;
  const int64_t index = GlobalThread() / 32;
  const int lane = threadIdx.x % 32;
  if (index >= rows) return;  // whole warps, and no barrier follows
  const int64_t row = index % a.queries, head = index / a.queries % a.heads;
  const int64_t sample = index / a.queries / a.heads;
  const int64_t out = sample * a.output.sample + head * a.output.head + row * a.output.row;
  T dot = T(0);
  for (int64_t x = lane; x < a.value_depth; x += 32) {
    dot += Widen(cotangent[out + x]) * Widen(output[out + x]);
  }
  dot = WarpTotal(dot);
  const T given = logsumexp[index];
  T shift = given, factor = T(1);
  if (given == Hidden<T>()) {
    shift = factor = T(0);  // it sees nothing
  } else if (!(Absolute(given) <= T(kExactLogsumexp))) {
    const S* q = query + sample * a.query.sample + head * a.query.head + row * a.query.row;
    const S* k = key + sample * a.key.sample + head / (a.heads / a.groups) * a.key.head;
    const int64_t mask_row = MaskRow(a, sample, head, row);
    int64_t begin, end;
    VisibleKeys(a, row, row, &begin, &end);
    const auto score = [&](int64_t at) {
      T product = T(0);
      for (int64_t x = 0; x < a.depth; ++x) product += Widen(q[x]) * Widen(k[at * a.key.row + x]);
      return Score(a, mask, mask_row, row, at, product);
    };
    const T sink_score = SinkAt<T>(a, sink, head);
    T highest = sink_score;
    for (int64_t at = begin + lane; at < end; at += 32) {
      const T s = score(at);
      highest = s > highest ? s : highest;
    }
    highest = WarpMaximum(highest);
    shift = highest == Hidden<T>() ? T(0) : highest;
    T sum = T(0);
    for (int64_t at = begin + lane; at < end; at += 32) sum += Exp(score(at) - shift);
    sum = WarpTotal(sum);
    if (sink_score != Hidden<T>()) sum += Exp(sink_score - shift);
    factor = sum == T(0) ? T(0) : T(1) / sum;
  }
  if (lane == 0) prepared[index] = {shift, factor, dot};
}

// The probability of a product of row and key, and the cotangent of the product but for the scale.
template <typename T>
__device__ void Probability(const AttentionLaunch& a, const void* mask, int64_t mask_row,
                            int64_t row, int64_t key, const AttentionRow<T>& prepared, T product,
                            T value_product, T* probability, T* slope) {
  T cap_slope = T(1);
  const T score = Score(a, mask, mask_row, row, key, product, &cap_slope);
  // Hidden from the row: whatever its numbers are.
  if (score == Hidden<T>()) {
    *probability = *slope = T(0);
    return;
  }
  const T p = Exp(score - prepared.shift) * prepared.factor;
  *probability = p;
  *slope = p * (value_product - prepared.dot) * cap_slope;
}

template <typename S, int kDepth>
__device__ void QueryGrad(const AttentionLaunch& a, const S* cotangent, const S* query,
                          const S* key, const S* value, const void* mask,
                          const AttentionRow<Compute<S>>* prepared, S* query_grad) {
  using T = Compute<S>;
  constexpr int kTile = kAttentionTile;
  constexpr int kColumns = AttentionColumns(kDepth, sizeof(T));
  constexpr int kKeys = kColumns / 16, kOut = kDepth / 16;
  const int depth = static_cast<int>(a.depth), value_depth = static_cast<int>(a.value_depth);
  ORIEL_DYNAMIC_SHARED(T, shared);
  T* const query_tile = shared;                                       // [depth][kTile]
  T* const cotangent_tile = query_tile + kDepth * PaddedTile(kTile);  // [value depth][kTile]
  T* const key_tile = cotangent_tile + kDepth * PaddedTile(kTile);    // [depth][kColumns]
  T* const value_tile = key_tile + kDepth * PaddedTile(kColumns);     // [value depth][kColumns]
  T* const slopes = value_tile + kDepth * PaddedTile(kColumns);       // [kColumns][kTile]
  const int64_t tiles = (a.queries + kTile - 1) / kTile;
  const int64_t head = blockIdx.x / tiles % a.heads, sample = blockIdx.x / tiles / a.heads;
  const int64_t first = (tiles - 1 - blockIdx.x % tiles) * kTile;
  const int64_t group = head / (a.heads / a.groups);
  query += sample * a.query.sample + head * a.query.head;
  query_grad += sample * a.query.sample + head * a.query.head;
  key += sample * a.key.sample + group * a.key.head;
  value += sample * a.value.sample + group * a.value.head;
  cotangent += sample * a.output.sample + head * a.output.head;
  prepared += (sample * a.heads + head) * a.queries;
  const int column = threadIdx.x % 16 * kKeys, row = threadIdx.x / 16 * 4;
  LoadTransposed<kTile>(query, a.query.row, first, a.queries, depth, query_tile);
  LoadTransposed<kTile>(cotangent, a.output.row, first, a.queries, value_depth, cotangent_tile);

  T sums[4][kOut] = {};
  int64_t begin, end;
  VisibleKeys(a, first, first + kTile - 1 < a.queries ? first + kTile - 1 : a.queries - 1, &begin,
              &end);
  for (int64_t at = begin; at < end; at += kColumns) {
    __syncthreads();
    LoadTransposed<kColumns>(key, a.key.row, at, end, depth, key_tile);
    LoadTransposed<kColumns>(value, a.value.row, at, end, value_depth, value_tile);
    __syncthreads();
    T product[4][kKeys], value_product[4][kKeys];
    TileProduct<kColumns>(query_tile, key_tile, depth, row, column, product);
    TileProduct<kColumns>(cotangent_tile, value_tile, value_depth, row, column, value_product);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t query_row = first + row + i;
      const AttentionRow<T> own =
          query_row < a.queries ? prepared[query_row] : AttentionRow<T>{T(0), T(0), T(0)};
      const int64_t mask_row = MaskRow(a, sample, head, query_row);
#pragma unroll
      for (int j = 0; j < kKeys; ++j) {
        T probability, slope;
        Probability(a, mask, mask_row, query_row, at + column + j, own, product[i][j],
                    value_product[i][j], &probability, &slope);
        slopes[(column + j) * PaddedTile(kTile) + row + i] = slope;
      }
    }
    __syncthreads();
    for (int k = 0; k < kColumns; ++k) {
      T slope[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) slope[i] = slopes[k * PaddedTile(kTile) + row + i];
#pragma unroll
      for (int x = 0; x < kOut; ++x) {
        const int from = threadIdx.x % 16 + 16 * x;
        // Beyond the last column anything is summed, and not stored.
        const T own = key_tile[(from < depth ? from : 0) * PaddedTile(kColumns) + k];
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[i][x] += slope[i] * own;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t query_row = first + row + i;
    if (query_row >= a.queries) continue;
#pragma unroll
    for (int x = 0; x < kOut; ++x) {
      const int to = threadIdx.x % 16 + 16 * x;
      if (to < depth) {
        query_grad[query_row * a.query.row + to] = Narrow<S>(sums[i][x] * T(a.scale));
      }
    }
  }
}

template <typename S, int kDepth>
__device__ void KeyGrad(const AttentionLaunch& a, const S* cotangent, const S* query, const S* key,
                        const S* value, const void* mask, const AttentionRow<Compute<S>>* prepared,
                        S* key_grad, S* value_grad) {
  using T = Compute<S>;
  constexpr int kTile = kAttentionTile;
  constexpr int kColumns = AttentionColumns(kDepth, sizeof(T));
  constexpr int kQueries = kColumns / 16, kOut = kDepth / 16;
  const int depth = static_cast<int>(a.depth), value_depth = static_cast<int>(a.value_depth);
  ORIEL_DYNAMIC_SHARED(T, shared);
  T* const key_tile = shared;                                            // [depth][kTile]
  T* const value_tile = key_tile + kDepth * PaddedTile(kTile);           // [value depth][kTile]
  T* const query_tile = value_tile + kDepth * PaddedTile(kTile);         // [depth][kColumns]
  T* const cotangent_tile = query_tile + kDepth * PaddedTile(kColumns);  // [value depth][kColumns]
  T* const probabilities = cotangent_tile + kDepth * PaddedTile(kColumns);  // [kColumns][kTile]
  T* const slopes = probabilities + kColumns * PaddedTile(kTile);           // [kColumns][kTile]
  const int64_t tiles = (a.keys + kTile - 1) / kTile;
  const int64_t group = blockIdx.x / tiles % a.groups, sample = blockIdx.x / tiles / a.groups;
  const int64_t first = blockIdx.x % tiles * kTile;
  const int64_t own_keys = sample * a.key.sample + group * a.key.head;
  const int64_t own_values = sample * a.value.sample + group * a.value.head;
  const int column = threadIdx.x % 16 * kQueries, row = threadIdx.x / 16 * 4;
  LoadTransposed<kTile>(key + own_keys, a.key.row, first, a.keys, depth, key_tile);
  LoadTransposed<kTile>(value + own_values, a.value.row, first, a.keys, value_depth, value_tile);

  T key_sums[4][kOut] = {}, value_sums[4][kOut] = {};
  int64_t begin, end;
  SeeingRows(a, first, first + kTile - 1 < a.keys ? first + kTile - 1 : a.keys - 1, &begin, &end);
  const int64_t heads = a.heads / a.groups;
  for (int64_t head = group * heads; head < (group + 1) * heads; ++head) {
    const S* const queries = query + sample * a.query.sample + head * a.query.head;
    const S* const cotangents = cotangent + sample * a.output.sample + head * a.output.head;
    const AttentionRow<T>* const rows = prepared + (sample * a.heads + head) * a.queries;
    for (int64_t at = begin; at < end; at += kColumns) {
      __syncthreads();
      LoadTransposed<kColumns>(queries, a.query.row, at, end, depth, query_tile);
      LoadTransposed<kColumns>(cotangents, a.output.row, at, end, value_depth, cotangent_tile);
      __syncthreads();
      T product[4][kQueries], value_product[4][kQueries];
      TileProduct<kColumns>(key_tile, query_tile, depth, row, column, product);
      TileProduct<kColumns>(value_tile, cotangent_tile, value_depth, row, column, value_product);
#pragma unroll
      for (int j = 0; j < kQueries; ++j) {
        const int64_t query_row = at + column + j;
        const AttentionRow<T> own =
            query_row < end ? rows[query_row] : AttentionRow<T>{T(0), T(0), T(0)};
        const int64_t mask_row = MaskRow(a, sample, head, query_row);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          T probability, slope;
          Probability(a, mask, mask_row, query_row, first + row + i, own, product[i][j],
                      value_product[i][j], &probability, &slope);
          const int to = (column + j) * PaddedTile(kTile) + row + i;
          probabilities[to] = query_row < end ? probability : T(0);
          slopes[to] = query_row < end ? slope : T(0);
        }
      }
      __syncthreads();
      for (int k = 0; k < kColumns; ++k) {
        T probability[4], slope[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          probability[i] = probabilities[k * PaddedTile(kTile) + row + i];
          slope[i] = slopes[k * PaddedTile(kTile) + row + i];
        }
#pragma unroll
        for (int x = 0; x < kOut; ++x) {
          const int from = threadIdx.x % 16 + 16 * x;
          // Beyond the last column anything is summed, and not stored.
          const T q = query_tile[(from < depth ? from : 0) * PaddedTile(kColumns) + k];
          const T dy = cotangent_tile[(from < value_depth ? from : 0) * PaddedTile(kColumns) + k];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            key_sums[i][x] += slope[i] * q;
            value_sums[i][x] += probability[i] * dy;
          }
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t key_row = first + row + i;
    if (key_row >= a.keys) continue;
#pragma unroll
    for (int x = 0; x < kOut; ++x) {
      const int to = threadIdx.x % 16 + 16 * x;
      if (to < depth) {
        key_grad[own_keys + key_row * a.key.row + to] = Narrow<S>(key_sums[i][x] * T(a.scale));
      }
      if (to < value_depth) {
        value_grad[own_values + key_row * a.value.row + to] = Narrow<S>(value_sums[i][x]);
      }
    }
  }
}

}  // namespace

#define ORIEL_ATTENTION_PREPARE(type, S)                                                     \
  ORIEL_CUDA_KERNEL(kPrepareThreads, oriel_attention_prepare_##type, AttentionLaunch launch, \
                    int64_t rows, const S* cotangent, const S* query, const S* key,          \
                    const S* output, const Compute<S>* logsumexp, const void* mask,          \
                    const void* sink, AttentionRow<Compute<S>>* prepared) {                  \
    Prepare(launch, rows, cotangent, query, key, output, logsumexp, mask, sink, prepared);   \
  }
#define ORIEL_ATTENTION_GRAD(type, S, depth)                                                       \
  ORIEL_CUDA_KERNEL(kAttentionThreads, oriel_attention_query_grad_##type##_##depth,                \
                    AttentionLaunch launch, const S* cotangent, const S* query, const S* key,      \
                    const S* value, const void* mask, const AttentionRow<Compute<S>>* prepared,    \
                    S* query_grad) {                                                               \
    QueryGrad<S, depth>(launch, cotangent, query, key, value, mask, prepared, query_grad);         \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kAttentionThreads, oriel_attention_key_grad_##type##_##depth,                  \
                    AttentionLaunch launch, const S* cotangent, const S* query, const S* key,      \
                    const S* value, const void* mask, const AttentionRow<Compute<S>>* prepared,    \
                    S* key_grad, S* value_grad) {                                                  \
    KeyGrad<S, depth>(launch, cotangent, query, key, value, mask, prepared, key_grad, value_grad); \
  }
ORIEL_ATTENTION_PREPARE(f32, float)
ORIEL_ATTENTION_PREPARE(bf16, __nv_bfloat16)
ORIEL_ATTENTION_PREPARE(f64, double)
ORIEL_ATTENTION_GRAD(f32, float, 64)
ORIEL_ATTENTION_GRAD(f32, float, 128)
ORIEL_ATTENTION_GRAD(f32, float, 256)
ORIEL_ATTENTION_GRAD(bf16, __nv_bfloat16, 64)
ORIEL_ATTENTION_GRAD(bf16, __nv_bfloat16, 128)
ORIEL_ATTENTION_GRAD(bf16, __nv_bfloat16, 256)
ORIEL_ATTENTION_GRAD(f64, double, 128)

}  // namespace oriel::kernels::cuda
