// result[i] = op(operand[i]), see elementwise.h: oriel_unary_<type>, and oriel_unary_rare_<type>
// with what takes many registers. The result may be the operand.
#include "kernels/cuda/math.cuh"
#include "kernels/elementwise/broadcast.cuh"

namespace oriel::kernels::cuda {
namespace {

template <typename T>
__device__ T Negate(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));  // wraps
  } else {
    return -x;
  }
}

template <typename T>
__device__ T Usual(UnaryOp op, T x) {
  switch (op) {
    case UnaryOp::kNeg:
      return Negate(x);
    case UnaryOp::kAbs:
      if constexpr (std::is_integral_v<T>) {
        return x < 0 ? Negate(x) : x;
      } else {
        return Absolute(x);
      }
    case UnaryOp::kRelu:  // keeps NaN
      return x < T(0) ? T(0) : x;
    case UnaryOp::kSign:  // keeps 0, -0 and NaN
      return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x);
    case UnaryOp::kNot:
      return static_cast<T>(x == T(0));
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    switch (op) {
      case UnaryOp::kSqrt:
        return Sqrt(x);
      case UnaryOp::kRsqrt:
        return T(1) / Sqrt(x);
      case UnaryOp::kReciprocal:
        return T(1) / x;
      case UnaryOp::kFloor:
        return Floor(x);
      case UnaryOp::kCeil:
        return Ceil(x);
      case UnaryOp::kRound:
        return RoundToEven(x);
      case UnaryOp::kExp:
        return Exp(x);
      case UnaryOp::kLog:
        return Log(x);
      case UnaryOp::kTanh:
        return Tanh(x);
      case UnaryOp::kSigmoid:
        return Sigmoid(x);
      case UnaryOp::kErf:
        return Erf(x);
      default:
        break;
    }
  }
  return x;
}

template <typename T>
__device__ T Rare(UnaryOp op, T x) {
  switch (op) {
    case UnaryOp::kSin:
      return Sin(x);
    case UnaryOp::kCos:
      return Cos(x);
    case UnaryOp::kTan:
      return Tan(x);
    case UnaryOp::kAsin:
      return Asin(x);
    case UnaryOp::kAcos:
      return Acos(x);
    case UnaryOp::kAtan:
      return Atan(x);
    case UnaryOp::kSinh:
      return Sinh(x);
    case UnaryOp::kCosh:
      return Cosh(x);
    case UnaryOp::kAsinh:
      return Asinh(x);
    case UnaryOp::kAcosh:
      return Acosh(x);
    case UnaryOp::kAtanh:
      return Atanh(x);
    default:
      return x;
  }
}

template <typename S>
__device__ void Unary(UnaryOp op, const S* x, S* y, int64_t count) {
  ForEachFlat<kVectorOf<sizeof(S)>>(count, [=](int64_t at, auto taken) {
    constexpr int kCount = decltype(taken)::value;
    Pack<S, kCount> pack = LoadPack<kCount>(x + at);
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.at[i] = Narrow<S>(Usual(op, Widen(pack.at[i])));
    StorePack(y + at, pack);
  });
}

template <typename S>
__device__ void UnaryRare(UnaryOp op, const S* x, S* y, int64_t count) {
  for (int64_t i = GlobalThread(); i < count; i += GlobalThreads()) {
    y[i] = Narrow<S>(Rare(op, Widen(x[i])));
  }
}

}  // namespace

#define ORIEL_UNARY(type, S)                                                               \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_unary_##type, UnaryOp op, const S* x, S* y, \
                    int64_t count) {                                                       \
    Unary(op, x, y, count);                                                                \
  }
#define ORIEL_UNARY_RARE(type, S)                                                               \
  ORIEL_CUDA_KERNEL(kElementwiseThreads, oriel_unary_rare_##type, UnaryOp op, const S* x, S* y, \
                    int64_t count) {                                                            \
    UnaryRare(op, x, y, count);                                                                 \
  }
ORIEL_UNARY(f32, float)
ORIEL_UNARY(f64, double)
ORIEL_UNARY(bf16, __nv_bfloat16)
ORIEL_UNARY(i64, int64_t)
ORIEL_UNARY(i32, int32_t)
ORIEL_UNARY(bool, uint8_t)
ORIEL_UNARY_RARE(f32, float)
ORIEL_UNARY_RARE(f64, double)
ORIEL_UNARY_RARE(bf16, __nv_bfloat16)

}  // namespace oriel::kernels::cuda
