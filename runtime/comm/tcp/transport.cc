#include "runtime/comm/tcp/transport.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/reduce.h"
#include "runtime/comm/spin.h"

namespace oriel::runtime {
namespace {

// How long a rank that leaves waits for the others' answer.
constexpr std::chrono::seconds kFarewell{3};

const char* NameOf(TransferKind kind) {
  switch (kind) {
    case TransferKind::kMessage:
      return "a message";
    case TransferKind::kExchange:
      return "an exchange";
    case TransferKind::kGather:
      return "an all-gather";
    case TransferKind::kBroadcast:
      return "a broadcast";
    case TransferKind::kBarrier:
      return "a barrier";
  }
  return "an unknown collective";
}

}  // namespace

TcpTransport::TcpTransport(RankConnections connections, int spins)
    : rank_(connections.rank), spins_(spins), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (size_t rank = 0; rank < connections.sockets.size(); ++rank) {
    names_.push_back(static_cast<int64_t>(rank));
    peers_.push_back(std::make_unique<Peer>());
    peers_.back()->socket = std::move(connections.sockets[rank]);
    peers_.back()->address = connections.addresses[rank];
    peers_.back()->closed = peers_.back()->shut = !peers_.back()->socket.is_open();
  }
  if (peers_.size() > 1) thread_ = std::thread([this] { Run(); });
}

TcpTransport::~TcpTransport() {
  Leave();
  {
    Lock lock(mutex_);
    stopping_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::shared_ptr<TcpTransport::Transfer>> TcpTransport::Start(
    Side side, TransferKind kind, Address address, void* data, int64_t bytes) {
  auto transfer = std::make_shared<Transfer>();
  transfer->side = side;
  transfer->kind = kind;
  transfer->address = address;
  transfer->data = static_cast<char*>(data);
  transfer->bytes = bytes;
  Lock lock(mutex_);
  ORIEL_RETURN_IF_ERROR(reason_);
  if (leaving_) return Gone(rank_);
  transfer->id = next_id_++;
  if (side == kSender) {
    if (peers_[address.peer]->left) return Gone(address.peer);
    StartSend(lock, transfer);
  } else {
    StartReceive(lock, transfer);
    // What it has sent before it left arrives.
    if (peers_[address.peer]->left && !transfer->done) {
      FailTransfers(Gone(address.peer), [&](const Transfer& each) { return &each == &*transfer; });
    }
  }
  return transfer;
}

absl::Status TcpTransport::Wait(Transfer& transfer, bool background) {
  for (int spin = background ? spins_ : 0; spin < spins_ && !transfer.done; ++spin) Pause();
  Lock lock(mutex_);
  transfer.changed.wait(lock, [&] { return transfer.done && !transfer.busy; });
  return transfer.status;
}

void TcpTransport::GiveUp(const TransferPointer& transfer) {
  Lock lock(mutex_);
  if (!transfer->done) {
    if (transfer->side == kReceiver) {
      const auto found = posted_.find(KeyOf(transfer->address));
      if (found != posted_.end()) {
        auto& queue = found->second;
        queue.erase(std::remove(queue.begin(), queue.end(), transfer), queue.end());
        if (queue.empty()) posted_.erase(found);
      }
    } else if (transfer->address.peer == rank_) {
      const auto found = offers_.find(KeyOf(transfer->address));
      if (found != offers_.end()) {
        auto& queue = found->second;
        queue.erase(std::remove_if(queue.begin(), queue.end(),
                                   [&](const Offer& offer) { return offer.local == transfer; }),
                    queue.end());
        if (queue.empty()) offers_.erase(found);
      }
    }
    Finish(*transfer, absl::CancelledError("given up"));
  }
  transfer->changed.wait(lock, [&] { return !transfer->busy; });
  Detach(*transfer);
}

absl::Status TcpTransport::Check() {
  Lock lock(mutex_);
  return reason_;
}

void TcpTransport::Abort(const absl::Status& reason) {
  Lock lock(mutex_);
  if (reason_.ok()) AbortAll(lock, reason);
}

// Ends the job here and on the other ranks.
void TcpTransport::AbortAll(Lock& lock, const absl::Status& reason) {
  End(reason);
  for (size_t peer = 0; peer < peers_.size(); ++peer) SayWhy(lock, static_cast<int64_t>(peer));
}

void TcpTransport::SayWhy(Lock& lock, int64_t peer) {
  if (std::exchange(peers_[peer]->knows_why, true)) return;
  const std::string text(reason_.message().substr(0, kMaxAbortText));
  FrameHeader header = {};
  header.type = FrameType::kAbort;
  Write(lock, peer, header, text.data(), static_cast<int64_t>(text.size()), nullptr);
}

void TcpTransport::Leave() {
  Lock lock(mutex_);
  if (leaving_) return;
  leaving_ = true;  // nothing is started any more
  FailTransfers(Gone(rank_), [](const Transfer&) { return true; });
  FrameHeader header = {};
  header.type = FrameType::kLeave;
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    // It may see this rank leave before it has read why from others. Writing unlocks: the job may
    // end meanwhile.
    if (!reason_.ok()) SayWhy(lock, static_cast<int64_t>(peer));
    Write(lock, static_cast<int64_t>(peer), header, nullptr, 0, nullptr);
    peers_[peer]->parted = true;
  }
  Wake();
  peers_changed_.wait_for(lock, kFarewell, [&] {
    return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->closed; });
  });
}

void TcpTransport::NameRanks(std::vector<int64_t> names) {
  Lock lock(mutex_);
  names_ = std::move(names);
}

int64_t TcpTransport::OwnName() {
  Lock lock(mutex_);
  return names_[rank_];
}

absl::Status TcpTransport::Gone(int64_t peer) const {
  return absl::AbortedError(absl::StrCat("rank ", names_[peer], " has left"));
}

void TcpTransport::StartSend(Lock& lock, const TransferPointer& transfer) {
  const auto& [peer, context, tag] = transfer->address;
  if (peer == rank_) {
    const auto found = posted_.find(KeyOf(transfer->address));
    Offer offer;
    offer.kind = transfer->kind;
    offer.bytes = transfer->bytes;
    offer.local = transfer;
    if (found == posted_.end()) {
      offers_[KeyOf(transfer->address)].push_back(std::move(offer));
      return;
    }
    const TransferPointer receiver = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) posted_.erase(found);
    Match(lock, receiver, offer);
    return;
  }
  FrameHeader header = {};
  header.type = transfer->bytes <= kEagerBytes ? FrameType::kEager : FrameType::kOffer;
  header.kind = transfer->kind;
  header.context = context;
  header.tag = tag;
  header.sender = transfer->id;
  header.bytes = transfer->bytes;
  const bool eager = header.type == FrameType::kEager;
  if (eager && transfer->kind != TransferKind::kMessage) {
    Finish(*transfer, absl::OkStatus());
  } else {
    under_way_[transfer->id] = transfer;
  }
  Write(lock, peer, header, transfer->data, eager ? transfer->bytes : 0, nullptr);
}

void TcpTransport::StartReceive(Lock& lock, const TransferPointer& transfer) {
  const Key key = KeyOf(transfer->address);
  const auto found = offers_.find(key);
  if (found == offers_.end()) {
    posted_[key].push_back(transfer);
    return;
  }
  const Offer offer = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) offers_.erase(found);
  Match(lock, transfer, offer);
}

void TcpTransport::Match(Lock& lock, const TransferPointer& receiver, const Offer& offer) {
  const bool fits = receiver->kind == offer.kind && receiver->bytes == offer.bytes;
  if (offer.local != nullptr) {
    if (fits && offer.bytes > 0) std::memcpy(receiver->data, offer.local->data, offer.bytes);
    const absl::Status status =
        fits ? absl::OkStatus() : Disagreement(*receiver, offer.kind, offer.bytes);
    Finish(*receiver, status);
    Finish(*offer.local, status);
    return;
  }
  FrameHeader header = {};
  header.type = FrameType::kAccept;
  header.kind = receiver->kind;
  header.sender = offer.sender;
  header.receiver = receiver->id;
  header.bytes = receiver->bytes;
  if (!fits) {
    Finish(*receiver, Disagreement(*receiver, offer.kind, offer.bytes));
  } else if (offer.eager) {
    if (offer.bytes > 0) std::memcpy(receiver->data, offer.payload.data(), offer.bytes);
    Finish(*receiver, absl::OkStatus());
  } else {
    under_way_[receiver->id] = receiver;
  }
  if (!offer.eager || offer.kind == TransferKind::kMessage) {
    Write(lock, receiver->address.peer, header, nullptr, 0, nullptr);
  }
}

// `kind` and `bytes` are the other side's.
absl::Status TcpTransport::Disagreement(const Transfer& mine, TransferKind kind,
                                        int64_t bytes) const {
  const bool sends = mine.side == kSender;
  const int64_t sender = names_[sends ? rank_ : mine.address.peer];
  const int64_t receiver = names_[sends ? mine.address.peer : rank_];
  const int64_t sent = sends ? mine.bytes : bytes, received = sends ? bytes : mine.bytes;
  if (kind == TransferKind::kMessage && mine.kind == kind) {
    return MessageMismatch(sender, receiver, mine.address.tag, sent, received);
  }
  return absl::AbortedError(
      absl::StrCat("ranks disagree: rank ", sender, " is in ", NameOf(sends ? mine.kind : kind),
                   " and sends ", sent, " bytes, rank ", receiver, " is in ",
                   NameOf(sends ? kind : mine.kind), " and receives ", received, " bytes"));
}

// Its memory may still be in use: who waits for it waits for that too.
void TcpTransport::Finish(Transfer& transfer, absl::Status status) {
  transfer.status = std::move(status);
  transfer.done = true;
  under_way_.erase(transfer.id);
  transfer.changed.notify_all();
}

void TcpTransport::FailTransfers(const absl::Status& status,
                                 const std::function<bool(const Transfer&)>& which) {
  std::vector<TransferPointer> failed;
  for (const auto& [id, transfer] : under_way_) {
    if (which(*transfer)) failed.push_back(transfer);
  }
  for (auto at = posted_.begin(); at != posted_.end();) {
    auto& queue = at->second;
    for (const TransferPointer& transfer : queue) {
      if (which(*transfer)) failed.push_back(transfer);
    }
    queue.erase(std::remove_if(queue.begin(), queue.end(),
                               [&](const TransferPointer& transfer) { return which(*transfer); }),
                queue.end());
    at = queue.empty() ? posted_.erase(at) : std::next(at);
  }
  for (auto at = offers_.begin(); at != offers_.end();) {
    auto& queue = at->second;
    queue.erase(std::remove_if(queue.begin(), queue.end(),
                               [&](const Offer& offer) {
                                 if (offer.local == nullptr || !which(*offer.local)) return false;
                                 failed.push_back(offer.local);
                                 return true;
                               }),
                queue.end());
    at = queue.empty() ? offers_.erase(at) : std::next(at);
  }
  for (const TransferPointer& transfer : failed) {
    if (!transfer->busy) Detach(*transfer);
    Finish(*transfer, status);
  }
}

void TcpTransport::End(const absl::Status& reason) {
  if (!reason_.ok()) return;
  reason_ = reason;
  FailTransfers(reason, [](const Transfer&) { return true; });
}

}  // namespace oriel::runtime
