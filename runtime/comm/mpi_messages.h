// Messages between MPI ranks, and how a rank waits for MPI.
//
// The data is one nonblocking MPI message of any size, from and to the caller's memory. A receive
// is given to MPI only when its message has come and its size is known: Open MPI 4.1 writes behind
// the end of a receive that is shorter than its message. So whatever a rank waits for, it looks for
// what has come meanwhile, and a rank that computes calls Progress(). The receiver also tells the
// sender its size, for in MPI only the receiver sees that they differ; a send is done when its data
// is and that size has arrived.
#ifndef ORIEL_RUNTIME_COMM_MPI_MESSAGES_H_
#define ORIEL_RUNTIME_COMM_MPI_MESSAGES_H_

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// Unavailable if this MPI has too few tags: a message takes two.
absl::Status CheckMpiTags();

class MpiReceive;

// The messages of a rank, in all its groups. Outlives them.
class MpiMessages {
 public:
  // A rank that waits tests `spins` times before it sleeps between tests.
  explicit MpiMessages(int spins) : spins_(spins) {}

  // As Communicator::Send and Receive, whose arguments have been checked. `comm` outlives the
  // message, and returns errors.
  absl::StatusOr<std::unique_ptr<Message>> Send(MPI_Comm comm, int64_t peer, int64_t tag,
                                                const void* data, int64_t bytes);
  absl::StatusOr<std::unique_ptr<Message>> Receive(MPI_Comm comm, int64_t peer, int64_t tag,
                                                   void* data, int64_t bytes);

  // Waits until done(), and takes what comes for receives meanwhile. MPI's own waiting never leaves
  // the core: training with 4 ranks on 2 cores took up to 40 times as long, and 2 times with Open
  // MPI's mpi_yield_when_idle.
  template <typename Done>
  void Poll(const Done& done) {
    for (int tests = 0;; ++tests) {
      Take();
      if (done()) return;
      if (tests >= spins_) Sleep();
    }
  }
  // Waits for a request. The code is the request's.
  int Await(MPI_Request& request);
  // As Communicator::Progress.
  void Progress();

  // A send or receive begins and ends.
  void Count(int change) { under_way_ += change; }
  // A receive whose message has not come. One that is destroyed before removes itself.
  void Add(MpiReceive* receive);
  void Remove(MpiReceive* receive);

 private:
  using Key = std::tuple<MPI_Comm, int, int>;  // peer, tag

  // Takes the messages that have come.
  void Take();
  static void Sleep();

  const int spins_;
  int under_way_ = 0;
  std::chrono::steady_clock::time_point next_progress_;
  // In the order in which they were started.
  std::map<Key, std::deque<MpiReceive*>> waiting_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_MPI_MESSAGES_H_
