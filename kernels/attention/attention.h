// Scaled dot-product attention with grouped queries (ir/oriel/attention.td), and rope.
//
//   attention       query [b, h, s, d], key [b, g, t, d], value [b, g, t, e], mask?, sink?
//                   -> result [b, h, s, e], logsumexp [b, h, s]
//   attention_grad  cotangent [b, h, s, e], query, key, value, output, logsumexp, mask?, sink?
//                   -> the gradients of query, key and value
//   float scale, softcap = 0; int causal = 0, window = 0, sequence_first = 0. The mask has rank 4
//   and broadcasts to [b, h, s, t]; it is boolean (true: seen) or of the operands' type (added to
//   the scaled and capped scores). The sink [h], of the operands' type, is one more score of each
//   row, of a value that is 0; it has rank 1, which tells it from a mask. With sequence_first, the
//   second and third dimension of all operands and results but mask and logsumexp are exchanged:
//   query [b, s, h, d].
//
// Dense row-major, f32, f64 and bf16, which is widened to f32 a block at a time, with an f32
// logsumexp (and f32 mask and sink, if any); results are assigned. A block of query rows at a
// time is scored against all its keys in scratch memory, so no [s, t] matrix
// reaches the main memory. Row sums of the softmax are taken in double, products
// in the operands' type. The logsumexp of a row that sees nothing is -infinity, or
// the sink.
// The gradients of key and value are summed over the query heads of a group, and
// over blocks of rows, in ascending order.
//
//   rope            x [.., n], cos, sin (each dimension that of x, or 1; the last one
//                   rotary_dim, rotary_dim / 2 or 1) -> like x
//                   int inverse = 0, interleaved = 0, rotary_dim = n
#ifndef ORIEL_KERNELS_ATTENTION_ATTENTION_H_
#define ORIEL_KERNELS_ATTENTION_ATTENTION_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "absl/status/statusor.h"
#include "kernels/common/bfloat16.h"
#include "kernels/common/row_sums.h"
#include "kernels/common/simd.h"
#include "kernels/common/vector_math.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

struct AttentionShape {
  int64_t batch, heads, groups, queries, keys, depth, value_depth;
  double scale;
  double softcap;  // 0: none
  int64_t window;  // 0: none
  bool causal, sequence_first;
  enum class Mask { kNone, kBool, kFloat, kBFloat16 } mask = Mask::kNone;
  std::array<int64_t, 4> mask_strides{};  // 0 where it is broadcast
  // Of the optional operands, -1 for none.
  int mask_operand = -1, sink_operand = -1;
  bool narrow_sink = false;  // bf16

  // Of attention and attention_grad, whose operands and results are checked.
  static absl::StatusOr<AttentionShape> Make(const KernelSpec& spec);
  static absl::StatusOr<AttentionShape> MakeGrad(const KernelSpec& spec);

  int64_t heads_per_group() const { return heads / groups; }
  // Where the optional operands lie; null for none.
  const void* MaskOf(const KernelArgs& args) const { return Optional(args, mask_operand); }
  const void* SinkOf(const KernelArgs& args) const { return Optional(args, sink_operand); }
  // The sink of a head of a host's launch; -infinity without one.
  template <typename T>
  T SinkAt(const KernelArgs& args, int64_t head) const {
    const void* sink = SinkOf(args);
    if (sink == nullptr) return -std::numeric_limits<T>::infinity();
    if (narrow_sink) return static_cast<T>(static_cast<const BFloat16*>(sink)[head]);
    return static_cast<const T*>(sink)[head];
  }
  // How many keys query `row` may see by causality.
  int64_t Visible(int64_t row) const {
    if (!causal) return keys;
    const int64_t count = row + keys - queries + 1;
    return count < 0 ? 0 : (count > keys ? keys : count);
  }
  // The first key that query `row` may see by the window.
  int64_t FirstVisible(int64_t row) const {
    if (window == 0) return 0;
    return std::clamp<int64_t>(row + keys - queries - window + 1, 0, keys);
  }

  // The keys that `rows` query rows from `first` on may see, from a whole vector on.
  struct Keys {
    int64_t begin, end;
  };
  Keys KeysOf(int64_t first, int64_t rows, int64_t lanes) const {
    const int64_t end = Visible(first + rows - 1);
    return {std::min(FirstVisible(first), end) / lanes * lanes, end};
  }

  // A query, key, value or output of so many heads.
  Shape OperandShape(int64_t heads, int64_t rows, int64_t columns) const {
    if (sequence_first) return {batch, rows, heads, columns};
    return {batch, heads, rows, columns};
  }
  // Where the rows of one head of an operand of `heads` heads lie.
  struct Rows {
    int64_t offset, stride;
  };
  Rows HeadRows(int64_t batch, int64_t head, int64_t heads, int64_t rows, int64_t columns) const {
    if (sequence_first) return {(batch * rows * heads + head) * columns, heads * columns};
    return {(batch * heads + head) * rows * columns, columns};
  }
  Rows QueryRows(int64_t batch, int64_t head) const {
    return HeadRows(batch, head, heads, queries, depth);
  }
  Rows OutputRows(int64_t batch, int64_t head) const {
    return HeadRows(batch, head, heads, queries, value_depth);
  }
  Rows KeyRows(int64_t batch, int64_t group) const {
    return HeadRows(batch, group, groups, keys, depth);
  }
  Rows ValueRows(int64_t batch, int64_t group) const {
    return HeadRows(batch, group, groups, keys, value_depth);
  }

 private:
  // Operands from `first` on are query, key, value; those from `optional` on are mask and sink.
  static absl::StatusOr<AttentionShape> MakeFrom(const KernelSpec& spec, size_t first,
                                                 size_t optional);
  static const void* Optional(const KernelArgs& args, int operand) {
    return operand < 0 ? nullptr : args.operands[operand];
  }
  absl::Status TakeMask(const KernelSpec& spec, const TensorSpec& given, DType dtype);
};

// Query rows that are scored together.
inline constexpr int64_t kAttentionRows = 32;

// Columns of a scratch matrix, so that rows are whole vectors.
template <typename T>
int64_t PadColumns(int64_t columns) {
  constexpr int64_t kLanes = Simd<T>::kLanes;
  return (columns + kLanes - 1) / kLanes * kLanes;
}

// A dense matrix whose rows are whole vectors: `matrix`, whose rows are `stride` apart, if it is
// one of T, else a copy in `scratch`.
template <typename S, typename T>
const T* PadRows(const S* matrix, int64_t stride, int64_t rows, int64_t columns, T* scratch) {
  const int64_t padded = PadColumns<T>(columns);
  if constexpr (std::is_same_v<S, T>) {
    if (padded == stride) return matrix;
  }
  for (int64_t i = 0; i < rows; ++i) {
    T* to = scratch + i * padded;
    for (int64_t j = 0; j < columns; ++j) to[j] = matrix[i * stride + j];
    for (int64_t j = columns; j < padded; ++j) to[j] = T(0);
  }
  return scratch;
}

// A matrix whose rows are `stride` apart.
template <typename T>
struct Strided {
  const T* rows;
  int64_t stride;
};
// Rows of S as such of T: where they are, if they are that, else as a copy in `scratch`.
template <typename S, typename T>
Strided<T> AsRows(const S* matrix, int64_t stride, int64_t rows, int64_t columns, T* scratch) {
  if constexpr (std::is_same_v<S, T>) {
    return {matrix, stride};
  } else {
    return {PadRows(matrix, stride, rows, columns, scratch), PadColumns<T>(columns)};
  }
}

// x = scale x + mask
template <typename S, typename T>
void AddMask(const S* mask, int64_t step, T scale, int64_t count, T* x) {
  if (step == 1) {
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) x[j] = x[j] * scale + static_cast<T>(mask[j]);
  } else {
    const T added = static_cast<T>(mask[0]);
    for (int64_t j = 0; j < count; ++j) x[j] = x[j] * scale + added;
  }
}

// Replaces `count` products of one query row, from the key `begin` on, by scores: scale * product,
// capped to softcap * tanh(. / softcap), + mask. `slope`, if not null, becomes the derivative of
// the cap.
template <typename T>
void ScoreRow(const AttentionShape& shape, const void* mask, int64_t batch, int64_t head,
              int64_t row, int64_t begin, int64_t count, T* x, T* slope = nullptr) {
  T scale = static_cast<T>(shape.scale);
  const auto& strides = shape.mask_strides;
  const int64_t at = batch * strides[0] + head * strides[1] + row * strides[2] + begin * strides[3];
  const int64_t step = strides[3];
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  if (shape.softcap != 0) {
    const T in = static_cast<T>(shape.scale / shape.softcap), cap = static_cast<T>(shape.softcap);
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) x[j] = Tanh(x[j] * in);
    if (slope != nullptr) {
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) slope[j] = T(1) - x[j] * x[j];
    }
    scale = cap;
  }
  switch (shape.mask) {
    case AttentionShape::Mask::kNone:
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) x[j] *= scale;
      break;
    case AttentionShape::Mask::kBool: {
      const uint8_t* seen = static_cast<const uint8_t*>(mask) + at;
      if (step == 1) {
#pragma omp simd
        for (int64_t j = 0; j < count; ++j) x[j] = seen[j] ? x[j] * scale : kHidden;
      } else {
        for (int64_t j = 0; j < count; ++j) x[j] = seen[0] ? x[j] * scale : kHidden;
      }
      break;
    }
    case AttentionShape::Mask::kFloat:
      AddMask(static_cast<const T*>(mask) + at, step, scale, count, x);
      break;
    case AttentionShape::Mask::kBFloat16:
      AddMask(static_cast<const BFloat16*>(mask) + at, step, scale, count, x);
      break;
  }
}

// Takes `shift` off the scores [first, last) that the row sees, and hides the others up to
// `columns`: Exp() of the row then has zeros there. A shift of -infinity, of a row that sees
// nothing, is left off.
template <typename T>
void ShiftRow(T* x, int64_t first, int64_t last, int64_t columns, T shift) {
  constexpr T kHidden = -std::numeric_limits<T>::infinity();
  const T taken = shift == kHidden ? T(0) : shift;
  std::fill(x, x + first, kHidden);
#pragma omp simd
  for (int64_t j = first; j < last; ++j) x[j] -= taken;
  std::fill(x + last, x + columns, kHidden);
}

// What a sink adds to the sum of a row's exponentials, from which `shift` was taken off.
template <typename T>
double SinkShare(T sink, T shift) {
  return sink == -std::numeric_limits<T>::infinity() ? 0 : std::exp(double{sink} - double{shift});
}

// A whole block of rows at a time, because the loop has a long way to get going.
template <typename T>
void ExpBlock(T* x, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) x[i] = Exp(x[i]);
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_ATTENTION_ATTENTION_H_
