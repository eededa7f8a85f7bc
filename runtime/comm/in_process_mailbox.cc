#include "runtime/comm/in_process_mailbox.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/reduce.h"
#include "runtime/comm/spin.h"

namespace oriel::runtime {
namespace {

using Side = InProcessMailbox::Side;
using Transfer = InProcessMailbox::Transfer;

Side Other(Side side) {
  return side == InProcessMailbox::kSender ? InProcessMailbox::kReceiver
                                           : InProcessMailbox::kSender;
}

}  // namespace

InProcessMailbox::InProcessMailbox(const std::vector<int64_t>& world_ranks)
    : world_ranks_(world_ranks),
      spins_(SpinsOf(static_cast<int64_t>(world_ranks.size()))),
      changed_(world_ranks.size()),
      left_(world_ranks.size()) {}

absl::StatusOr<std::shared_ptr<Transfer>> InProcessMailbox::Start(Side side, int64_t sender,
                                                                  int64_t receiver, int64_t tag,
                                                                  void* data, int64_t bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  ORIEL_RETURN_IF_ERROR(Ended(sender, receiver));
  std::deque<std::shared_ptr<Transfer>>& queue = one_sided_[{sender, receiver, tag}];
  std::shared_ptr<Transfer> transfer;
  if (queue.empty() || queue.front()->ends[side].started) {
    transfer = std::make_shared<Transfer>();
    transfer->ends[kSender].rank = sender;
    transfer->ends[kReceiver].rank = receiver;
    transfer->tag = tag;
    queue.push_back(transfer);
  } else {
    transfer = std::move(queue.front());
    queue.pop_front();
  }
  Transfer::End& mine = transfer->ends[side];
  const Transfer::End& peer = transfer->ends[Other(side)];
  mine.started = true;
  mine.data = data;
  mine.bytes = bytes;
  // The peer may have given up before.
  if (peer.started && transfer->state == Transfer::kOneSided) {
    transfer->state = peer.bytes == bytes ? Transfer::kReady : Transfer::kMismatched;
    changed_[peer.rank].notify_all();
  }
  return transfer;
}

absl::Status InProcessMailbox::Wait(Transfer& transfer, Side side) {
  const Transfer::End& from = transfer.ends[kSender];
  const Transfer::End& to = transfer.ends[kReceiver];
  for (int spin = 0; spin < spins_; ++spin) {
    const Transfer::State state = transfer.state.load(std::memory_order_relaxed);
    if (state != Transfer::kOneSided && state != Transfer::kCopying) break;
    Pause();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  for (;; changed_[transfer.ends[side].rank].wait(lock)) {
    const Transfer::State state = transfer.state;
    if (state == Transfer::kDone) return absl::OkStatus();
    if (state == Transfer::kCopying) continue;  // the peer finishes what it has begun
    if (state == Transfer::kMismatched) {
      return MessageMismatch(world_ranks_[from.rank], world_ranks_[to.rank], transfer.tag,
                             from.bytes, to.bytes);
    }
    ORIEL_RETURN_IF_ERROR(Ended(from.rank, to.rank));
    if (state == Transfer::kGivenUp) {
      const bool by_sender = transfer.given_up_by == kSender;
      return absl::AbortedError(
          absl::StrCat("rank ", world_ranks_[(by_sender ? from : to).rank], " has given up its ",
                       by_sender ? "send to" : "receive from", " rank ",
                       world_ranks_[(by_sender ? to : from).rank], " with tag ", transfer.tag));
    }
    if (state == Transfer::kReady) {
      transfer.state = Transfer::kCopying;
      lock.unlock();
      if (from.bytes > 0) std::memcpy(to.data, from.data, from.bytes);
      lock.lock();
      transfer.state = Transfer::kDone;
      changed_[transfer.ends[Other(side)].rank].notify_all();
      return absl::OkStatus();
    }
  }
}

void InProcessMailbox::GiveUp(Transfer& transfer, Side side) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (transfer.state == Transfer::kCopying) changed_[transfer.ends[side].rank].wait(lock);
  if (transfer.state != Transfer::kOneSided && transfer.state != Transfer::kReady) return;
  transfer.state = Transfer::kGivenUp;
  transfer.given_up_by = side;
  changed_[transfer.ends[Other(side)].rank].notify_all();
}

void InProcessMailbox::Abort(const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (reason_.ok()) reason_ = reason;
  for (std::condition_variable& changed : changed_) changed.notify_all();
}

void InProcessMailbox::Leave(int64_t rank, const absl::Status& reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (left_[rank].ok()) left_[rank] = reason;
  for (std::condition_variable& changed : changed_) changed.notify_all();
}

const absl::Status& InProcessMailbox::Ended(int64_t sender, int64_t receiver) const {
  if (!reason_.ok()) return reason_;
  return left_[sender].ok() ? left_[receiver] : left_[sender];
}

}  // namespace oriel::runtime
