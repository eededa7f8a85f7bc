// scatter_add; see embedding.h for operands.
//
// Deterministic: no atomic adds of floats. The updates of a row are added in T (f32 for bf16) in
// the order of their indices, and rounded once: as on the host, bit for bit.
//   1. rows    the row of each index, `size` for one that has none here
//   2. sort    indices by their rows, those of one row in order: a radix sort from the last digit
//              on, a launch for each; a block places kSorted indices, and counts the digits of all,
//              so that blocks need nothing of each other
//   3. the table is cleared (by the launch, before)
//   4. add     a block takes kTile sorted indices, and of their updates a strip of 128 bytes. It
//              adds up the rows whose first index is among these, to the last one: updates are
//              copied to shared memory, all at once, so that a row of many does not wait for each
// Bytes over the memory: the table is written once, rows with updates twice, and updates are read
// once. Of the cache, a launch of the sort reads count / kSorted times all rows.
#include "kernels/cuda/sums_before.cuh"
#include "kernels/embedding/indices.cuh"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

template <typename I>
__device__ void Rows(const GatherArgs& args, const I* indices, const SortedIndices& to) {
  const int64_t first = PieceFirst(args.rows, args.indices.fault);
  for (int64_t k = GlobalThread(); k < args.count; k += GlobalThreads()) {
    CheckIndex(args, indices, k);
    const int64_t row = RowOf(args, indices, k, first);
    to.rows[k] = row < 0 ? args.size : row;
    to.order[k] = static_cast<int32_t>(k);
  }
}

constexpr int kDigits = 1 << kSortBits, kSortWarps = kSortThreads / kWarpThreads;
static_assert(kDigits == kSortThreads, "each thread has a digit");

// The lanes that have this one's digit, of those that have one.
__device__ unsigned LanesOf(int digit, bool has) {
  unsigned lanes = __ballot_sync(kWholeWarp, has);
#pragma unroll
  for (int bit = 0; bit < kSortBits; ++bit) {
    const bool is_set = (digit >> bit & 1) != 0;
    const unsigned set = __ballot_sync(kWholeWarp, is_set);
    lanes &= is_set ? set : ~set;
  }
  return lanes;
}

// By the digit from bit `shift` on; what is equal stays in order. Each warp of the block places a
// part of the block's indices.
__device__ void Sort(int64_t count, int shift, const SortedIndices& from, const SortedIndices& to) {
  __shared__ unsigned counts[2][kDigits];           // before the block's indices, and from them on
  __shared__ unsigned places[kSortWarps][kDigits];  // first counts of each warp's
  const int64_t begin = int64_t{blockIdx.x} * kSorted;
  const auto digit_of = [=](int64_t row) { return static_cast<int>(row >> shift) & (kDigits - 1); };
  for (auto& of : counts) of[threadIdx.x] = 0;
  for (auto& of : places) of[threadIdx.x] = 0;
  __syncthreads();
  constexpr int kLoaded = 8;
  for (int64_t i = threadIdx.x; i < count; i += kLoaded * kSortThreads) {
    int64_t rows[kLoaded];
#pragma unroll
    for (int j = 0; j < kLoaded; ++j) {
      const int64_t at = i + j * kSortThreads;
      rows[j] = at < count ? from.rows[at] : 0;
    }
#pragma unroll
    for (int j = 0; j < kLoaded; ++j) {
      const int64_t at = i + j * kSortThreads;
      if (at < count) atomicAdd(&counts[at < begin ? 0 : 1][digit_of(rows[j])], 1u);
    }
  }
  __syncthreads();
  const unsigned before = counts[0][threadIdx.x];
  unsigned place = SumBefore<kSortThreads>(before + counts[1][threadIdx.x]) + before;

  constexpr int kEach = kSorted / kSortThreads;
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  const int64_t first = begin + warp * (kSorted / kSortWarps) + lane;
  int64_t rows[kEach];
  unsigned ranks[kEach];
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int64_t at = first + j * kWarpThreads;
    const bool has = at < count;
    rows[j] = has ? from.rows[at] : 0;
    unsigned& of_digit = places[warp][digit_of(rows[j])];
    const unsigned lanes = LanesOf(digit_of(rows[j]), has);
    const unsigned lanes_before = lanes & ((1u << lane) - 1);
    ranks[j] = of_digit + static_cast<unsigned>(__popc(lanes_before));
    __syncwarp();
    if (has && lanes_before == 0) of_digit += static_cast<unsigned>(__popc(lanes));
    __syncwarp();
  }
  __syncthreads();
  for (auto& of : places) {
    const unsigned of_warp = of[threadIdx.x];
    of[threadIdx.x] = place;
    place += of_warp;
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kEach; ++j) {
    const int64_t at = first + j * kWarpThreads;
    if (at >= count) continue;
    const unsigned to_place = places[warp][digit_of(rows[j])] + ranks[j];
    to.rows[to_place] = rows[j];
    to.order[to_place] = from.order[at];
  }
}

static_assert(kTile == kThreads, "each thread has an index");
constexpr int kTileWarps = kTile / kWarpThreads;

struct Tile {
  uint4 values[kTile * kStripBytes / 16];
  int64_t rows[kTile];
  int32_t order[kTile];
  unsigned firsts[kTileWarps];  // bits: the index is the first one of its row
};

// The first index of a row that is in a warp's part from `warp` on; or `none`.
__device__ int NextFirst(const Tile& tile, int warp, int none) {
  for (; warp < kTileWarps; ++warp) {
    const unsigned bits = tile.firsts[warp];
    if (bits != 0) return warp * kWarpThreads + __ffs(static_cast<int>(bits)) - 1;
  }
  return none;
}

// Loads `columns` columns of the updates [begin, end) of the tile; a barrier is to follow.
template <int kWidth, typename S>
__device__ void LoadUpdates(const S* updates, int64_t inner, int columns, int begin, int end,
                            Tile* tile) {
  using W = typename Word<kWidth * sizeof(S)>::Type;
  constexpr int kAcross = kStripBytes / sizeof(W), kStep = kThreads / kAcross;
  const int own = static_cast<int>(threadIdx.x), across = own % kAcross;
  const S* const from = updates + across * kWidth;
  W* const to = reinterpret_cast<W*>(tile->values) + across;
  if (across * kWidth >= columns) return;
  const auto update = [&](int i) {
    return reinterpret_cast<const W*>(from + tile->order[i] * inner);
  };
  int i = begin + own / kAcross;
  if constexpr (sizeof(W) == 16) {
#pragma unroll 4
    for (; i < end; i += kStep) CopyAsync16(to + i * kAcross, update(i));
    WaitForCopies();
  } else {
    constexpr int kLoaded = 4;  // at a time
    for (; i < end; i += kLoaded * kStep) {
      W words[kLoaded];
#pragma unroll
      for (int j = 0; j < kLoaded; ++j) words[j] = *update(min(i + j * kStep, end - 1));
#pragma unroll
      for (int j = 0; j < kLoaded; ++j) {
        if (i + j * kStep < end) to[(i + j * kStep) * kAcross] = words[j];
      }
    }
  }
}

// A lane's columns of a strip.
template <typename S>
constexpr int kStripColumns = kStripBytes / sizeof(S);
template <typename S>
constexpr int kEach = kStripColumns<S> < kWarpThreads ? 1 : kStripColumns<S> / kWarpThreads;

template <typename S>
__device__ void AddUp(const Tile& tile, int column, int begin, int end,
                      Compute<S> (&sum)[kEach<S>]) {
  const S* const values = reinterpret_cast<const S*>(tile.values) + column;
#pragma unroll 8
  for (int i = begin; i < end; ++i) {
    Compute<S> x[kEach<S>];
    LoadPack(values + i * kStripColumns<S>, x);
#pragma unroll
    for (int j = 0; j < kEach<S>; ++j) sum[j] += x[j];
  }
}

// `updates` and `table` begin at the strip, which has `columns` columns of theirs.
template <int kWidth, typename S, typename R>
__device__ void AddTile(const GatherArgs& args, const SortedIndices& sorted, int64_t begin,
                        int columns, const S* updates, R* table, Tile* tile) {
  const int own = static_cast<int>(threadIdx.x), warp = own / kWarpThreads;
  const int column = own % kWarpThreads * kEach<S>;
  const auto store = [&](int64_t row, const Compute<S>(&sum)[kEach<S>]) {
    R* const to = table + row * args.inner + column;
    if constexpr (kWidth % kEach<S> == 0) {
      if (column < columns) StorePack(to, sum);
    } else {
#pragma unroll
      for (int j = 0; j < kEach<S>; ++j) {
        if (column + j < columns) to[j] = Narrow<R>(sum[j]);
      }
    }
  };

  const int64_t at = begin + own;
  const int64_t row = at < args.count ? sorted.rows[at] : args.size;
  const bool has = row < args.size;  // as have those before
  const unsigned firsts = __ballot_sync(kWholeWarp, has && (at == 0 || sorted.rows[at - 1] != row));
  tile->rows[own] = row;
  tile->order[own] = has ? sorted.order[at] : 0;
  if (own % kWarpThreads == 0) tile->firsts[warp] = firsts;
  const int end = __syncthreads_count(has), first = NextFirst(*tile, 0, end);
  if (first == end) return;
  const int64_t last = tile->rows[end - 1];
  bool goes_on = end == kTile && begin + kTile < args.count && sorted.rows[begin + kTile] == last;
  LoadUpdates<kWidth>(updates, args.inner, columns, first, end, tile);
  __syncthreads();
  const int next = NextFirst(*tile, warp + 1, end);
  bool is_open = false;  // the sum goes on behind the tile
  Compute<S> sum[kEach<S>] = {};
  for (unsigned left = firsts; left != 0;) {
    const int from = warp * kWarpThreads + __ffs(static_cast<int>(left)) - 1;
    left &= left - 1;
    const int to = left != 0 ? warp * kWarpThreads + __ffs(static_cast<int>(left)) - 1 : next;
    for (auto& x : sum) x = 0;
    if (column < columns) AddUp<S>(*tile, column, from, to, sum);
    is_open = goes_on && to == end;
    if (!is_open) store(tile->rows[from], sum);
  }
  while (goes_on) {
    begin += kTile;
    const bool is_same = begin + own < args.count && sorted.rows[begin + own] == last;
    const int count = __syncthreads_count(is_same);  // and the last updates are added
    if (is_same) tile->order[own] = sorted.order[begin + own];
    __syncthreads();
    LoadUpdates<kWidth>(updates, args.inner, columns, 0, count, tile);
    __syncthreads();
    if (is_open && column < columns) AddUp<S>(*tile, column, 0, count, sum);
    goes_on = count == kTile;
  }
  if (is_open) store(last, sum);
}

// Along x are the strips of the first tile, then those of the next; along y and z what is outside.
template <typename S, typename R>
__device__ void Add(const GatherArgs& args, const SortedIndices& sorted, const S* updates,
                    R* table) {
  __shared__ Tile tile;
  constexpr int64_t kColumns = kStripColumns<S>;
  const int64_t outer = int64_t{blockIdx.z} * gridDim.y + blockIdx.y;
  if (outer >= args.outer) return;
  const unsigned strips = static_cast<unsigned>((args.inner + kColumns - 1) / kColumns);
  const int64_t column = blockIdx.x % strips * kColumns;
  const int64_t begin = int64_t{blockIdx.x / strips} * kTile;
  const int columns = static_cast<int>(min(args.inner - column, kColumns));
  updates += outer * args.count * args.inner + column;
  table += outer * args.size * args.inner + column;
  if (args.inner % kPackOf<S> == 0) {
    AddTile<kPackOf<S>>(args, sorted, begin, columns, updates, table, &tile);
  } else {
    AddTile<1>(args, sorted, begin, columns, updates, table, &tile);
  }
}

}  // namespace

#define ORIEL_SCATTER_ROWS(I, index)                                                               \
  ORIEL_CUDA_KERNEL(kThreads, oriel_scatter_rows_##index, const GatherArgs args, const I* indices, \
                    const SortedIndices to) {                                                      \
    Rows(args, indices, to);                                                                       \
  }
#define ORIEL_SCATTER_ADD(S, updates_type, R, type)                                             \
  ORIEL_CUDA_KERNEL(kThreads, oriel_scatter_add_##updates_type##_##type, const GatherArgs args, \
                    const SortedIndices sorted, const S* updates, R* table) {                   \
    Add(args, sorted, updates, table);                                                          \
  }

ORIEL_SCATTER_ROWS(int64_t, i64)
ORIEL_SCATTER_ROWS(int32_t, i32)
ORIEL_CUDA_KERNEL(kSortThreads, oriel_scatter_sort, int64_t count, int32_t shift,
                  const SortedIndices from, const SortedIndices to) {
  Sort(count, shift, from, to);
}
ORIEL_SCATTER_ADD(float, f32, float, f32)
ORIEL_SCATTER_ADD(double, f64, double, f64)
ORIEL_SCATTER_ADD(__nv_bfloat16, bf16, __nv_bfloat16, bf16)
ORIEL_SCATTER_ADD(__nv_bfloat16, bf16, float, f32)

}  // namespace oriel::kernels::cuda
