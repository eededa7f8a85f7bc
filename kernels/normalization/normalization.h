// layer_norm, rms_norm, softmax and their derivatives (ir/oriel/normalization.td).
//
// Dense row-major operands, results are assigned, f32, f64 and bf16, where a row
// is widened to f32 and the result rounded; weights, their gradients and
// statistics are f32 then. Norms act on the last dimension: a tensor is [rows, n].
// Row statistics are summed in double (row_sums.h); mean, inv_std and inv_rms are
// kept in the operands' type. The
// gradients of weight and bias are sums over rows in double: over kBlockRows
// rows in order, then over those blocks in order. An addend, of the input's shape and type, is
// added to dx before it is rounded; dx may be its buffer. add_.. norm the sum of x and the addend
// as it is stored, in a buffer of its own or in that of either.
//
//   layer_norm       x, weight [n], bias [n]?; float epsilon -> y, mean [rows], inv_std [rows]
//   add_layer_norm   x, addend, weight, bias?; float epsilon -> y, mean, inv_std, sum
//   layer_norm_grad  dy, x, weight, mean, inv_std, addend? -> dx, dweight [n], dbias [n]
//   rms_norm         x, weight [n]; float epsilon, weight_offset = 0 -> y, inv_rms [rows]
//   add_rms_norm     x, addend, weight; float epsilon, weight_offset = 0 -> y, inv_rms, sum
//   rms_norm_grad    dy, x, weight, inv_rms, addend?; float weight_offset = 0 -> dx, dweight [n]
//   softmax          x; int dim -> y, which may be the buffer of x
//   softmax_grad     dy, y; int dim -> dx
#ifndef ORIEL_KERNELS_NORMALIZATION_NORMALIZATION_H_
#define ORIEL_KERNELS_NORMALIZATION_NORMALIZATION_H_

#include <cstdint>

#include "kernels/common/scratch.h"

namespace oriel::kernels {

// Sums over rows of several vectors of length n, so that the order of summation does not
// depend on the thread count: one partial sum for each block of rows.
class RowBlockSums {
 public:
  // In the calling thread's scratch memory.
  RowBlockSums(int64_t rows, int64_t n, int vectors)
      : rows_(rows),
        n_(n),
        vectors_(vectors),
        sums_(static_cast<double*>(ThreadScratch(blocks() * n * vectors * sizeof(double)))) {}

  static constexpr int64_t kMinBlockRows = 64;
  static constexpr int64_t kMaxBlocks = 32;

  int64_t block_rows() const {
    const int64_t even = (rows_ + kMaxBlocks - 1) / kMaxBlocks;
    return even < kMinBlockRows ? kMinBlockRows : even;
  }
  int64_t blocks() const { return (rows_ + block_rows() - 1) / block_rows(); }
  // n partial sums of `vector` in `block`, to be cleared by the caller.
  double* partial(int64_t block, int vector) { return sums_ + (block * vectors_ + vector) * n_; }
  // Assigns the total of `vector` to result[0 .. n).
  template <typename T>
  void Finish(int vector, T* result) {
    for (int64_t j = 0; j < n_; ++j) result[j] = T(0);
    if (blocks() == 0) return;
    double* total = partial(0, vector);
    for (int64_t block = 1; block < blocks(); ++block) {
      const double* more = partial(block, vector);
#pragma omp simd
      for (int64_t j = 0; j < n_; ++j) total[j] += more[j];
    }
#pragma omp simd
    for (int64_t j = 0; j < n_; ++j) result[j] = static_cast<T>(total[j]);
  }

 private:
  int64_t rows_;
  int64_t n_;
  int vectors_;
  double* sums_;
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_NORMALIZATION_NORMALIZATION_H_
