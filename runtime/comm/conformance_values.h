// What the ranks of a conformance case bring, and what their reductions give. Tests only.
#ifndef ORIEL_RUNTIME_COMM_CONFORMANCE_VALUES_H_
#define ORIEL_RUNTIME_COMM_CONFORMANCE_VALUES_H_

#include <cstdint>
#include <vector>

#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// Bits that depend on rank, buffer and element only, so that any rank knows any other's data.
uint64_t Bits(int64_t rank, int64_t buffer, int64_t i);

// The bytes that rank `rank` brings, and what the reduction over `size` ranks must give.
struct Functions {
  DType dtype;
  void (*fill)(int64_t rank, int64_t buffer, int64_t count, char* out);
  void (*expected)(Reduction reduction, int64_t size, int64_t buffer, int64_t count, char* out);
};

// Of every dtype that can be reduced.
const std::vector<Functions>& AllTypes();

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_CONFORMANCE_VALUES_H_
