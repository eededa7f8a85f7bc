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

// False for NCCL, whose sums are in an order of its own and, for 16-bit floats, rounded on each way
// from rank to rank, and whose maximum passes over NaN (fmaxf).
bool ReducesInRankOrder(const Communicator& comm);

// Of every dtype that can be reduced: floats whose sums depend on the order, or, where that is not
// the ranks', whole numbers whose sums are exact.
const std::vector<Functions>& AllTypes(const Communicator& comm);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_CONFORMANCE_VALUES_H_
