// Scratch memory whose start is aligned to a cache line.
#ifndef ORIEL_KERNELS_COMMON_ALIGNED_H_
#define ORIEL_KERNELS_COMMON_ALIGNED_H_

#include <cstddef>
#include <new>
#include <vector>

namespace oriel::kernels {

template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;
  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), kAlignment));
  }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kAlignment); }
  template <typename U>
  bool operator==(const CacheLineAllocator<U>&) const {
    return true;
  }
  template <typename U>
  bool operator!=(const CacheLineAllocator<U>&) const {
    return false;
  }
};

template <typename T>
using AlignedVector = std::vector<T, CacheLineAllocator<T>>;

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_ALIGNED_H_
