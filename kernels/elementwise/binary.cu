// result = op(lhs, rhs) with broadcast, see elementwise.h: oriel_arithmetic_<type>,
// oriel_power_<type>, oriel_compare_<type>. The result may be an operand of its shape.
#include "kernels/cuda/math.cuh"
#include "kernels/elementwise/broadcast.cuh"
#include "kernels/elementwise/wrapping.h"

namespace oriel::kernels::cuda {
namespace {

// From elements of S to those of R.
template <typename Op, typename S, typename R>
__device__ void Binary(BinaryOp op, const BroadcastLaunch& plan, const S* a, const S* b, R* y) {
  ForEachBroadcast<kVectorOf<sizeof(S)>>(plan, [&](const auto* offsets, auto at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    const Pack<S, kCount> left = LoadPack<kCount>(a + offsets[0], plan.varies[0]);
    const Pack<S, kCount> right = LoadPack<kCount>(b + offsets[1], plan.varies[1]);
    Pack<R, kCount> result;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      result.at[i] = Narrow<R>(Op::Apply(op, Widen(left.at[i]), Widen(right.at[i])));
    }
    StorePack(y + at, result);
  });
}

// By zero, integers give anything: oriel_find_zero has reported it.
template <typename T>
__device__ T Quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if (b == -1) return static_cast<T>(Wide<T>(0) - Wide<T>(a));  // the smallest number wraps
  }
  return a / b;
}

struct Arithmetic {
  template <typename T>
  static __device__ T Apply(BinaryOp op, T a, T b) {
    switch (op) {
      case BinaryOp::kAdd:
        return static_cast<T>(Wide<T>(a) + Wide<T>(b));
      case BinaryOp::kSub:
        return static_cast<T>(Wide<T>(a) - Wide<T>(b));
      case BinaryOp::kMul:
        return static_cast<T>(Wide<T>(a) * Wide<T>(b));
      case BinaryOp::kDiv:
        return Quotient(a, b);
      case BinaryOp::kMax:  // NaN, if either is
        return (a > b || a != a) ? a : b;
      default:
        return (a < b || a != a) ? a : b;
    }
  }
};

// The rest of a division, with the divisor's sign.
template <typename T>
__device__ T Rest(T a, T b) {
  T rest;
  if constexpr (std::is_integral_v<T>) {
    if (b == 0 || b == -1) return 0;
    rest = a % b;
  } else {
    rest = Modulo(a, b);
  }
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

struct Powers {
  template <typename T>
  static __device__ T Apply(BinaryOp op, T a, T b) {
    if (op == BinaryOp::kMod) return Rest(a, b);
    if constexpr (std::is_integral_v<T>) {
      if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
      Wide<T> result = 1, base = static_cast<Wide<T>>(a);
      for (T rest = b; rest > 0; rest >>= 1) {
        if (rest & 1) result *= base;
        base *= base;
      }
      return static_cast<T>(result);
    } else {
      // The usual powers are products.
      if (b == T(2)) return a * a;
      if (b == T(3)) return a * a * a;
      return Power(a, b);
    }
  }
};

struct Compare {
  template <typename T>
  static __device__ uint8_t Apply(BinaryOp op, T a, T b) {
    switch (op) {
      case BinaryOp::kEqual:
        return a == b;
      case BinaryOp::kLess:
        return a < b;
      case BinaryOp::kLessEqual:
        return a <= b;
      case BinaryOp::kGreater:
        return a > b;
      case BinaryOp::kGreaterEqual:
        return a >= b;
      default:
        break;
    }
    if constexpr (std::is_same_v<T, uint8_t>) {
      if (op == BinaryOp::kAnd) return a & b;
      if (op == BinaryOp::kOr) return a | b;
      if (op == BinaryOp::kXor) return a ^ b;
    }
    return 0;
  }
};

template <typename T>
__device__ void FindZero(const T* divisor, int64_t count, Fault* fault, int32_t launch) {
  for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) {
    if (divisor[i] == 0) ReportFault(fault, launch, kDivisionByZero, i, count);
  }
}

}  // namespace

#define ORIEL_BINARY(stem, Op, type, S, R)                                                         \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_##stem##_##type, BinaryOp op, BroadcastLaunch plan, \
                    const S* a, const S* b, R* y) {                                                \
    Binary<Op>(op, plan, a, b, y);                                                                 \
  }
#define ORIEL_BINARY_NUMBERS(type, S)              \
  ORIEL_BINARY(arithmetic, Arithmetic, type, S, S) \
  ORIEL_BINARY(power, Powers, type, S, S)          \
  ORIEL_BINARY(compare, Compare, type, S, uint8_t)
ORIEL_BINARY_NUMBERS(f32, float)
ORIEL_BINARY_NUMBERS(f64, double)
ORIEL_BINARY_NUMBERS(bf16, __nv_bfloat16)
ORIEL_BINARY_NUMBERS(i64, int64_t)
ORIEL_BINARY_NUMBERS(i32, int32_t)
ORIEL_BINARY(compare, Compare, bool, uint8_t, uint8_t)

#define ORIEL_FIND_ZERO(type, T)                                                                  \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_find_zero_##type, const T* divisor, int64_t count, \
                    Fault* fault, int32_t launch) {                                               \
    FindZero(divisor, count, fault, launch);                                                      \
  }
ORIEL_FIND_ZERO(i64, int64_t)
ORIEL_FIND_ZERO(i32, int32_t)

}  // namespace oriel::kernels::cuda
