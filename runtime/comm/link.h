// Messages between two ranks' devices that are work on streams.
#ifndef ORIEL_RUNTIME_COMM_LINK_H_
#define ORIEL_RUNTIME_COMM_LINK_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace oriel::runtime {

// From which rank to which.
struct LinkEnds {
  int64_t sender;
  int64_t receiver;
};

// One side of what goes from one rank to another. There are no tags: messages match in the order in
// which each side puts them.
//
// What is put holds up its stream, and may hold up everything that is put on the rank's device
// behind it, until the other side runs too. So that ranks don't wait for each other for ever, each
// puts its messages and collectives in an order that is part of one order of all ranks
// (runtime/plan/transfer_order.h), and each when what it depends on has been put.
class Link {
 public:
  virtual ~Link() = default;
  // Puts the next message on `stream` (CUstream): `bytes` > 0 at `data` are read there on the side
  // that sends, or written. The two sides agree on the bytes. `what` is for messages about a peer
  // that is late: "segment forward.1, channel 'h'".
  virtual absl::Status Put(void* data, int64_t bytes, void* stream, const std::string& what) = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_LINK_H_
