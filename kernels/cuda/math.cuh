// Functions of f32 and f64 by one name, as device code has them: within 2 units in the last place,
// but for those that IEEE 754 rounds. NaN gives NaN.
#ifndef ORIEL_KERNELS_CUDA_MATH_CUH_
#define ORIEL_KERNELS_CUDA_MATH_CUH_

#include "kernels/cuda/device_code.cuh"

namespace oriel::kernels::cuda {

#define ORIEL_MATH(name, single, twofold)                     \
  __device__ inline float name(float x) { return single(x); } \
  __device__ inline double name(double x) { return twofold(x); }

ORIEL_MATH(Exp, expf, exp)
ORIEL_MATH(Log, logf, log)
ORIEL_MATH(Sqrt, sqrtf, sqrt)
ORIEL_MATH(Sin, sinf, sin)
ORIEL_MATH(Cos, cosf, cos)
ORIEL_MATH(Tan, tanf, tan)
ORIEL_MATH(Asin, asinf, asin)
ORIEL_MATH(Acos, acosf, acos)
ORIEL_MATH(Atan, atanf, atan)
ORIEL_MATH(Sinh, sinhf, sinh)
ORIEL_MATH(Cosh, coshf, cosh)
ORIEL_MATH(Asinh, asinhf, asinh)
ORIEL_MATH(Acosh, acoshf, acosh)
ORIEL_MATH(Atanh, atanhf, atanh)
ORIEL_MATH(Tanh, tanhf, tanh)
ORIEL_MATH(Erf, erff, erf)
ORIEL_MATH(Floor, floorf, floor)
ORIEL_MATH(Ceil, ceilf, ceil)
ORIEL_MATH(RoundToEven, rintf, rint)
ORIEL_MATH(Absolute, fabsf, fabs)
#undef ORIEL_MATH

__device__ inline float Power(float x, float y) { return powf(x, y); }
__device__ inline double Power(double x, double y) { return pow(x, y); }
__device__ inline float Modulo(float x, float y) { return fmodf(x, y); }
__device__ inline double Modulo(double x, double y) { return fmod(x, y); }

template <typename T>
__device__ inline T Sigmoid(T x) {
  return T(1) / (T(1) + Exp(-x));
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_MATH_CUH_
