// A copy between two strided boxes: the work of transpose, slice, pad, concat
// and broadcast. Strides are in elements; dimensions that both sides walk alike
// are merged, and the inner loop is chosen once.
#ifndef ORIEL_KERNELS_SHAPE_STRIDED_COPY_H_
#define ORIEL_KERNELS_SHAPE_STRIDED_COPY_H_

#include <cstdint>
#include <vector>

namespace oriel::kernels {

class StridedCopy {
 public:
  // One dimension, outermost first. A source stride of 0 repeats.
  struct Dim {
    int64_t size;
    int64_t source;
    int64_t target;
  };

  // The same box in the order of the target's memory, without dimensions of size 1, and with those
  // joined that both sides walk as one.
  static std::vector<Dim> Merge(std::vector<Dim> dims);

  StridedCopy() = default;
  // `element_bytes` is 1, 2, 4 or 8. Offsets are in elements. No two target elements coincide.
  StridedCopy(std::vector<Dim> dims, int64_t source_offset, int64_t target_offset,
              int64_t element_bytes);

  // Buffers don't overlap.
  void Run(const void* source, void* target, int num_threads) const;

 private:
  enum class Inner {
    kRows,      // both sides contiguous in the last dimension
    kFill,      // one source element along a contiguous target
    kTiles,     // the last two dimensions are a transpose
    kElements,  // anything else
  };

  template <typename T>
  void RunSized(const T* source, T* target, int num_threads) const;

  std::vector<Dim> dims_;  // the last one, for kTiles the last two, are the inner loop
  Inner inner_ = Inner::kElements;
  int64_t source_offset_ = 0;
  int64_t target_offset_ = 0;
  int64_t element_bytes_ = 1;
  int64_t outer_ = 1;  // product of the sizes of the dimensions outside the inner loop
};

// Row-major strides of `shape`.
std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& shape);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_SHAPE_STRIDED_COPY_H_
