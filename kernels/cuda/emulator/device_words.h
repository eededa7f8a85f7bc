// CUDA's words for the host's compiler: what device_code.cuh offers, on emulator/block.h.
//
// Names are CUDA's, in the global namespace. Only for .cu files.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_DEVICE_WORDS_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_DEVICE_WORDS_H_

#include <math.h>  // not cmath: the overloads for float, in the global namespace

#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/block.h"
#include "kernels/cuda/emulator/emulated_kernel.h"

#undef __shared__
#define __shared__ static thread_local
#undef __constant__
#define __constant__ static
#undef __forceinline__
#define __forceinline__ inline
#undef __launch_bounds__
#define __launch_bounds__(...)

#define threadIdx (::oriel::kernels::cuda::emulator::This().thread)
#define blockIdx (::oriel::kernels::cuda::emulator::This().block)
#define blockDim (::oriel::kernels::cuda::emulator::This().threads)
#define gridDim (::oriel::kernels::cuda::emulator::This().blocks)
#define warpSize 32

namespace oriel::kernels::cuda::emulator {

// One slot of a whole warp's exchange.
template <typename T>
T ReadSlot(const unsigned char* slots, int lane) {
  static_assert(std::is_arithmetic_v<T>, "CUDA exchanges numbers, not structures");
  T value;
  std::memcpy(&value, slots + lane * kExchangeBytes, sizeof(T));
  return value;
}

// Calls a kernel with the arguments that `args` has the addresses of.
template <typename... P>
struct Call {
  void (*function)(P...);
  void** args;

  template <size_t... kIndex>
  void Do(std::index_sequence<kIndex...>) const {
    function(*static_cast<std::remove_cv_t<P>*>(args[kIndex])...);
  }
  static void Body(void* context) {
    static_cast<const Call*>(context)->Do(std::index_sequence_for<P...>());
  }
};

template <typename... P>
std::vector<size_t> ParameterBytes(void (*)(P...)) {
  return {sizeof(P)...};
}

template <typename... P>
absl::Status Run(const EmulatedKernel& kernel, void (*function)(P...), const EmulatedLaunch& launch,
                 void** args) {
  Call<P...> call{function, args};
  return RunGrid(kernel, launch, &Call<P...>::Body, &call);
}

}  // namespace oriel::kernels::cuda::emulator

#define ORIEL_CUDA_KERNEL(threads, name, ...)                                        \
  extern "C" void name(__VA_ARGS__);                                                 \
  static const ::oriel::kernels::cuda::EmulatedKernelRegistrar name##_registrar(     \
      {#name, threads, ::oriel::kernels::cuda::emulator::ParameterBytes(&name),      \
       [](const ::oriel::kernels::cuda::EmulatedLaunch& launch, void** args) {       \
         static const auto* kernel = ::oriel::kernels::cuda::FindEmulated(#name);    \
         return ::oriel::kernels::cuda::emulator::Run(*kernel, &name, launch, args); \
       }});                                                                          \
  extern "C" void name(__VA_ARGS__)

#define ORIEL_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(::oriel::kernels::cuda::emulator::DynamicShared())

inline void __syncthreads() { ::oriel::kernels::cuda::emulator::Barrier("__syncthreads"); }
inline int __syncthreads_count(int predicate) {
  return ::oriel::kernels::cuda::emulator::Barrier("__syncthreads_count", predicate != 0);
}
inline int __syncthreads_or(int predicate) {
  return ::oriel::kernels::cuda::emulator::Barrier("__syncthreads_or", predicate != 0) != 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  ::oriel::kernels::cuda::emulator::Exchange("__syncwarp", mask, nullptr, 0);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
[[noreturn]] inline void __trap() { ::oriel::kernels::cuda::emulator::Fail("__trap"); }

template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  namespace emulator = ::oriel::kernels::cuda::emulator;
  const unsigned char* slots = emulator::Exchange("__shfl_sync", mask, &value, sizeof(T));
  const int lane = emulator::Lane();
  return emulator::ReadSlot<T>(slots, (lane & ~(width - 1)) | (source & (width - 1)));
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  namespace emulator = ::oriel::kernels::cuda::emulator;
  const unsigned char* slots = emulator::Exchange("__shfl_xor_sync", mask, &value, sizeof(T));
  const int lane = emulator::Lane(), source = lane ^ lanes;
  // Beyond its own segment a lane reads of earlier ones alone.
  return emulator::ReadSlot<T>(slots, source > (lane | (width - 1)) ? lane : source);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, int lanes, int width = 32) {
  namespace emulator = ::oriel::kernels::cuda::emulator;
  const unsigned char* slots = emulator::Exchange("__shfl_down_sync", mask, &value, sizeof(T));
  const int lane = emulator::Lane(), source = lane + lanes;
  return emulator::ReadSlot<T>(slots, source > (lane | (width - 1)) ? lane : source);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, int lanes, int width = 32) {
  namespace emulator = ::oriel::kernels::cuda::emulator;
  const unsigned char* slots = emulator::Exchange("__shfl_up_sync", mask, &value, sizeof(T));
  const int lane = emulator::Lane(), source = lane - lanes;
  return emulator::ReadSlot<T>(slots, source < (lane & ~(width - 1)) ? lane : source);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  namespace emulator = ::oriel::kernels::cuda::emulator;
  const int own = predicate != 0;
  const unsigned char* slots = emulator::Exchange("__ballot_sync", mask, &own, sizeof(own));
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane) {
    ballot |= static_cast<unsigned>(emulator::ReadSlot<int>(slots, lane)) << lane;
  }
  return ballot;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate) == 0xffffffffu;
}

// Threads switch at exchanges alone, so these are atomic.
template <typename T>
T atomicAdd(T* address, T value) {
  return std::exchange(*address, static_cast<T>(*address + value));
}
template <typename T>
T atomicMax(T* address, T value) {
  return std::exchange(*address, *address < value ? value : *address);
}
template <typename T>
T atomicMin(T* address, T value) {
  return std::exchange(*address, value < *address ? value : *address);
}
template <typename T>
T atomicExch(T* address, T value) {
  return std::exchange(*address, value);
}
template <typename T>
T atomicCAS(T* address, T expected, T value) {
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}
template <typename T>
T atomicOr(T* address, T value) {
  return std::exchange(*address, *address | value);
}

// Tensor cores: what a lane gives is read when it arrives.
namespace oriel::kernels::cuda::emulator {

struct MatrixRow {
  uint16_t at[8];
};
inline uint32_t PackPair(uint16_t low, uint16_t high) {
  return static_cast<uint32_t>(high) << 16 | low;
}
inline float WidenBFloat16(uint32_t bits) {
  const uint32_t wide = bits << 16;
  float x;
  std::memcpy(&x, &wide, sizeof(x));
  return x;
}

}  // namespace oriel::kernels::cuda::emulator

inline void LoadMatrices(const void* row, uint32_t (&to)[4]) {
  namespace emulator = ::oriel::kernels::cuda::emulator;
  const unsigned char* slots = emulator::Exchange("ldmatrix", 0xffffffffu, row, 16);
  const int lane = emulator::Lane();
  for (int i = 0; i < 4; ++i) {
    emulator::MatrixRow of;
    std::memcpy(&of, slots + (8 * i + lane / 4) * emulator::kExchangeBytes, sizeof(of));
    to[i] = emulator::PackPair(of.at[lane % 4 * 2], of.at[lane % 4 * 2 + 1]);
  }
}
inline void LoadMatricesTransposed(const void* row, uint32_t (&to)[4]) {
  namespace emulator = ::oriel::kernels::cuda::emulator;
  const unsigned char* slots = emulator::Exchange("ldmatrix.trans", 0xffffffffu, row, 16);
  const int lane = emulator::Lane();
  for (int i = 0; i < 4; ++i) {
    emulator::MatrixRow rows[2];
    for (int j = 0; j < 2; ++j) {
      const int from = 8 * i + lane % 4 * 2 + j;
      std::memcpy(&rows[j], slots + from * emulator::kExchangeBytes, sizeof(rows[j]));
    }
    to[i] = emulator::PackPair(rows[0].at[lane / 4], rows[1].at[lane / 4]);
  }
}
inline void MultiplyAdd(const uint32_t (&a)[4], const uint32_t* b, float (&c)[4]) {
  namespace emulator = ::oriel::kernels::cuda::emulator;
  const uint32_t own[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const unsigned char* slots = emulator::Exchange("mma", 0xffffffffu, own, sizeof(own));
  const int lane = emulator::Lane();
  // Half `i` of word `word` of a lane.
  const auto element = [&](int of, int word, int i) {
    uint32_t bits;
    std::memcpy(&bits, slots + of * emulator::kExchangeBytes + word * sizeof(bits), sizeof(bits));
    return emulator::WidenBFloat16(bits >> (16 * i) & 0xffff);
  };
  for (int k = 0; k < 16; ++k) {
    const int from = k % 8 / 2, half = k / 8;
    for (int i = 0; i < 4; ++i) {
      const float x = element(lane / 4 * 4 + from, 2 * half + i / 2, k % 2);
      const float y = element((lane % 4 * 2 + i % 2) * 4 + from, 4 + half, k % 2);
      c[i] += x * y;
    }
  }
}

inline void CopyAsync16(void* shared, const void* global) { std::memcpy(shared, global, 16); }
inline void WaitForCopies() {}
template <typename T>
T __ldg(const T* address) {
  return *address;
}

template <typename T>
void __stwb(T* address, T value) {
  *address = value;
}

template <typename To, typename From>
To OrielBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}
inline float __uint_as_float(unsigned bits) { return OrielBits<float>(bits); }
inline unsigned __float_as_uint(float x) { return OrielBits<unsigned>(x); }
inline float __int_as_float(int bits) { return OrielBits<float>(bits); }
inline int __float_as_int(float x) { return OrielBits<int>(x); }
inline double __longlong_as_double(long long bits) { return OrielBits<double>(bits); }
inline long long __double_as_longlong(double x) { return OrielBits<long long>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}

// Those of CUDA that libm has not. The fast ones are exact here; what they may lose on a GPU, a
// kernel's contract says.
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float FastExp2(float x) { return std::exp2(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }

template <typename T>
constexpr T max(T x, T y) {
  return x < y ? y : x;
}
template <typename T>
constexpr T min(T x, T y) {
  return y < x ? y : x;
}
// NaN leaves, as on the device.
inline float max(float x, float y) { return std::fmax(x, y); }
inline double max(double x, double y) { return std::fmax(x, y); }
inline float min(float x, float y) { return std::fmin(x, y); }
inline double min(double x, double y) { return std::fmin(x, y); }

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_DEVICE_WORDS_H_
