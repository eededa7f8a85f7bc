#include "runtime/train/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/base/float16.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

namespace {

// The nearest f32; of what is finite a finite one.
float ToFloat(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::isfinite(value) ? std::clamp(value, -kLargest, kLargest) : value);
}

// The bits of a 16-bit float, or of the largest one (the bits before those of infinity) in place of
// infinity, if `value` is finite: a mask of -3.4e38 must not become -inf, of which a row alone has
// no softmax.
uint16_t KeepFinite(uint16_t bits, uint16_t infinity, double value) {
  return std::isfinite(value) && (bits & 0x7fff) == infinity ? bits - 1 : bits;
}

// How a type is stored, and the value that an element stands for.
struct HalfCodec {
  using Stored = uint16_t;
  static float Decode(Stored bits) { return HalfToFloat(bits); }
  static Stored Encode(double value) {
    return KeepFinite(FloatToHalf(ToFloat(value)), 0x7c00, value);
  }
};
struct BFloat16Codec {
  using Stored = uint16_t;
  static float Decode(Stored bits) { return BFloat16ToFloat(bits); }
  static Stored Encode(double value) {
    return KeepFinite(FloatToBFloat16(ToFloat(value)), 0x7f80, value);
  }
};
struct BoolCodec {
  using Stored = uint8_t;
  static int64_t Decode(Stored value) { return value != 0; }
  static Stored Encode(int64_t value) { return value != 0; }
};
template <typename T>
struct PlainCodec {
  using Stored = T;
  static T Decode(T value) { return value; }
  template <typename V>
  static T Encode(V value) {
    if constexpr (std::is_same_v<T, float> && std::is_same_v<V, double>) return ToFloat(value);
    return static_cast<T>(value);
  }
};

// Calls `fn` with the codec of a type.
template <typename Fn>
absl::Status Dispatch(DType dtype, Fn fn) {
  switch (dtype) {
    case DType::kF32:
      return fn(PlainCodec<float>());
    case DType::kF64:
      return fn(PlainCodec<double>());
    case DType::kF16:
      return fn(HalfCodec());
    case DType::kBF16:
      return fn(BFloat16Codec());
    case DType::kI64:
      return fn(PlainCodec<int64_t>());
    case DType::kI32:
      return fn(PlainCodec<int32_t>());
    case DType::kI16:
      return fn(PlainCodec<int16_t>());
    case DType::kI8:
      return fn(PlainCodec<int8_t>());
    case DType::kU8:
      return fn(PlainCodec<uint8_t>());
    case DType::kBool:
      return fn(BoolCodec());
  }
  return absl::InternalError("unknown dtype");
}

template <typename From, typename To>
absl::Status Convert(const void* source, void* target, int64_t count) {
  using In = typename From::Stored;
  using Out = typename To::Stored;
  const char* in = static_cast<const char*>(source);
  char* out = static_cast<char*>(target);
  for (int64_t i = 0; i < count; ++i, in += sizeof(In), out += sizeof(Out)) {
    In stored;
    std::memcpy(&stored, in, sizeof stored);
    const auto value = From::Decode(stored);
    if constexpr (std::is_same_v<To, PlainCodec<Out>> && std::is_integral_v<Out> &&
                  std::is_integral_v<decltype(From::Decode(stored))>) {
      const int64_t wide = static_cast<int64_t>(value);
      if (wide < std::numeric_limits<Out>::min() || wide > std::numeric_limits<Out>::max()) {
        return absl::OutOfRangeError(
            absl::StrCat("value ", wide, " at element ", i, " does not fit"));
      }
    }
    const Out result = To::Encode(value);
    std::memcpy(out, &result, sizeof result);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsConvertible(DType from, DType to) {
  if (from == to || IsFloat(to)) return true;
  if (to == DType::kBool) return false;
  return !IsFloat(from);
}

absl::Status ConvertElements(DType from, const void* source, DType to, void* target,
                             int64_t count) {
  if (from == to) {
    if (count > 0) std::memcpy(target, source, count * DTypeBytes(from));
    return absl::OkStatus();
  }
  if (!IsConvertible(from, to)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no conversion from ", std::string(DTypeName(from)), " to ", std::string(DTypeName(to))));
  }
  return Dispatch(from, [&](auto from_codec) {
    return Dispatch(to, [&](auto to_codec) {
      return Convert<decltype(from_codec), decltype(to_codec)>(source, target, count);
    });
  });
}

bool CanRead(const TensorSpec& stored, const TensorSpec& wanted) {
  return stored.shape == wanted.shape &&
         (stored.dtype == wanted.dtype || (IsFloat(stored.dtype) && IsFloat(wanted.dtype)));
}

absl::Status ConvertBox(const Box& from, DType from_type, const void* source, const Box& to,
                        DType to_type, void* target) {
  const int64_t from_bytes = DTypeBytes(from_type), to_bytes = DTypeBytes(to_type);
  if (from_type == to_type) {
    CopyBox(from, source, to, target, from_bytes);
    return absl::OkStatus();
  }
  const BoxRuns runs(from, to);
  for (int64_t i = 0; i < runs.count(); ++i) {
    const auto [begin, into] = runs[i];
    ORIEL_RETURN_IF_ERROR(
        ConvertElements(from_type, static_cast<const char*>(source) + begin * from_bytes, to_type,
                        static_cast<char*>(target) + into * to_bytes, runs.length()));
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
