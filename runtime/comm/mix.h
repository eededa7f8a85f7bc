// A hash of numbers, one after the other, for what ranks compare.
#ifndef ORIEL_RUNTIME_COMM_MIX_H_
#define ORIEL_RUNTIME_COMM_MIX_H_

#include <cstdint>

namespace oriel::runtime {

// Of `value` behind those that gave `hash`; the order counts.
inline uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;  // 2^64 over the golden ratio
  return hash ^ (hash >> 32);
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_MIX_H_
