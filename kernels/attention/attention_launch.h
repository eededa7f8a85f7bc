// What the device code of attention is launched with.
#ifndef ORIEL_KERNELS_ATTENTION_ATTENTION_LAUNCH_H_
#define ORIEL_KERNELS_ATTENTION_ATTENTION_LAUNCH_H_

#include <cstdint>

namespace oriel::kernels::cuda {

// A block has 8 by 16 threads. Each has 4 rows of its tile, and a few columns.
inline constexpr int kAttentionThreads = 128;
inline constexpr int kAttentionTile = 32;
// Threads of the preparing kernel, one warp for each row.
inline constexpr int kPrepareThreads = 256;

// Columns of a tile of scores, for heads of up to `depth` columns: fewer where the heads fill the
// shared memory.
constexpr int AttentionColumns(int depth, int element_bytes) {
  return depth * element_bytes <= 512 ? 64 : 32;
}
// The rows of a tile in shared memory are columns, this far apart: whole vectors, and few
// conflicts.
constexpr int PaddedTile(int size) { return size + 4; }

struct AttentionLaunch {
  int64_t heads, groups, queries, keys, depth, value_depth;
  double scale, softcap;  // no cap: 0
  int64_t window;         // none: 0
  bool causal;
  enum class Mask : int32_t { kNone, kBool, kComputed, kBFloat16 } mask;
  int64_t mask_strides[4];
  bool narrow_sink;  // bf16
  // Elements from one sample, head and row to the next.
  struct Strides {
    int64_t sample, head, row;
  };
  Strides query, key, value, output;
};

// Per row of [b, h, s], in scratch memory of the gradient: the probability of a score is
// exp(score - shift) * factor, and `dot` is the product of the output and its cotangent.
template <typename T>
struct AttentionRow {
  T shift, factor, dot;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_ATTENTION_ATTENTION_LAUNCH_H_
