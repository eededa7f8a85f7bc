// Philox 4x32-10, a counter-based random number generator: a bijection of counters for each key,
// so that any part of a stream can be made by itself, in any order.
//
// J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011,
// section 3.3.
#ifndef ORIEL_RUNTIME_BASE_PHILOX_H_
#define ORIEL_RUNTIME_BASE_PHILOX_H_

#include <array>
#include <cstdint>

namespace oriel::runtime {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Four words of 32 random bits.
constexpr PhiloxCounter Philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = uint64_t{0xd2511f53} * counter[0];
    const uint64_t product1 = uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9e3779b9;  // the golden ratio
    key[1] += 0xbb67ae85;  // √3 - 1
  }
  return counter;
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_PHILOX_H_
