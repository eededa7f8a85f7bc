// Messages between the in-process ranks of a group.
#ifndef ORIEL_RUNTIME_COMM_IN_PROCESS_MAILBOX_H_
#define ORIEL_RUNTIME_COMM_IN_PROCESS_MAILBOX_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

// Where the two sides of a message meet.
//
// Once both have started it, the one that waits first copies it, without the lock. Every change of
// a transfer's state is made with the lock: neither side starts to copy after the group has ended
// or one side has given up, and neither returns while the other one copies.
class InProcessMailbox {
 public:
  enum Side { kSender, kReceiver };

  struct Transfer {
    enum State { kOneSided, kReady, kCopying, kDone, kMismatched, kGivenUp };

    struct End {
      int64_t rank;  // of the group
      bool started = false;
      void* data = nullptr;
      int64_t bytes = 0;
    };
    End ends[2];  // by side
    int64_t tag;
    Side given_up_by = kSender;
    // Atomic for those who spin; what goes with a state is read with the lock.
    std::atomic<State> state{kOneSided};
  };

  explicit InProcessMailbox(const std::vector<int64_t>& world_ranks);

  // Starts one side of a message between two ranks of the group. Aborted if the group has ended or
  // the peer has left.
  absl::StatusOr<std::shared_ptr<Transfer>> Start(Side side, int64_t sender, int64_t receiver,
                                                  int64_t tag, void* data, int64_t bytes);
  absl::Status Wait(Transfer& transfer, Side side);
  // This side does not wait any more. After it returns, its memory is not touched.
  void GiveUp(Transfer& transfer, Side side);

  // Ends all messages that are not done. The first reason stays.
  void Abort(const absl::Status& reason);
  // Ends those from and to a rank of the group.
  void Leave(int64_t rank, const absl::Status& reason);

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t>;  // sender, receiver, tag

  // With the lock: why a message between the two ranks cannot be done any more, if so.
  const absl::Status& Ended(int64_t sender, int64_t receiver) const;

  const std::vector<int64_t> world_ranks_;
  const int spins_;

  std::mutex mutex_;
  // Of each rank: a transfer of it has changed, or messages have ended.
  std::vector<std::condition_variable> changed_;
  // Of each key, in the order in which they were started; all lack the same side.
  std::map<Key, std::deque<std::shared_ptr<Transfer>>> one_sided_;
  absl::Status reason_;
  std::vector<absl::Status> left_;  // of each rank
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_IN_PROCESS_MAILBOX_H_
