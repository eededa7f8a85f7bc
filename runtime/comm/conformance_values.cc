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

// What floats are made of.
using Values = double (*)(int64_t rank, int64_t buffer, int64_t i);

// Magnitudes from 2^-10 to 2^10, so that a float sum depends on its order.
double Rough(int64_t rank, int64_t buffer, int64_t i) {
  const uint64_t bits = Bits(rank, buffer, i);
  const double mantissa = static_cast<double>(static_cast<int64_t>(bits >> 11)) / (1ll << 53);
  return std::ldexp(mantissa - 0.5, static_cast<int>(bits % 21) - 10);
}

// Whole numbers from -15 to 15: sums over 16 ranks are below 256, which all types hold exactly.
double Whole(int64_t rank, int64_t buffer, int64_t i) {
  return static_cast<double>(Bits(rank, buffer, i) % 31) - 15;
}

// One element of each dtype as the reference sees it: load, combine, store.
template <typename T>
struct Plain {
  using Storage = T;
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
};

struct F16 {
  using Storage = uint16_t;
  static float Load(Storage value) { return HalfToFloat(value); }
  static Storage Store(float value) { return FloatToHalf(value); }
};

template <typename Type, Values kValues>
typename Type::Storage Make(int64_t rank, int64_t buffer, int64_t i) {
  using Loaded = decltype(Type::Load({}));
  if constexpr (std::is_floating_point_v<Loaded>) {
    return Type::Store(static_cast<Loaded>(kValues(rank, buffer, i)));
  } else {
    return static_cast<Loaded>(Bits(rank, buffer, i) >> 8) / 64;  // 64 ranks don't overflow
  }
}

template <typename Type, Values kValues>
void Fill(int64_t rank, int64_t buffer, int64_t count, char* out) {
  auto* data = reinterpret_cast<typename Type::Storage*>(out);
  for (int64_t i = 0; i < count; ++i) data[i] = Make<Type, kValues>(rank, buffer, i);
}

template <typename Type, Values kValues>
void Expected(Reduction reduction, int64_t size, int64_t buffer, int64_t count, char* out) {
  auto* data = reinterpret_cast<typename Type::Storage*>(out);
  for (int64_t i = 0; i < count; ++i) {
    auto sum = Type::Load(Make<Type, kValues>(0, buffer, i));
    for (int64_t rank = 1; rank < size; ++rank) {
      const auto value = Type::Load(Make<Type, kValues>(rank, buffer, i));
      sum = reduction == Reduction::kSum ? sum + value : std::max(sum, value);
    }
    data[i] = Type::Store(sum);
  }
}

template <Values kValues>
std::vector<Functions> AllTypes() {
  const auto functions = [](DType dtype, auto type) -> Functions {
    using Type = decltype(type);
    return {dtype, Fill<Type, kValues>, Expected<Type, kValues>};
  };
  return {functions(DType::kF32, Plain<float>()),   functions(DType::kF64, Plain<double>()),
          functions(DType::kBF16, Bf16()),          functions(DType::kF16, F16()),
          functions(DType::kI64, Plain<int64_t>()), functions(DType::kI32, Plain<int32_t>())};
}

}  // namespace

bool ReducesInRankOrder(const Communicator& comm) { return comm.name() != "nccl"; }

const std::vector<Functions>& AllTypes(const Communicator& comm) {
  static const auto* rough = new std::vector<Functions>(AllTypes<Rough>());
  static const auto* whole = new std::vector<Functions>(AllTypes<Whole>());
  return ReducesInRankOrder(comm) ? *rough : *whole;
}

}  // namespace oriel::runtime
