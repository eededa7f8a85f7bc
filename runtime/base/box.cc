#include "runtime/base/box.h"

#include <algorithm>
#include <cstring>

namespace oriel::runtime {

std::string Box::ToString() const { return ShapeToString(size) + " at " + ShapeToString(start); }

Box WholeBox(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

Box Intersect(const Box& a, const Box& b) {
  Box shared;
  for (size_t d = 0; d < a.start.size(); ++d) {
    const int64_t start = std::max(a.start[d], b.start[d]);
    const int64_t end = std::min(a.start[d] + a.size[d], b.start[d] + b.size[d]);
    shared.start.push_back(start);
    shared.size.push_back(std::max<int64_t>(0, end - start));
  }
  return shared;
}

BoxRuns::BoxRuns(const Box& a, const Box& b) {
  const Box shared = Intersect(a, b);
  // Dimensions that both boxes have whole join the run within them.
  bool contiguous = true;
  int64_t stride_a = 1, stride_b = 1;
  for (size_t d = shared.size.size(); d-- > 0;) {
    const int64_t size = shared.size[d];
    first_.a += (shared.start[d] - a.start[d]) * stride_a;
    first_.b += (shared.start[d] - b.start[d]) * stride_b;
    if (contiguous) {
      length_ *= size;
    } else {
      count_ *= size;
      if (size > 1) outer_.push_back({size, stride_a, stride_b});
    }
    contiguous = contiguous && size == a.size[d] && size == b.size[d];
    stride_a *= a.size[d];
    stride_b *= b.size[d];
  }
  if (length_ == 0) count_ = 0;
}

BoxRuns::Run BoxRuns::operator[](int64_t run) const {
  Run result = first_;
  for (const Dim& dim : outer_) {
    const int64_t index = run % dim.size;
    run /= dim.size;
    result.a += index * dim.stride_a;
    result.b += index * dim.stride_b;
  }
  return result;
}

std::vector<Box> CutBox(const Box& box, int64_t elements) {
  std::vector<Box> pieces;
  if (box.num_elements() == 0) return pieces;
  // The outermost dimension of which at least one index fits is cut; those outside of it have one
  // index in each piece.
  size_t cut = 0;
  int64_t inner = box.num_elements();  // elements of one index of `cut`
  for (; cut < box.size.size(); ++cut) {
    inner /= box.size[cut];
    if (inner <= elements) break;
  }
  if (cut == box.size.size()) return {box};  // a scalar
  const int64_t rows = std::max<int64_t>(1, elements / inner);
  int64_t outer = 1;
  for (size_t d = 0; d < cut; ++d) outer *= box.size[d];
  for (int64_t i = 0; i < outer; ++i) {
    Box piece = box;
    int64_t rest = i;
    for (size_t d = cut; d-- > 0; rest /= box.size[d]) {
      piece.start[d] += rest % box.size[d];
      piece.size[d] = 1;
    }
    for (int64_t begin = 0; begin < box.size[cut]; begin += rows) {
      piece.start[cut] = box.start[cut] + begin;
      piece.size[cut] = std::min(rows, box.size[cut] - begin);
      pieces.push_back(piece);
    }
  }
  return pieces;
}

void CopyBox(const Box& from, const void* source, const Box& to, void* target,
             int64_t element_bytes) {
  const BoxRuns runs(from, to);
  for (int64_t i = 0; i < runs.count(); ++i) {
    const BoxRuns::Run run = runs[i];
    std::memcpy(static_cast<char*>(target) + run.b * element_bytes,
                static_cast<const char*>(source) + run.a * element_bytes,
                runs.length() * element_bytes);
  }
}

}  // namespace oriel::runtime
