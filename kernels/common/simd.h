// One vector register of T, with GCC's and Clang's vector extension.
#ifndef ORIEL_KERNELS_COMMON_SIMD_H_
#define ORIEL_KERNELS_COMMON_SIMD_H_

#include <cstdint>
#include <cstring>

namespace oriel::kernels {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kVectorRegisters = 32;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
inline constexpr int kVectorRegisters = 16;
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kVectorRegisters = 16;
#endif

template <typename T>
struct Simd {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

  static Vector Load(const T* from) {
    Vector v;
    std::memcpy(&v, from, sizeof(v));
    return v;
  }
  // The first `count` elements; the others are 0.
  static Vector LoadPart(const T* from, int64_t count) {
    T copy[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) copy[i] = from[i];
    return Load(copy);
  }
  static void Store(T* to, Vector v) { std::memcpy(to, &v, sizeof(v)); }
  static void StorePart(T* to, Vector v, int64_t count) {
    T copy[kLanes];
    Store(copy, v);
    for (int64_t i = 0; i < count; ++i) to[i] = copy[i];
  }
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_SIMD_H_
