// What the in-process ranks share: a group's barrier, calls and messages, and a world's groups.
#ifndef ORIEL_RUNTIME_COMM_IN_PROCESS_GROUP_H_
#define ORIEL_RUNTIME_COMM_IN_PROCESS_GROUP_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/in_process_mailbox.h"

namespace oriel::runtime {

// What a rank brings to a collective. Cache lines of its own.
struct alignas(64) InProcessCall {
  const char* operation = "";
  uint64_t signature = 0;  // equal on all ranks, or they disagree
  int64_t bytes = 0;       // for the message about a disagreement
  int64_t tensors = 0;     // likewise
  absl::Span<const ReduceBuffer> buffers;
  absl::Span<const PieceBuffer> pieces;
  void* data = nullptr;
};

// State that the members of a group share: a barrier, what each brought, why it ended, and the
// messages.
//
// A collective is: publish the call, meet, touch the peers' buffers, meet again. Aborting wakes
// who waits at a meeting. An aborted rank must not return while a peer still touches its buffers:
// a rank counts itself in `busy_` before it looks whether the group is aborted, and an aborted
// rank waits for `busy_` to be 0. As all of these are sequentially consistent, one of the two
// sees the other.
class InProcessGroup {
 public:
  // `world_ranks`: the members' ranks in the world.
  explicit InProcessGroup(std::vector<int64_t> world_ranks);

  int64_t size() const { return static_cast<int64_t>(world_ranks_.size()); }
  const std::vector<int64_t>& world_ranks() const { return world_ranks_; }
  InProcessMailbox& mailbox() { return mailbox_; }

  // Slots alternate between collectives: a rank that is already in the next one must not
  // overwrite what a slow rank still reads. It cannot be two ahead.
  InProcessCall& call(int64_t rank, uint64_t sequence) {
    return calls_[(sequence & 1) * world_ranks_.size() + rank];
  }

  // An aborted group stays so; who checks this first never publishes into it again.
  absl::Status Check();
  // Waits until all ranks have arrived; not spinning where `background`.
  absl::Status Meet(bool background);
  // All ranks have published the same call. If not, every rank finds the same disagreement.
  absl::Status Agree(uint64_t sequence);
  // Meets and agrees. After this is OK, and until End(), the peers' buffers may be touched.
  absl::Status Begin(uint64_t sequence, bool background);
  absl::Status End(bool background);
  // Ends collectives and messages. The first reason stays.
  void Abort(const absl::Status& reason);
  // A member has left: ends collectives, and the messages from and to it.
  void Leave(int64_t world_rank);

 private:
  void AbortCollectives(const absl::Status& reason);
  absl::Status Reason();
  absl::Status Drained(absl::Status status);

  const std::vector<int64_t> world_ranks_;
  std::vector<InProcessCall> calls_;
  const int spins_;

  // Generation of the barrier times two, plus 1 when aborted.
  alignas(64) std::atomic<uint32_t> word_{0};
  alignas(64) std::atomic<int64_t> arrived_{0};
  std::atomic<int64_t> busy_{0};
  std::atomic<int64_t> sleepers_{0};

  std::mutex mutex_;
  absl::Status reason_;

  InProcessMailbox mailbox_;
};

// Every group of a world, so that an abort reaches all.
class InProcessWorld {
 public:
  // The same object for every member that asks for the `ordinal`-th group of `world_ranks`
  // within `parent`.
  std::shared_ptr<InProcessGroup> Join(const InProcessGroup* parent,
                                       const std::vector<int64_t>& world_ranks, int64_t ordinal);
  void Abort(const absl::Status& reason);
  // OK, or why the world was aborted; that a rank has left is no reason.
  absl::Status Check();
  // A rank has destroyed its communicator of the whole world.
  void Leave(int64_t rank);

  // What the others get then.
  static absl::Status Left(int64_t rank);

 private:
  using Key = std::tuple<const InProcessGroup*, std::vector<int64_t>, int64_t>;
  struct Pending {
    std::shared_ptr<InProcessGroup> group;
    int64_t joined = 0;
  };

  std::mutex mutex_;
  std::vector<std::weak_ptr<InProcessGroup>> groups_;
  std::map<Key, Pending> pending_;
  std::vector<int64_t> left_;
  absl::Status reason_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_IN_PROCESS_GROUP_H_
