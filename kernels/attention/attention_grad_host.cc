#include <algorithm>
#include <memory>

#include "kernels/attention/attention.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/common/transpose.h"
#include "kernels/linear/small_gemm.h"

namespace oriel::kernels {
namespace {

// Above this, exp(score - logsumexp) would lose digits to the rounding of logsumexp.
constexpr double kExactLogsumexp = 64;

template <typename S>
class AttentionGradLaunch {
 public:
  using T = Compute<S>;

  AttentionGradLaunch(const AttentionShape& shape, int num_threads)
      : shape_(shape),
        num_threads_(num_threads),
        key_columns_(PadColumns<T>(shape.keys)),
        depth_(PadColumns<T>(shape.depth)),
        value_depth_(PadColumns<T>(shape.value_depth)),
        scratch_size_((shape.depth + shape.value_depth + 3 * kAttentionRows) * key_columns_ +
                      2 * shape.keys * depth_ + shape.keys * value_depth_ +
                      kAttentionRows * (2 * depth_ + 2 * value_depth_)) {}

  void Run(const KernelArgs& args) {
    ParallelFor(num_threads_, shape_.batch * shape_.groups,
                shape_.heads_per_group() * shape_.queries * shape_.keys *
                    ((shape_.depth + shape_.value_depth) / 4 + 8),
                [&](int64_t begin, int64_t end) {
                  T* scratch = static_cast<T*>(ThreadScratch(scratch_size_ * sizeof(T)));
                  for (int64_t i = begin; i < end; ++i) {
                    RunGroup(args, i / shape_.groups, i % shape_.groups, scratch);
                  }
                });
  }

 private:
  // What one key head needs, in scratch memory.
  struct Group {
    const void* mask;
    T* key_t;             // [depth, key_columns_]
    T* value_t;           // [value depth, key_columns_]
    T* probabilities;     // [rows, key_columns_]
    T* slopes;            // [rows, key_columns_]: cotangents of the scores
    T* cap_slopes;        // [rows, key_columns_]: derivatives of the cap
    T* key_grad;          // [keys, depth_]
    T* value_grad;        // [keys, value_depth_]
    T* query_grad;        // [rows, depth_]
    T* padded_query;      // [rows, depth_]
    T* padded_cotangent;  // [rows, value_depth_]
    T* padded_output;     // [rows, value_depth_]
    const T* key;         // [keys, depth_]
  };

  void RunGroup(const KernelArgs& args, int64_t batch, int64_t group, T* scratch) {
    const auto& s = shape_;
    const AttentionShape::Rows key_rows = s.KeyRows(batch, group);
    const AttentionShape::Rows value_rows = s.ValueRows(batch, group);
    const S* key = args.operand<S>(2) + key_rows.offset;
    const S* value = args.operand<S>(3) + value_rows.offset;
    Group g;
    g.mask = s.MaskOf(args);
    const auto take = [&scratch](int64_t count) {
      T* place = scratch;
      scratch += count;
      return place;
    };
    g.key_t = take(s.depth * key_columns_);
    g.value_t = take(s.value_depth * key_columns_);
    g.probabilities = take(kAttentionRows * key_columns_);
    g.slopes = take(kAttentionRows * key_columns_);
    g.cap_slopes = take(kAttentionRows * key_columns_);
    g.key_grad = take(s.keys * depth_);
    g.key = PadRows(key, key_rows.stride, s.keys, s.depth, take(s.keys * depth_));
    g.value_grad = take(s.keys * value_depth_);
    g.query_grad = take(kAttentionRows * depth_);
    g.padded_query = take(kAttentionRows * depth_);
    g.padded_cotangent = take(kAttentionRows * value_depth_);
    g.padded_output = take(kAttentionRows * value_depth_);
    TransposePadded(key, key_rows.stride, s.depth, g.key_t);
    TransposePadded(value, value_rows.stride, s.value_depth, g.value_t);
    std::fill(g.key_grad, g.key_grad + s.keys * depth_, T(0));
    std::fill(g.value_grad, g.value_grad + s.keys * value_depth_, T(0));
    for (int64_t i = 0; i < s.heads_per_group(); ++i) {
      RunHead(args, batch, group * s.heads_per_group() + i, g);
    }
    WriteRows(g.key_grad, depth_, s.keys, s.depth, static_cast<T>(s.scale),
              args.result<S>(1) + key_rows.offset, key_rows.stride);
    WriteRows(g.value_grad, value_depth_, s.keys, s.value_depth, T(1),
              args.result<S>(2) + value_rows.offset, value_rows.stride);
  }

  void RunHead(const KernelArgs& args, int64_t batch, int64_t head, const Group& g) {
    const auto& s = shape_;
    const AttentionShape::Rows query_rows = s.QueryRows(batch, head);
    const AttentionShape::Rows output_rows = s.OutputRows(batch, head);
    const S* cotangent = args.operand<S>(0) + output_rows.offset;
    const S* query = args.operand<S>(1) + query_rows.offset;
    const S* output = args.operand<S>(4) + output_rows.offset;
    const T* logsumexp = args.operand<T>(5) + (batch * s.heads + head) * s.queries;
    const T sink = s.SinkAt<T>(args, head);
    S* query_grad = args.result<S>(0) + query_rows.offset;
    for (int64_t first = 0; first < s.queries; first += kAttentionRows) {
      const int64_t rows = std::min(kAttentionRows, s.queries - first);
      const auto [begin, end] = s.KeysOf(first, rows, Simd<T>::kLanes);
      const int64_t seen = end - begin;
      const int64_t columns = PadColumns<T>(seen);
      const int64_t out = first * output_rows.stride;
      const Strided<T> dy =
          AsRows(cotangent + out, output_rows.stride, rows, s.value_depth, g.padded_cotangent);
      const Strided<T> y =
          AsRows(output + out, output_rows.stride, rows, s.value_depth, g.padded_output);
      const Strided<T> x = AsRows(query + first * query_rows.stride, query_rows.stride, rows,
                                  s.depth, g.padded_query);
      SmallGemm<T, false>(rows, columns, s.depth, x.rows, x.stride, 1, g.key_t + begin,
                          key_columns_, g.probabilities, columns);
      SmallGemm<T, false>(rows, columns, s.value_depth, dy.rows, dy.stride, 1, g.value_t + begin,
                          key_columns_, g.slopes, columns);
      bool normal[kAttentionRows];
      T shifts[kAttentionRows];
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t row = first + i;
        T* p = g.probabilities + i * columns;
        const int64_t last = std::max(s.Visible(row) - begin, int64_t{0});
        const int64_t hidden = std::min(s.FirstVisible(row) - begin, last);
        ScoreRow(s, g.mask, batch, head, row, begin, last, p, g.cap_slopes + i * columns);
        normal[i] = std::fabs(static_cast<double>(logsumexp[row])) <= kExactLogsumexp;
        shifts[i] = normal[i] ? logsumexp[row] : RowMax<T>(p + hidden, last - hidden, sink);
        ShiftRow(p, hidden, last, columns, shifts[i]);
      }
      ExpBlock(g.probabilities, rows * columns);
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t row = first + i;
        T* p = g.probabilities + i * columns;
        T* slope = g.slopes + i * columns;
        if (!normal[i]) Normalize(p, columns, SinkShare(sink, shifts[i]));
        const T* dyi = dy.rows + i * dy.stride;
        const T* yi = y.rows + i * y.stride;
        const T dot =
            static_cast<T>(RowSum<T>(s.value_depth, [=](auto at) { return at(dyi) * at(yi); }));
#pragma omp simd
        for (int64_t j = 0; j < columns; ++j) slope[j] = p[j] * (slope[j] - dot);
        if (s.softcap != 0) {
          const T* cap_slope = g.cap_slopes + i * columns;
          // What is hidden has no slope yet, and no cotangent.
          const int64_t last = std::max(s.Visible(row) - begin, int64_t{0});
#pragma omp simd
          for (int64_t j = 0; j < last; ++j) slope[j] *= cap_slope[j];
        }
      }
      SmallGemm<T, false>(rows, depth_, seen, g.slopes, columns, 1, g.key + begin * depth_, depth_,
                          g.query_grad, depth_);
      WriteRows(g.query_grad, depth_, rows, s.depth, static_cast<T>(s.scale),
                query_grad + first * query_rows.stride, query_rows.stride);
      SmallGemm<T, true>(seen, value_depth_, rows, g.probabilities, 1, columns,
                         PadRows(dy.rows, dy.stride, rows, s.value_depth, g.padded_cotangent),
                         value_depth_, g.value_grad + begin * value_depth_, value_depth_);
      SmallGemm<T, true>(seen, depth_, rows, g.slopes, 1, columns,
                         PadRows(x.rows, x.stride, rows, s.depth, g.padded_query), depth_,
                         g.key_grad + begin * depth_, depth_);
    }
  }

  // Divides a row of exponentials by their sum and what a sink adds to it.
  static void Normalize(T* p, int64_t columns, double share) {
    const double sum = RowSum<T>(columns, [p](auto at) { return at(p); }) + share;
    const T scale = sum == 0 ? T(0) : static_cast<T>(1 / sum);
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) p[j] *= scale;
  }

  void TransposePadded(const S* matrix, int64_t stride, int64_t depth, T* target) const {
    TransposeTiles(matrix, stride, target, key_columns_, depth, shape_.keys);
    for (int64_t p = 0; p < depth; ++p) {
      std::fill(target + p * key_columns_ + shape_.keys, target + (p + 1) * key_columns_, T(0));
    }
  }

  static void WriteRows(const T* from, int64_t from_stride, int64_t rows, int64_t columns, T scale,
                        S* to, int64_t to_stride) {
    for (int64_t i = 0; i < rows; ++i) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) {
        Assign(to + i * to_stride + j, from[i * from_stride + j] * scale);
      }
    }
  }

  const AttentionShape shape_;
  const int num_threads_;
  const int64_t key_columns_;
  const int64_t depth_;
  const int64_t value_depth_;
  const int64_t scratch_size_;  // elements, for one thread
};

struct AttentionGrad {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const AttentionShape s, AttentionShape::MakeGrad(spec));
    auto launch = std::make_shared<AttentionGradLaunch<S>>(s, std::max(1, spec.num_threads));
    return KernelFn([launch](const KernelArgs& args) {
      launch->Run(args);
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeAttentionGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 6, 8, 3));  // what is dispatched by is there
  return DispatchStored<AttentionGrad>(spec, spec.operands[1].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("attention_grad", 0, MakeAttentionGrad);

}  // namespace
}  // namespace oriel::kernels
