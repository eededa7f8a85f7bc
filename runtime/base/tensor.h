// Element types and shapes, shared by kernels, backends and the executor.
#ifndef ORIEL_RUNTIME_BASE_TENSOR_H_
#define ORIEL_RUNTIME_BASE_TENSOR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oriel::runtime {

enum class DType : uint8_t { kF32, kF64, kF16, kBF16, kI64, kI32, kI8, kU8, kBool, kI16 };

// Bytes of one element. A boolean is one byte, 0 or 1.
int64_t DTypeBytes(DType dtype);
// f32, f64, f16 or bf16.
bool IsFloat(DType dtype);
// "f32", "i64", "bool", ..
std::string_view DTypeName(DType dtype);

using Shape = std::vector<int64_t>;

// Product of the sizes; 1 for a scalar.
int64_t NumElements(const Shape& shape);
// "[2, 64, 128]"
std::string ShapeToString(const Shape& shape);

// Type and shape of a dense row-major tensor.
struct TensorSpec {
  DType dtype = DType::kF32;
  Shape shape;

  int64_t num_elements() const { return NumElements(shape); }
  int64_t bytes() const { return num_elements() * DTypeBytes(dtype); }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  // "f32[2, 64, 128]"
  std::string ToString() const;
  friend bool operator==(const TensorSpec& a, const TensorSpec& b) {
    return a.dtype == b.dtype && a.shape == b.shape;
  }
  friend bool operator!=(const TensorSpec& a, const TensorSpec& b) { return !(a == b); }
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_TENSOR_H_
