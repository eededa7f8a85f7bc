// What the elementwise device code is launched with.
#ifndef ORIEL_KERNELS_ELEMENTWISE_ELEMENTWISE_LAUNCH_H_
#define ORIEL_KERNELS_ELEMENTWISE_ELEMENTWISE_LAUNCH_H_

#include <cstdint>

#include "kernels/cuda/divisor.h"

namespace oriel::kernels::cuda {

inline constexpr int kElementwiseThreads = 256;

// A BroadcastPlan (broadcast.h) of up to three operands.
struct BroadcastLaunch {
  static constexpr int kOperands = 3, kDims = 16;
  int64_t count;           // elements, or vectors of them
  Divisor pieces;          // vectors of a row
  int32_t dims;            // outer ones
  int32_t vector;          // elements of a row that are loaded at once: they divide all offsets
  bool varies[kOperands];  // contiguous (or constant) in a row
  bool small;              // count and offsets are below kSmallIndices
  Divisor sizes[kDims];
  int64_t strides[kDims][kOperands];
};

// One function of device code has many operations, told apart when it runs: the loops around them
// are compiled once.
enum class UnaryOp : int32_t {
  kNeg,
  kAbs,
  kRelu,
  kSign,
  kNot,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kFloor,
  kCeil,
  kRound,
  kExp,
  kLog,
  kTanh,
  kSigmoid,
  kErf,  // up to here oriel_unary, then oriel_unary_rare
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
};
enum class BinaryOp : int32_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,  // oriel_arithmetic
  kMod,
  kPow,  // oriel_power
  kEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,  // oriel_compare
  kAnd,
  kOr,
  kXor,  // oriel_compare, of booleans
};

// The types of `cast`, in the order of DType.
enum class CastTo : int32_t { kF32, kF64, kF16, kBF16, kI64, kI32, kI8, kU8, kBool };

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_ELEMENTWISE_ELEMENTWISE_LAUNCH_H_
