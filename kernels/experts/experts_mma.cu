// expert_linear and expert_linear_weight_grad of bf16 on tensor cores; see experts.h for operands
// and experts.cu for the table. Depth and columns are multiples of 8.
//
// A block computes 128 rows and columns, a warp 64 by 32 of them, in f32, summed over k in
// ascending steps of 16 and rounded once: the order does not depend on the grid. Both factors of a
// step of 32 are in shared memory twice, so that the next is copied while this one is multiplied.
// Rows of an expert are copied from where they are: nothing is packed. Bytes over the memory: as
// experts.cu, rows once for each 128 columns.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/experts/expert_rows.cuh"

namespace oriel::kernels::cuda {
namespace {

using S = __nv_bfloat16;
constexpr int kTile = kExpertMmaTile, kDepth = 32, kThreads = kExpertThreads;
constexpr int kPack = 8;  // elements that are copied at a time: 16 bytes
// Elements between lines in shared memory: eight of them are in different banks.
constexpr int kPitchAlongK = kDepth + kPack, kPitchAcross = kTile + kPack;
constexpr int kTileElements = kTile * kPitchAlongK;
static_assert(kTileElements >= kDepth * kPitchAcross, "either layout has room");

// What a block holds of a factor: kTile rows of kDepth elements, with lines along k, or kDepth
// lines of kTile elements.
template <bool kAlongK>
class Factor {
 public:
  static constexpr int kLines = kAlongK ? kTile : kDepth;
  static constexpr int kPitch = kAlongK ? kPitchAlongK : kPitchAcross;
  static constexpr int kPacks = (kAlongK ? kDepth : kTile) / kPack;  // of a line
  static constexpr int kCopies = kLines * kPacks / kThreads;         // of a thread

  // Rows from `first` on.
  __device__ Factor(const Lines<S>& lines, int32_t first) : lines_(lines), first_(first) {
    if constexpr (kAlongK) {
#pragma unroll
      for (int i = 0; i < kCopies; ++i) {
        const int32_t line = first + LineOf(i);
        from_[i] = line < lines.count ? lines.At(line) : nullptr;
      }
    }
  }

  // Starts to copy elements k from `begin` on; zeros outside.
  __device__ void Copy(int32_t begin, S* tile) const {
    const S* from[kCopies];  // of all first: the order's numbers are on their way together
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      if constexpr (kAlongK) {
        from[i] = from_[i];
      } else {
        const int32_t line = begin + LineOf(i);
        from[i] = line < lines_.count ? lines_.At(line) : nullptr;
      }
    }
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int line = LineOf(i), pack = Copied(i) % kPacks * kPack;
      const int32_t at = (kAlongK ? begin : first_) + pack;
      S* const to = tile + line * kPitch + pack;
      if (from[i] != nullptr && at < lines_.width) {
        CopyAsync16(to, from[i] + at);
      } else {
        *reinterpret_cast<uint4*>(to) = uint4{};
      }
    }
  }

 private:
  __device__ static int Copied(int i) { return i * kThreads + static_cast<int>(threadIdx.x); }
  __device__ static int LineOf(int i) { return Copied(i) / kPacks; }

  const Lines<S>& lines_;
  const int32_t first_;
  const S* from_[kCopies];
};

// Elements of rows from `row` on, 16 by 16 from k on: as MultiplyAdd takes its first operand.
template <bool kAlongK>
__device__ void LoadRows(const S* tile, int row, int k, uint32_t (&to)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  if constexpr (kAlongK) {
    LoadMatrices(tile + (row + lane % 16) * kPitchAlongK + k + lane / 16 * 8, to);
  } else {
    LoadMatricesTransposed(
        tile + (k + lane % 8 + lane / 16 * 8) * kPitchAcross + row + lane / 8 % 2 * 8, to);
  }
}

// The same of 16 columns: two of its second operand, one behind the other.
template <bool kAlongK>
__device__ void LoadColumns(const S* tile, int column, int k, uint32_t (&to)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  if constexpr (kAlongK) {
    LoadMatrices(tile + (column + lane % 8 + lane / 16 * 8) * kPitchAlongK + k + lane / 8 % 2 * 8,
                 to);
  } else {
    LoadMatricesTransposed(tile + (k + lane % 16) * kPitchAcross + column + lane / 16 * 8, to);
  }
}

// Two neighbours of a row of the result.
__device__ void Store(float x, float y, bool /*accumulates*/, S* to) {
  *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(x, y);
}
__device__ void Store(float x, float y, bool accumulates, float* to) {
  float2* const pair = reinterpret_cast<float2*>(to);
  if (accumulates) {
    x += pair->x;
    y += pair->y;
  }
  *pair = {x, y};
}

// The tile from (first_row, first_column) on; `line(row)` is where a row of the result begins.
template <bool kAAlongK, bool kBAlongK, typename R, typename Line>
__device__ void Multiply(const ExpertProduct<S>& product, int32_t first_row, int32_t first_column,
                         bool accumulates, const Line& line) {
  __shared__ __align__(16) S left[2][kTileElements], right[2][kTileElements];
  const Factor<kAAlongK> a(product.a, first_row);
  const Factor<kBAlongK> b(product.b, first_column);
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const int warp_row = warp / 4 * 64, warp_column = warp % 4 * 32;
  float sums[4][4][4] = {};
  if (product.k > 0) {
    a.Copy(0, left[0]);
    b.Copy(0, right[0]);
  }
  int stage = 0;
  for (int32_t begin = 0; begin < product.k; begin += kDepth, stage ^= 1) {
    WaitForCopies();
    __syncthreads();  // all that was copied is there, and the other stage has been read
    if (begin + kDepth < product.k) {
      a.Copy(begin + kDepth, left[stage ^ 1]);
      b.Copy(begin + kDepth, right[stage ^ 1]);
    }
#pragma unroll
    for (int k = 0; k < kDepth; k += 16) {
      uint32_t rows[4][4], columns[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) LoadRows<kAAlongK>(left[stage], warp_row + 16 * i, k, rows[i]);
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        LoadColumns<kBAlongK>(right[stage], warp_column + 16 * j, k, columns[j]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) MultiplyAdd(rows[i], columns[j / 2] + j % 2 * 2, sums[i][j]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int32_t row = first_row + warp_row + 8 * i + lane / 4;
    if (row >= product.m) continue;
    R* const to = line(row);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32_t column = first_column + warp_column + 8 * j + lane % 4 * 2;
      const float(&of)[4] = sums[i / 2][j];
      if (column < product.n) Store(of[i % 2 * 2], of[i % 2 * 2 + 1], accumulates, to + column);
    }
  }
}

template <bool kTransposed>
__device__ void LinearTile(const ExpertArgs& args, const ExpertTable& table, const S* input,
                           const S* weight, S* result) {
  const RowTile tile = table.tiles[blockIdx.x];
  if (tile.expert < 0) return;
  const ExpertProduct<S> product = RowsTimesWeight(args, table, tile, kTile, input, weight);
  const int32_t* const order = table.order + tile.first;
  Multiply<true, kTransposed, S>(
      product, 0, static_cast<int32_t>(blockIdx.y) * kTile, /*accumulates=*/false,
      [=](int32_t row) { return result + int64_t{order[row]} * args.columns; });
}

template <typename R>
__device__ void WeightGradTile(const ExpertArgs& args, const ExpertTable& table, const S* input,
                               const S* cotangent, R* result) {
  const int32_t expert = static_cast<int32_t>(blockIdx.z);
  const ExpertProduct<S> product = RowsTimesRows(args, table, expert, input, cotangent);
  if (args.accumulates && product.k == 0) return;
  R* const matrix = result + int64_t{expert} * args.depth * args.columns;
  Multiply<false, false, R>(product, static_cast<int32_t>(blockIdx.x) * kTile,
                            static_cast<int32_t>(blockIdx.y) * kTile, args.accumulates,
                            [=](int32_t row) { return matrix + int64_t{row} * product.n; });
}

}  // namespace

ORIEL_CUDA_KERNEL(kThreads, oriel_expert_linear_mma, ExpertArgs args, ExpertTable table,
                  const S* input, const S* weight, S* result) {
  LinearTile<false>(args, table, input, weight, result);
}
ORIEL_CUDA_KERNEL(kThreads, oriel_expert_linear_transposed_mma, ExpertArgs args, ExpertTable table,
                  const S* input, const S* weight, S* result) {
  LinearTile<true>(args, table, input, weight, result);
}
ORIEL_CUDA_KERNEL(kThreads, oriel_expert_weight_grad_mma_bf16, ExpertArgs args, ExpertTable table,
                  const S* input, const S* cotangent, S* result) {
  WeightGradTile(args, table, input, cotangent, result);
}
ORIEL_CUDA_KERNEL(kThreads, oriel_expert_weight_grad_mma_f32, ExpertArgs args, ExpertTable table,
                  const S* input, const S* cotangent, float* result) {
  WeightGradTile(args, table, input, cotangent, result);
}

}  // namespace oriel::kernels::cuda
