// Messages between MPI ranks, and how a rank waits for MPI.
//
// The data is one nonblocking MPI message of any size, from and to the caller's memory. A receive
// is given to MPI only when its message has come and its size is known: Open MPI 4.1 writes behind
// the end of a receive that is shorter than its message. So whatever a rank waits for, it looks for
// what has come meanwhile, and a rank that computes calls Progress(). The receiver also tells the
// sender its size, for in MPI only the receiver sees that they differ; a send is done when its data
// is and that size has come.
//
// Each thread that waits in MPI, for a message or in a collective, looks for what has come: so
// messages also go on while a communication stream works.
#ifndef ORIEL_RUNTIME_COMM_MPI_MESSAGES_H_
#define ORIEL_RUNTIME_COMM_MPI_MESSAGES_H_

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// Unavailable if this MPI has too few tags: a message takes two.
absl::Status CheckMpiTags();

// The messages of a rank, in all its groups. Outlives them. Thread-safe, but for a message itself.
class MpiMessages {
 public:
  using Clock = std::chrono::steady_clock;
  using Key = std::pair<int, int>;  // peer, tag of MPI

  // A message that MPI has matched, and nobody has received.
  struct Arrived {
    MPI_Message message;
    int64_t bytes;
  };
  // Whoever waits for one. Any thread may bring it.
  class Waiter {
   public:
    virtual ~Waiter() = default;
    virtual void Accept(Arrived arrived) = 0;
  };

  // A rank that waits looks again and again for `spin`, then sleeps between looks.
  explicit MpiMessages(Clock::duration spin) : spin_(spin) {}

  // As Communicator::Send and Receive, whose arguments have been checked. `comm` outlives the
  // message, and returns errors.
  absl::StatusOr<std::unique_ptr<Message>> Send(MPI_Comm comm, int64_t peer, int64_t tag,
                                                const void* data, int64_t bytes);
  absl::StatusOr<std::unique_ptr<Message>> Receive(MPI_Comm comm, int64_t peer, int64_t tag,
                                                   void* data, int64_t bytes);

  // Waits until done(), and takes what comes meanwhile. MPI's own waiting never leaves the core:
  // training with 4 ranks on 2 cores took up to 40 times as long, and 2 times with Open MPI's
  // mpi_yield_when_idle.
  //
  // A thread in the background sleeps between looks from the start.
  template <typename Done>
  void Poll(const Done& done, bool background = false) {
    Take();
    if (done()) return;
    const Clock::time_point end = Clock::now() + (background ? Clock::duration() : spin_);
    while (true) {
      if (Clock::now() >= end) Sleep();
      Take();
      if (done()) return;
    }
  }
  // Waits for a request. The code is the request's.
  int Await(MPI_Request& request, bool background = false);
  // As Communicator::Progress.
  void Progress();

  // A send or receive begins, and ends.
  void Begin(MPI_Comm comm);
  void End(MPI_Comm comm);
  // A communicator ends.
  void Forget(MPI_Comm comm);
  // Each message of a key goes to one who waits for the key, in the order of these calls. Who does
  // not wait any more says so; after that it gets none.
  void Add(MPI_Comm comm, Key key, Waiter* waiter);
  void Remove(MPI_Comm comm, Key key, Waiter* waiter);

 private:
  // Of a communicator.
  struct Lane {
    int under_way = 0;
    std::map<Key, std::deque<Waiter*>> waiting;
    std::map<Key, std::deque<Arrived>> arrived;  // before somebody waited
  };

  // Looks for what has come, once for each communicator that has messages under way: each look may
  // cost a microsecond.
  void Take();
  static void Sleep();

  const Clock::duration spin_;
  std::atomic<Clock::time_point> next_progress_{Clock::time_point()};
  std::mutex mutex_;  // of the following
  std::map<MPI_Comm, Lane> lanes_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_MPI_MESSAGES_H_
