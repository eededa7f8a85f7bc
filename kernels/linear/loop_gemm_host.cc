#include <algorithm>

#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
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
  return gemm;
}

template <typename T>
absl::Status LoopGemm<T>::Run(const void* a, const void* b, const void* bias, void* c) {
  const int64_t m = shape_.m, n = shape_.n, k = shape_.k;
  const int64_t a_row = shape_.transpose_a ? 1 : k;
  const int64_t a_column = shape_.transpose_a ? m : 1;
  const T* added = shape_.bias ? static_cast<const T*>(bias) : nullptr;
  const bool clears = !shape_.accumulate;
  // One matrix b, if it is stored as [n, k].
  T* transposed = static_cast<T*>(ThreadScratch(shape_.transpose_b ? k * n * sizeof(T) : 0));
  for (int64_t i = 0; i < shape_.batch; ++i) {
    const T* left = static_cast<const T*>(a) + i * m * k;
    const T* right = static_cast<const T*>(b) + i * k * n;
    T* out = static_cast<T*>(c) + i * m * n;
    if (shape_.transpose_b) {
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t p = 0; p < k; ++p) transposed[p * n + j] = right[j * k + p];
      }
      right = transposed;
    }
    const int64_t panels = (m + kPanelRows - 1) / kPanelRows;
    ParallelFor(num_threads_, panels, kPanelRows * n * (k / 4 + 1),
                [=](int64_t begin, int64_t end) {
                  const int64_t first = begin * kPanelRows;
                  const int64_t last = std::min(end * kPanelRows, m);
                  for (int64_t row = first; row < last; ++row) {
                    T* to = out + row * n;
                    if (clears) std::fill(to, to + n, T(0));
                    if (added != nullptr) {
                      for (int64_t j = 0; j < n; ++j) to[j] += added[j];
                    }
                  }
                  for (int64_t p = 0; p < k; p += kDepth) {
                    SmallGemm<T, true>(last - first, n, std::min(kDepth, k - p),
                                       left + first * a_row + p * a_column, a_row, a_column,
                                       right + p * n, n, out + first * n, n);
                  }
                });
  }
  return absl::OkStatus();
}

template class LoopGemm<float>;
template class LoopGemm<double>;

}  // namespace oriel::kernels
