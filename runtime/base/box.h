// Boxes of row-major tensors: what a piece of a tensor covers.
//
//   // Copies what a file has of this rank's piece; both are boxes of one tensor.
//   CopyBox(in_file, file_data, mine, my_data, sizeof(float));
#ifndef ORIEL_RUNTIME_BASE_BOX_H_
#define ORIEL_RUNTIME_BASE_BOX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/tensor.h"

namespace oriel::runtime {

// [start, start + size) in each dimension, in elements of the whole tensor.
struct Box {
  Shape start;
  Shape size;

  int64_t num_elements() const { return NumElements(size); }
  // "[2, 64] at [0, 128]"
  std::string ToString() const;
  friend bool operator==(const Box& a, const Box& b) {
    return a.start == b.start && a.size == b.size;
  }
  friend bool operator!=(const Box& a, const Box& b) { return !(a == b); }
};

// All of a tensor.
Box WholeBox(const Shape& shape);
// What two boxes of the same rank share; without elements if they don't meet.
Box Intersect(const Box& a, const Box& b);

// The runs that the intersection of two boxes consists of: elements that are contiguous both in
// `a` and in `b`, where each box is stored by itself, row-major. As long as can be, all of one
// length, ascending. With a whole tensor for `a` its offsets are the tensor's row-major indices.
class BoxRuns {
 public:
  struct Run {
    int64_t a;  // offsets of its first element, in elements
    int64_t b;
  };

  BoxRuns(const Box& a, const Box& b);

  int64_t count() const { return count_; }
  int64_t length() const { return length_; }  // elements of each
  Run operator[](int64_t run) const;

 private:
  struct Dim {
    int64_t size;
    int64_t stride_a;
    int64_t stride_b;
  };

  std::vector<Dim> outer_;  // dimensions over which the runs are spread, innermost first
  Run first_ = {0, 0};
  int64_t count_ = 1;
  int64_t length_ = 1;
};

// Cuts a box into boxes that lie one behind the other where it is stored, row-major, each of at
// most `elements` (one or more) elements. None if it has no elements.
std::vector<Box> CutBox(const Box& box, int64_t elements);

// Copies what two boxes share from where `from` is stored to where `to` is.
void CopyBox(const Box& from, const void* source, const Box& to, void* target,
             int64_t element_bytes);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_BOX_H_
