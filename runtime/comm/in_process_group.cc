#include "runtime/comm/in_process_group.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/comm/spin.h"

namespace oriel::runtime {
namespace {

constexpr uint32_t kAborted = 1;

void FutexWait(std::atomic<uint32_t>& word, uint32_t expected) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}

void FutexWakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

std::string Describe(const InProcessCall& call) {
  return absl::StrCat(call.operation, " of ", call.tensors, " buffers, ", call.bytes, " bytes");
}

bool Contains(const std::vector<int64_t>& ranks, int64_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

}  // namespace

InProcessGroup::InProcessGroup(std::vector<int64_t> world_ranks)
    : world_ranks_(std::move(world_ranks)),
      calls_(2 * world_ranks_.size()),
      spins_(SpinsOf(size())),
      mailbox_(world_ranks_) {}

absl::Status InProcessGroup::Check() {
  return word_.load() & kAborted ? Reason() : absl::OkStatus();
}

absl::Status InProcessGroup::Meet(bool background) {
  uint32_t word = word_.load();
  if (word & kAborted) return Reason();
  const uint32_t generation = word >> 1;
  if (arrived_.fetch_add(1) + 1 == size()) {
    arrived_.store(0);
    word_.fetch_add(2);
    if (sleepers_.load() > 0) FutexWakeAll(word_);
    return absl::OkStatus();
  }
  const int spins = background ? 0 : spins_;
  for (int spin = 0; spin < spins; ++spin) {
    if (word_.load(std::memory_order_acquire) != word) break;
    Pause();
  }
  while (true) {
    word = word_.load();
    // A meeting that took place is one, even if the group was aborted right after.
    if (word >> 1 != generation) return absl::OkStatus();
    if (word & kAborted) return Reason();
    sleepers_.fetch_add(1);
    FutexWait(word_, word);
    sleepers_.fetch_sub(1);
  }
}

absl::Status InProcessGroup::Agree(uint64_t sequence) {
  const InProcessCall& first = call(0, sequence);
  for (int64_t rank = 1; rank < size(); ++rank) {
    const InProcessCall& other = call(rank, sequence);
    if (other.signature == first.signature) continue;
    Abort(absl::AbortedError(absl::StrCat("ranks disagree: rank ", world_ranks_[0], " calls ",
                                          Describe(first), ", rank ", world_ranks_[rank], " calls ",
                                          Describe(other))));
    return Reason();
  }
  return absl::OkStatus();
}

absl::Status InProcessGroup::Begin(uint64_t sequence, bool background) {
  if (absl::Status status = Meet(background); !status.ok()) return Drained(std::move(status));
  busy_.fetch_add(1);
  absl::Status status = Check();
  if (status.ok()) status = Agree(sequence);
  if (status.ok()) return status;
  busy_.fetch_sub(1);
  return Drained(std::move(status));
}

absl::Status InProcessGroup::End(bool background) {
  busy_.fetch_sub(1);
  if (absl::Status status = Meet(background); !status.ok()) return Drained(std::move(status));
  return absl::OkStatus();
}

void InProcessGroup::Abort(const absl::Status& reason) {
  AbortCollectives(reason);
  mailbox_.Abort(reason);
}

void InProcessGroup::Leave(int64_t world_rank) {
  const absl::Status reason = InProcessWorld::Left(world_rank);
  AbortCollectives(reason);
  const auto place = std::find(world_ranks_.begin(), world_ranks_.end(), world_rank);
  mailbox_.Leave(place - world_ranks_.begin(), reason);
}

void InProcessGroup::AbortCollectives(const absl::Status& reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (reason_.ok()) reason_ = reason;
  }
  word_.fetch_or(kAborted);
  FutexWakeAll(word_);
}

absl::Status InProcessGroup::Reason() {
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

absl::Status InProcessGroup::Drained(absl::Status status) {
  while (busy_.load() != 0) sched_yield();
  return status;
}

std::shared_ptr<InProcessGroup> InProcessWorld::Join(const InProcessGroup* parent,
                                                     const std::vector<int64_t>& world_ranks,
                                                     int64_t ordinal) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Key key{parent, world_ranks, ordinal};
  Pending& pending = pending_[key];
  if (pending.group == nullptr) {
    pending.group = std::make_shared<InProcessGroup>(world_ranks);
    groups_.erase(std::remove_if(groups_.begin(), groups_.end(),
                                 [](const auto& group) { return group.expired(); }),
                  groups_.end());
    groups_.push_back(pending.group);
    if (!reason_.ok()) pending.group->Abort(reason_);
    for (const int64_t rank : left_) {
      if (Contains(world_ranks, rank)) pending.group->Leave(rank);
    }
  }
  std::shared_ptr<InProcessGroup> group = pending.group;
  if (++pending.joined == group->size()) pending_.erase(key);
  return group;
}

void InProcessWorld::Abort(const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!reason_.ok()) return;
  reason_ = reason;
  for (const auto& weak : groups_) {
    if (auto group = weak.lock()) group->Abort(reason);
  }
}

absl::Status InProcessWorld::Check() {
  std::lock_guard<std::mutex> lock(mutex_);
  return reason_;
}

void InProcessWorld::Leave(int64_t rank) {
  std::lock_guard<std::mutex> lock(mutex_);
  left_.push_back(rank);
  for (const auto& weak : groups_) {
    const auto group = weak.lock();
    if (group != nullptr && Contains(group->world_ranks(), rank)) group->Leave(rank);
  }
}

absl::Status InProcessWorld::Left(int64_t rank) {
  return absl::AbortedError(absl::StrCat("rank ", rank, " has left"));
}

}  // namespace oriel::runtime
