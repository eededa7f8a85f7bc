#include "frontend/weight_copies.h"

#include <algorithm>

namespace oriel {
namespace {

bool isTransposed(const TensorData& a, const TensorData& b) {
  const int64_t rows = a.shape[0], columns = a.shape[1], width = elementBytes(a.dataType);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const char* left = a.bytes.data() + (row * columns + column) * width;
      const char* right = b.bytes.data() + (column * rows + row) * width;
      if (!std::equal(left, left + width, right)) return false;
    }
  }
  return true;
}

}  // namespace

WeightCopy findCopy(const TensorData& a, const TensorData& b) {
  if (a.dataType != b.dataType || a.shape.size() != 2 || b.shape.size() != 2) {
    return WeightCopy::kNone;
  }
  const auto width = static_cast<size_t>(elementBytes(a.dataType));
  // Whether it is other bytes than it would be one element further on.
  auto hasValues = [&] {
    return a.bytes.size() > width && a.bytes.drop_back(width) != a.bytes.drop_front(width);
  };
  if (a.shape == b.shape && a.bytes == b.bytes && hasValues()) return WeightCopy::kSame;
  if (a.shape[0] == b.shape[1] && a.shape[1] == b.shape[0] && isTransposed(a, b) && hasValues()) {
    return WeightCopy::kTransposed;
  }
  return WeightCopy::kNone;
}

}  // namespace oriel
