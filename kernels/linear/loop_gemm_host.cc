#include <algorithm>

#include "kernels/common/parallel.h"
#include "kernels/linear/gemm.h"
#include "kernels/linear/small_gemm.h"

namespace oriel::kernels {
namespace {

// Rows of c that one unit of work computes.
constexpr int64_t kPanelRows = 32;
// Rows of b that stay in the cache while a panel is computed.
constexpr int64_t kDepth = 256;

}  // namespace

template <typename T>
absl::StatusOr<std::shared_ptr<LoopGemm<T>>> LoopGemm<T>::Create(const GemmShape& shape,
                                                                 int num_threads) {
  auto gemm = std::make_shared<LoopGemm<T>>();
  gemm->shape_ = shape;
  gemm->num_threads_ = num_threads;
  if (shape.transpose_b) gemm->transposed_.resize(shape.k * shape.n);
  return gemm;
}

template <typename T>
absl::Status LoopGemm<T>::Run(const T* a, const T* b, const T* bias, T* c) {
  const auto [batch, m, n, k, transpose_a, transpose_b, has_bias, accumulate] = shape_;
  const int64_t a_row = transpose_a ? 1 : k;
  const int64_t a_column = transpose_a ? m : 1;
  const T* added = has_bias ? bias : nullptr;
  const bool clears = !accumulate;
  for (int64_t i = 0; i < batch; ++i) {
    const T* left = a + i * m * k;
    const T* right = b + i * k * n;
    T* out = c + i * m * n;
    if (transpose_b) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t p = 0; p < k; ++p) transposed_[p * n + j] = right[j * k + p];
      }
      right = transposed_.data();
    }
    const int64_t panels = (m + kPanelRows - 1) / kPanelRows;
    const int64_t rows_n = n;
    const int64_t depth_k = k;
    const int64_t rows_m = m;
    ParallelFor(num_threads_, panels, kPanelRows * n * (k / 4 + 1),
                [=](int64_t begin, int64_t end) {
                  const int64_t first = begin * kPanelRows;
                  const int64_t last = std::min(end * kPanelRows, rows_m);
                  for (int64_t row = first; row < last; ++row) {
                    T* to = out + row * rows_n;
                    if (clears) std::fill(to, to + rows_n, T(0));
                    if (added != nullptr) {
                      for (int64_t j = 0; j < rows_n; ++j) to[j] += added[j];
                    }
                  }
                  for (int64_t p = 0; p < depth_k; p += kDepth) {
                    SmallGemm<T, true>(last - first, rows_n, std::min(kDepth, depth_k - p),
                                       left + first * a_row + p * a_column, a_row, a_column,
                                       right + p * rows_n, rows_n, out + first * rows_n, rows_n);
                  }
                });
  }
  return absl::OkStatus();
}

template class LoopGemm<float>;
template class LoopGemm<double>;

}  // namespace oriel::kernels
