#include "kernels/testing.h"

#include <cmath>
#include <random>

#include "runtime/base/float16.h"

namespace oriel::kernels::testing {
namespace {

template <typename F>
void VisitDType(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kF32:
      return f(float());
    case DType::kF64:
      return f(double());
    case DType::kI64:
      return f(int64_t());
    case DType::kI32:
      return f(int32_t());
    case DType::kI16:
      return f(int16_t());
    case DType::kI8:
      return f(int8_t());
    default:
      return f(uint8_t());
  }
}

double Load16(DType dtype, uint16_t bits) {
  return dtype == DType::kF16 ? runtime::HalfToFloat(bits) : runtime::BFloat16ToFloat(bits);
}

bool Is16(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace

Tensor::Tensor(TensorSpec spec) : spec_(std::move(spec)), storage_(spec_.bytes() + 64) {
  offset_ = (64 - reinterpret_cast<uintptr_t>(storage_.data()) % 64) % 64;
}

Tensor::Tensor(TensorSpec spec, const std::vector<double>& values) : Tensor(std::move(spec)) {
  if (Is16(spec_.dtype)) {
    auto* to = static_cast<uint16_t*>(data());
    for (size_t i = 0; i < values.size(); ++i) {
      const float value = static_cast<float>(values[i]);
      to[i] = spec_.dtype == DType::kF16 ? runtime::FloatToHalf(value)
                                         : runtime::FloatToBFloat16(value);
    }
    return;
  }
  VisitDType(spec_.dtype, [&](auto type) {
    using T = decltype(type);
    T* to = static_cast<T*>(data());
    for (size_t i = 0; i < values.size(); ++i) to[i] = static_cast<T>(values[i]);
  });
}

Tensor Tensor::Random(DType dtype, const Shape& shape, int seed, double low, double high) {
  std::mt19937_64 engine(seed);
  std::vector<double> values(runtime::NumElements(shape));
  const bool whole = dtype != DType::kF32 && dtype != DType::kF64 && !Is16(dtype);
  for (double& value : values) {
    // Not a standard distribution: those differ between libraries.
    const double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
    value = low + unit * (high - low);
    if (whole) value = std::floor(value);
    if (dtype == DType::kF32) value = static_cast<float>(value);
    if (dtype == DType::kBool) value = value >= (low + high) / 2;
  }
  return Tensor({dtype, shape}, values);
}

std::vector<double> Tensor::values() const {
  std::vector<double> values(size());
  if (Is16(spec_.dtype)) {
    const auto* from = static_cast<const uint16_t*>(data());
    for (int64_t i = 0; i < size(); ++i) values[i] = Load16(spec_.dtype, from[i]);
    return values;
  }
  VisitDType(spec_.dtype, [&](auto type) {
    using T = decltype(type);
    const T* from = static_cast<const T*>(data());
    for (int64_t i = 0; i < size(); ++i) values[i] = static_cast<double>(from[i]);
  });
  return values;
}

void Tensor::Poison() { std::memset(data(), 0xff, spec_.bytes()); }

Tensor Clone(const Tensor& tensor) {
  Tensor copy(tensor.spec());
  if (tensor.spec().bytes() > 0) std::memcpy(copy.data(), tensor.data(), tensor.spec().bytes());
  return copy;
}

Tensor ColumnsOf(const Tensor& x, int64_t first, int64_t size) {
  const std::vector<double> all = x.values();
  const int64_t n = x.shape().back();
  std::vector<double> values;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (i % n >= first && i % n < first + size) values.push_back(all[i]);
  }
  Shape shape = x.shape();
  shape.back() = size;
  return Tensor({x.spec().dtype, std::move(shape)}, values);
}

std::vector<Tensor> RunKernel(const std::string& kernel, const std::vector<Tensor>& operands,
                              const std::vector<TensorSpec>& results, const Attributes& attributes,
                              int in_place) {
  absl::StatusOr<std::vector<Tensor>> outputs =
      TryKernel(kernel, operands, results, attributes, in_place);
  EXPECT_TRUE(outputs.ok()) << kernel << ": " << outputs.status();
  if (outputs.ok()) return *std::move(outputs);
  std::vector<Tensor> poisoned;
  for (const TensorSpec& result : results) {
    poisoned.emplace_back(result);
    poisoned.back().Poison();
  }
  return poisoned;
}

void ExpectClose(const Tensor& actual, const std::vector<double>& expected, double slack) {
  const std::vector<double> values = actual.values();
  ASSERT_EQ(values.size(), expected.size()) << actual.spec().ToString();
  double tolerance = 0;
  if (actual.spec().dtype == DType::kF32) tolerance = 2e-6 * slack;
  if (actual.spec().dtype == DType::kF64) tolerance = 1e-13 * slack;
  if (actual.spec().dtype == DType::kBF16) tolerance = 0x1p-8 + 2e-6 * slack;
  int shown = 0;
  for (size_t i = 0; i < values.size() && shown < 5; ++i) {
    if (std::isnan(expected[i]) && std::isnan(values[i])) continue;
    if (std::isinf(expected[i]) && expected[i] == values[i]) continue;
    const double bound = tolerance * std::max(1.0, std::fabs(expected[i]));
    if (!(std::fabs(values[i] - expected[i]) <= bound)) {
      ADD_FAILURE() << actual.spec().ToString() << " element " << i << " is " << values[i]
                    << ", expected " << expected[i];
      ++shown;
    }
  }
}

}  // namespace oriel::kernels::testing
