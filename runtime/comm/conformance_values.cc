#include "runtime/comm/conformance_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "runtime/base/float16.h"

namespace oriel::runtime {

uint64_t Bits(int64_t rank, int64_t buffer, int64_t i) {
  uint64_t x = static_cast<uint64_t>(rank) * 0x9e3779b97f4a7c15u ^
               static_cast<uint64_t>(buffer) * 0xc2b2ae3d27d4eb4fu ^
               static_cast<uint64_t>(i + 1) * 0x165667b19e3779f9u;
  x = (x ^ (x >> 31)) * 0xd6e8feb86659fd93u;
  return x ^ (x >> 29);
}

namespace {

// Magnitudes from 2^-10 to 2^10, so that a float sum depends on its order.
double Value(int64_t rank, int64_t buffer, int64_t i) {
  const uint64_t bits = Bits(rank, buffer, i);
  const double mantissa = static_cast<double>(static_cast<int64_t>(bits >> 11)) / (1ll << 53);
  return std::ldexp(mantissa - 0.5, static_cast<int>(bits % 21) - 10);
}

// One element of each dtype as the reference sees it: load, combine, store.
template <typename T>
struct Plain {
  using Storage = T;
  static Storage Make(int64_t rank, int64_t buffer, int64_t i) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(Value(rank, buffer, i));
    } else {
      return static_cast<T>(Bits(rank, buffer, i) >> 8) / 64;  // 64 ranks don't overflow
    }
  }
  static T Load(Storage value) { return value; }
  static Storage Store(T value) { return value; }
};

// bf16 by its definition: the upper half of an f32, rounded to nearest, ties to even.
struct Bf16 {
  using Storage = uint16_t;
  static float Load(Storage value) {
    const uint32_t bits = static_cast<uint32_t>(value) << 16;
    float result;
    std::memcpy(&result, &bits, 4);
    return result;
  }
  static Storage Store(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint32_t rest = bits & 0xffff;
    Storage upper = static_cast<Storage>(bits >> 16);
    if (rest > 0x8000 || (rest == 0x8000 && (upper & 1))) ++upper;
    return upper;
  }
  static Storage Make(int64_t rank, int64_t buffer, int64_t i) {
    return Store(static_cast<float>(Value(rank, buffer, i)));
  }
};

struct F16 {
  using Storage = uint16_t;
  static float Load(Storage value) { return HalfToFloat(value); }
  static Storage Store(float value) { return FloatToHalf(value); }
  static Storage Make(int64_t rank, int64_t buffer, int64_t i) {
    return Store(static_cast<float>(Value(rank, buffer, i)));
  }
};

template <typename Type>
void Fill(int64_t rank, int64_t buffer, int64_t count, char* out) {
  auto* data = reinterpret_cast<typename Type::Storage*>(out);
  for (int64_t i = 0; i < count; ++i) data[i] = Type::Make(rank, buffer, i);
}

template <typename Type>
void Expected(Reduction reduction, int64_t size, int64_t buffer, int64_t count, char* out) {
  auto* data = reinterpret_cast<typename Type::Storage*>(out);
  for (int64_t i = 0; i < count; ++i) {
    auto sum = Type::Load(Type::Make(0, buffer, i));
    for (int64_t rank = 1; rank < size; ++rank) {
      const auto value = Type::Load(Type::Make(rank, buffer, i));
      sum = reduction == Reduction::kSum ? sum + value : std::max(sum, value);
    }
    data[i] = Type::Store(sum);
  }
}

template <typename Type>
Functions For(DType dtype) {
  return {dtype, Fill<Type>, Expected<Type>};
}

}  // namespace

const std::vector<Functions>& AllTypes() {
  static const auto* types = new std::vector<Functions>{
      For<Plain<float>>(DType::kF32),   For<Plain<double>>(DType::kF64),
      For<Bf16>(DType::kBF16),          For<F16>(DType::kF16),
      For<Plain<int64_t>>(DType::kI64), For<Plain<int32_t>>(DType::kI32)};
  return *types;
}

}  // namespace oriel::runtime
