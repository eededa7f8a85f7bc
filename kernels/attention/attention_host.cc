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

template <typename S>
class AttentionLaunch {
 public:
  using T = Compute<S>;

  AttentionLaunch(const AttentionShape& shape, int num_threads)
      : shape_(shape),
        num_threads_(num_threads),
        key_columns_(PadColumns<T>(shape.keys)),
        value_columns_(PadColumns<T>(shape.value_depth)),
        scratch_size_((shape.depth + kAttentionRows) * key_columns_ +
                      (shape.keys + kAttentionRows) * value_columns_ +
                      kAttentionRows * PadColumns<T>(shape.depth)) {}

  void Run(const KernelArgs& args) {
    ParallelFor(num_threads_, shape_.batch * shape_.heads,
                shape_.queries * shape_.keys * ((shape_.depth + shape_.value_depth) / 8 + 8),
                [&](int64_t begin, int64_t end) {
                  T* scratch = static_cast<T*>(ThreadScratch(scratch_size_ * sizeof(T)));
                  for (int64_t i = begin; i < end; ++i) {
                    RunHead(args, i / shape_.heads, i % shape_.heads, scratch);
                  }
                });
  }

 private:
  void RunHead(const KernelArgs& args, int64_t batch, int64_t head, T* scratch) {
    const auto& s = shape_;
    const int64_t group = head / s.heads_per_group();
    const AttentionShape::Rows query_rows = s.QueryRows(batch, head);
    const AttentionShape::Rows key_rows = s.KeyRows(batch, group);
    const AttentionShape::Rows value_rows = s.ValueRows(batch, group);
    const AttentionShape::Rows result_rows = s.OutputRows(batch, head);
    const S* query = args.operand<S>(0) + query_rows.offset;
    const S* key = args.operand<S>(1) + key_rows.offset;
    const S* given_value = args.operand<S>(2) + value_rows.offset;
    const void* mask = s.MaskOf(args);
    const T sink = s.SinkAt<T>(args, head);
    S* result = args.result<S>(0) + result_rows.offset;
    T* logsumexp = args.result<T>(1) + (batch * s.heads + head) * s.queries;

    T* key_t = scratch;
    T* scores = key_t + s.depth * key_columns_;
    T* out = scores + kAttentionRows * key_columns_;
    T* value_copy = out + kAttentionRows * value_columns_;
    T* query_copy = value_copy + s.keys * value_columns_;
    TransposeTiles(key, key_rows.stride, key_t, key_columns_, s.depth, s.keys);
    for (int64_t p = 0; p < s.depth; ++p) {
      std::fill(key_t + p * key_columns_ + s.keys, key_t + (p + 1) * key_columns_, T(0));
    }
    const T* value = PadRows(given_value, value_rows.stride, s.keys, s.value_depth, value_copy);
    for (int64_t first = 0; first < s.queries; first += kAttentionRows) {
      const int64_t rows = std::min(kAttentionRows, s.queries - first);
      const auto [begin, end] = s.KeysOf(first, rows, Simd<T>::kLanes);
      const int64_t seen = end - begin;
      const int64_t columns = PadColumns<T>(seen);
      const Strided<T> x =
          AsRows(query + first * query_rows.stride, query_rows.stride, rows, s.depth, query_copy);
      SmallGemm<T, false>(rows, columns, s.depth, x.rows, x.stride, 1, key_t + begin, key_columns_,
                          scores, columns);
      double sums[kAttentionRows];
      double maxima[kAttentionRows];
      for (int64_t i = 0; i < rows; ++i) {
        T* score = scores + i * columns;
        const int64_t last = std::max(s.Visible(first + i) - begin, int64_t{0});
        const int64_t hidden = std::min(s.FirstVisible(first + i) - begin, last);
        ScoreRow(s, mask, batch, head, first + i, begin, last, score);
        const T max = RowMax<T>(score + hidden, last - hidden, sink);
        maxima[i] = static_cast<double>(max);
        ShiftRow(score, hidden, last, columns, max);
      }
      ExpBlock(scores, rows * columns);
      for (int64_t i = 0; i < rows; ++i) {
        const T* score = scores + i * columns;
        sums[i] = RowSum<T>(columns, [score](auto at) { return at(score); }) +
                  SinkShare(sink, static_cast<T>(maxima[i]));
      }
      // A row that sees nothing has the maximum -infinity and the sum 0; a NaN sum gives NaN.
#pragma omp simd
      for (int64_t i = 0; i < rows; ++i) {
        const double sum = sums[i];
        logsumexp[first + i] = static_cast<T>(maxima[i] + (sum > 0 ? LogOfSum(sum) : sum));
      }
      SmallGemm<T, false>(rows, value_columns_, seen, scores, columns, 1,
                          value + begin * value_columns_, value_columns_, out, value_columns_);
      for (int64_t i = 0; i < rows; ++i) {
        const T* from = out + i * value_columns_;
        S* to = result + (first + i) * result_rows.stride;
        // An empty row has sum 0 and products 0.
        const T scale = sums[i] == 0 ? T(0) : static_cast<T>(1 / sums[i]);
#pragma omp simd
        for (int64_t j = 0; j < s.value_depth; ++j) Assign(to + j, from[j] * scale);
      }
    }
  }

  const AttentionShape shape_;
  const int num_threads_;
  const int64_t key_columns_;
  const int64_t value_columns_;
  const int64_t scratch_size_;  // elements, for one thread
};

struct Attention {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const AttentionShape s, AttentionShape::Make(spec));
    auto launch = std::make_shared<AttentionLaunch<S>>(s, std::max(1, spec.num_threads));
    return KernelFn([launch](const KernelArgs& args) {
      launch->Run(args);
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeAttention(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 5, 2));  // what is dispatched by is there
  return DispatchStored<Attention>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("attention", 0, MakeAttention);

}  // namespace
}  // namespace oriel::kernels
