// What every communicator must do, as checks that a rank runs.
//
// A test calls each case on every rank of a world at once, and again on any group. The expected
// values come from a plain serial loop over the ranks, compared bit by bit, of numbers for which
// the order does not count where a communicator has one of its own. Tests only.
#ifndef ORIEL_RUNTIME_COMM_CONFORMANCE_H_
#define ORIEL_RUNTIME_COMM_CONFORMANCE_H_

#include <vector>

#include "runtime/comm/communicator.h"

namespace oriel::runtime {

struct ConformanceCase {
  const char* name;
  // Collective. Failures are GoogleTest expectations.
  void (*run)(Communicator&);
};

const std::vector<ConformanceCase>& ConformanceCases();
// Those of messages, which are among them.
const std::vector<ConformanceCase>& MessageConformanceCases();

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_CONFORMANCE_H_
