#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/embedding/embedding.h"

namespace oriel::kernels {
namespace {

template <typename I>
absl::Status CheckIndices(const char* kernel, const I* indices, const GatherShape& shape) {
  const int64_t rows = shape.rows.whole;
  for (int64_t i = 0; i < shape.count; ++i) {
    const int64_t index = indices[i];
    if (index < -rows || index >= rows) {
      return absl::InvalidArgumentError(absl::StrCat(kernel, ": index ", index, " at position ", i,
                                                     " is outside [", -rows, ", ", rows, ")"));
    }
  }
  return absl::OkStatus();
}

// The row of the table that index k names; -1 for a row of another piece.
template <typename I>
int64_t RowOf(const I* indices, int64_t k, const GatherShape& shape, int64_t first) {
  const int64_t index = indices[k];
  const int64_t own = (index < 0 ? index + shape.rows.whole : index) - first;
  if (own < 0 || own >= shape.batch_size) return -1;
  return own + k / shape.batch_count * shape.batch_size;
}

template <typename I>
absl::StatusOr<KernelFn> MakeGatherIndexed(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(
      const GatherShape shape,
      GatherShape::Make(spec, spec.operands[0], spec.operands[1], spec.results[0]));
  const int64_t row_bytes = shape.inner * runtime::DTypeBytes(spec.operands[0].dtype);
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    const char* table = args.operand<char>(0);
    const I* indices = args.operand<I>(1);
    char* result = args.result<char>(0);
    absl::Status status = CheckIndices("gather", indices, shape);
    if (!status.ok()) return status;
    ORIEL_ASSIGN_OR_RETURN(const int64_t first, shape.rows.First(args));
    ParallelFor(threads, shape.outer * shape.count, shape.inner, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = RowOf(indices, i % shape.count, shape, first);
        if (row >= 0) {
          std::memcpy(result + i * row_bytes,
                      table + (i / shape.count * shape.size + row) * row_bytes, row_bytes);
        } else {
          std::memset(result + i * row_bytes, 0, row_bytes);
        }
      }
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeGather(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  if (spec.operands[1].dtype == DType::kI64) return MakeGatherIndexed<int64_t>(spec);
  if (spec.operands[1].dtype == DType::kI32) return MakeGatherIndexed<int32_t>(spec);
  return Unsupported(spec, "takes indices of i64 and i32");
}

// Updates of S, a result of R.
template <typename S, typename R, typename I>
absl::StatusOr<KernelFn> MakeScatterAddTyped(const KernelSpec& spec) {
  const TensorSpec& result = spec.results[0];
  ORIEL_ASSIGN_OR_RETURN(const GatherShape shape,
                         GatherShape::Make(spec, {spec.operands[1].dtype, result.shape},
                                           spec.operands[0], spec.operands[1]));
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    using T = Compute<S>;
    const I* indices = args.operand<I>(0);
    const S* updates = args.operand<S>(1);
    R* table = args.result<R>(0);
    absl::Status status = CheckIndices("scatter_add", indices, shape);
    if (!status.ok()) return status;
    ORIEL_ASSIGN_OR_RETURN(const int64_t begin_row, shape.rows.First(args));
    // The updates of each row in order: the first, and the one that follows each.
    int64_t* first = static_cast<int64_t*>(
        ThreadScratch((shape.size + shape.count) * static_cast<int64_t>(sizeof(int64_t))));
    int64_t* next = first + shape.size;
    std::fill(first, next, shape.count);
    for (int64_t k = shape.count; k-- > 0;) {
      const int64_t row = RowOf(indices, k, shape, begin_row);
      if (row < 0) continue;
      next[k] = first[row];
      first[row] = k;
    }
    const int64_t each = 1 + shape.count / std::max<int64_t>(shape.size, 1);
    ParallelFor(threads, shape.outer * shape.size, each * shape.inner,
                [=](int64_t begin, int64_t end) {
                  constexpr int64_t kColumns = 256;
                  T sums[kColumns];
                  for (int64_t i = begin; i < end; ++i) {
                    const S* source = updates + i / shape.size * shape.count * shape.inner;
                    R* target = table + i * shape.inner;
                    for (int64_t column = 0; column < shape.inner; column += kColumns) {
                      const int64_t width = std::min(kColumns, shape.inner - column);
                      std::fill_n(sums, width, T(0));
                      for (int64_t k = first[i % shape.size]; k < shape.count; k = next[k]) {
                        const S* from = source + k * shape.inner + column;
#pragma omp simd
                        for (int64_t j = 0; j < width; ++j) sums[j] += from[j];
                      }
#pragma omp simd
                      for (int64_t j = 0; j < width; ++j) Assign(target + column + j, sums[j]);
                    }
                  }
                });
    return absl::OkStatus();
  });
}

template <typename S, typename R>
absl::StatusOr<KernelFn> MakeScatterAddOf(const KernelSpec& spec) {
  if (spec.operands[0].dtype == DType::kI64) return MakeScatterAddTyped<S, R, int64_t>(spec);
  if (spec.operands[0].dtype == DType::kI32) return MakeScatterAddTyped<S, R, int32_t>(spec);
  return Unsupported(spec, "takes indices of i64 and i32");
}

struct ScatterAdd {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    const DType updates = spec.operands[1].dtype, result = spec.results[0].dtype;
    if (result == updates) return MakeScatterAddOf<S, S>(spec);
    if (result == ComputeDType(updates)) return MakeScatterAddOf<S, Compute<S>>(spec);
    return Malformed(spec, "updates and result differ in type");
  }
};

absl::StatusOr<KernelFn> MakeScatterAdd(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  return DispatchStored<ScatterAdd>(spec, spec.operands[1].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("gather", 0, MakeGather);
ORIEL_REGISTER_HOST_KERNEL("scatter_add", 0, MakeScatterAdd);

}  // namespace
}  // namespace oriel::kernels
