// A communicator on a slower network: for studies of what communication costs, and what hides it.
//
//   ORIEL_ASSIGN_OR_RETURN(LinkDelay delay, ParseLinkDelay("latency=50us,bandwidth=1GB/s"));
//   std::unique_ptr<Communicator> slow = DelayCommunication(*world, delay);
//
// Values and errors are those of the communicator beneath. What is added to its time is spent
// asleep, and takes no core.
//
// A rank has one link, over which its groups send one behind the other. A collective of n ranks
// with operands of B bytes takes the link for volume / bandwidth, and ends hops * latency later:
//
//                     hops      volume
//   all-reduce        2 (n-1)   2 B (n-1)/n     ring: a reduce-scatter and an all-gather
//   all-gather        n-1       B (n-1)         B: of one rank's piece
//   reduce-scatter    n-1       B (n-1)/n
//   all-to-all        n-1       B (n-1)/n
//   broadcast         n-1       B               chain
//   barrier           log2 n    0               rounded up
//
// which is what `oriel inspect` calls the volume of a plan's collectives. Several operands are one
// collective. That time begins when the collective is done beneath, on each rank. A group of one
// rank takes none.
//
// A message takes its sender's link for bytes / bandwidth from when it is sent, and arrives
// `latency` later; the sender may write over it once it has left the link. So what is sent early
// has arrived when it is waited for. One to oneself takes no time.
#ifndef ORIEL_RUNTIME_COMM_LINK_DELAY_H_
#define ORIEL_RUNTIME_COMM_LINK_DELAY_H_

#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

struct LinkDelay {
  std::chrono::nanoseconds latency{0};
  double bandwidth = 0;  // bytes per second; 0: no limit
};

// "latency=50us,bandwidth=1GB/s", or one of them. Times in ns, us, ms or s; bandwidths in B/s,
// kB/s, MB/s or GB/s (powers of 1000). InvalidArgument says what is wrong.
absl::StatusOr<LinkDelay> ParseLinkDelay(absl::string_view text);

// `world` is slowed down, and so are the groups that are made of the result; both outlive them.
// Ranks whose clocks differ (of different machines) never wait longer for a message than if it was
// sent when they began to wait.
std::unique_ptr<Communicator> DelayCommunication(Communicator& world, const LinkDelay& delay);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_LINK_DELAY_H_
