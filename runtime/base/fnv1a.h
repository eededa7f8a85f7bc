// FNV-1a of 64 bits (Fowler, Noll and Vo): the same number on each machine and in each run.
#ifndef ORIEL_RUNTIME_BASE_FNV1A_H_
#define ORIEL_RUNTIME_BASE_FNV1A_H_

#include <cstdint>
#include <string_view>

namespace oriel::runtime {

inline constexpr uint64_t kFnv1aStart = 0xcbf29ce484222325;

// Of the bytes behind those that gave `hash`.
inline uint64_t Fnv1a(std::string_view bytes, uint64_t hash = kFnv1aStart) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_FNV1A_H_
