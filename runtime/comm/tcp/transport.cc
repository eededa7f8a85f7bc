#include "runtime/comm/tcp/transport.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/reduce.h"
#include "runtime/comm/spin.h"

namespace oriel::runtime {
namespace {

// Read at a time into memory that its owner may want to free.
constexpr int64_t kReadBytes = 1 << 20;
// Reads of one connection before the next one's turn.
constexpr int kReadsPerTurn = 32;
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
  const std::string text(reason.message().substr(0, kMaxAbortText));
  End(reason);
  FrameHeader header = {};
  header.type = FrameType::kAbort;
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    Write(lock, static_cast<int64_t>(peer), header, text.data(), static_cast<int64_t>(text.size()),
          nullptr);
  }
}

void TcpTransport::Leave() {
  Lock lock(mutex_);
  if (leaving_) return;
  leaving_ = true;  // nothing is started any more
  FailTransfers(Gone(rank_), [](const Transfer&) { return true; });
  FrameHeader header = {};
  header.type = FrameType::kLeave;
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    Write(lock, static_cast<int64_t>(peer), header, nullptr, 0, nullptr);
    peers_[peer]->parted = true;
  }
  Wake();
  peers_changed_.wait_for(lock, kFarewell, [&] {
    return std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->closed; });
  });
}

absl::Status TcpTransport::Gone(int64_t peer) const {
  return absl::AbortedError(absl::StrCat("rank ", peer, " has left"));
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
  const int64_t sender = sends ? rank_ : mine.address.peer;
  const int64_t receiver = sends ? mine.address.peer : rank_;
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

template <typename Which>
void TcpTransport::FailTransfers(const absl::Status& status, const Which& which) {
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

void TcpTransport::Write(Lock& lock, int64_t rank, const FrameHeader& header, const char* payload,
                         int64_t bytes, TransferPointer owner) {
  Peer& peer = *peers_[rank];
  if (peer.shut) return;
  const bool borrowed = owner == nullptr && bytes > 0;
  peer.out.push_back({header, payload, bytes, std::move(owner), {}});
  peer.out.back().header.bytes = header.type == FrameType::kAbort ? bytes : header.bytes;
  const uint64_t number = peer.first_out + peer.out.size() - 1;
  if (peer.writing) {
    if (borrowed) Detach(peer.out.back());
    return;
  }
  Flush(lock, peer);
  // What is left of the payload is the caller's memory.
  if (borrowed && number >= peer.first_out) Detach(peer.out[number - peer.first_out]);
  if (!peer.out.empty()) Wake();
}

void TcpTransport::Flush(Lock& lock, Peer& peer) {
  peer.writing = true;
  while (!peer.out.empty() && !peer.shut) {
    OutFrame& frame = peer.out.front();
    constexpr int64_t kHeader = sizeof(FrameHeader);
    iovec parts[2] = {};
    int count = 0;
    if (frame.written < kHeader) {
      parts[count++] = {reinterpret_cast<char*>(&frame.header) + frame.written,
                        static_cast<size_t>(kHeader - frame.written)};
    }
    const int64_t payload_written = std::max<int64_t>(frame.written - kHeader, 0);
    if (frame.bytes > payload_written) {
      parts[count++] = {const_cast<char*>(frame.payload) + payload_written,
                        static_cast<size_t>(frame.bytes - payload_written)};
    }
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const TransferPointer owner = frame.owner;
    if (owner != nullptr) owner->busy = true;
    const int fd = peer.socket.fd();
    lock.unlock();
    const ssize_t put = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    const int error = errno;
    lock.lock();
    if (owner != nullptr) {
      owner->busy = false;
      if (owner->done) {  // it has failed meanwhile
        Detach(*owner);
        owner->changed.notify_all();
      }
    }
    if (put > 0) {
      WroteSome(peer, put);
      if (peer.left && owner != nullptr && !owner->done) {
        Finish(*owner, Gone(owner->address.peer));
        Detach(*owner);
      }
    } else if (error == EAGAIN || error == EWOULDBLOCK) {
      break;
    } else if (error != EINTR) {
      // The thread that reads sees why.
      peer.shut = true;
    }
  }
  peer.writing = false;
  if (peer.shut) {
    peer.first_out += peer.out.size();
    peer.out.clear();
  }
}

void TcpTransport::WroteSome(Peer& peer, int64_t bytes) {
  if (peer.out.empty()) return;
  OutFrame& frame = peer.out.front();
  frame.written += bytes;
  if (frame.written < static_cast<int64_t>(sizeof(FrameHeader)) + frame.bytes) return;
  const TransferPointer owner = std::move(frame.owner);
  peer.out.pop_front();
  ++peer.first_out;
  if (owner != nullptr && !owner->done) Finish(*owner, absl::OkStatus());
}

void TcpTransport::Detach(OutFrame& frame) {
  frame.owner = nullptr;
  if (frame.bytes == 0 || !frame.owned.empty()) return;
  frame.owned.assign(frame.payload, frame.payload + frame.bytes);
  frame.payload = frame.owned.data();
}

void TcpTransport::Detach(const Transfer& transfer) {
  if (transfer.side != kSender) return;
  for (OutFrame& frame : peers_[transfer.address.peer]->out) {
    if (frame.owner.get() == &transfer) Detach(frame);
  }
}

void TcpTransport::Wake() const {
  const uint64_t one = 1;
  ssize_t ignored = write(wake_.fd(), &one, sizeof one);
  (void)ignored;
}

void TcpTransport::Run() {
  std::vector<pollfd> targets;
  std::vector<int64_t> ranks;
  Lock lock(mutex_);
  while (!stopping_) {
    targets.assign(1, {wake_.fd(), POLLIN, 0});
    ranks.assign(1, -1);
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
      Peer& peer = *peers_[rank];
      if (peer.closed) continue;
      // A side of the connection has nothing more to say once either rank has left.
      if ((peer.left || peer.parted) && peer.out.empty() && !peer.shut && !peer.writing) {
        shutdown(peer.socket.fd(), SHUT_WR);
        peer.shut = true;
      }
      const bool writes = !peer.out.empty() && !peer.writing && !peer.shut;
      targets.push_back({peer.socket.fd(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
      ranks.push_back(static_cast<int64_t>(rank));
    }
    lock.unlock();
    poll(targets.data(), targets.size(), /*timeout=*/-1);
    if (targets[0].revents != 0) {
      uint64_t ignored;
      ssize_t got = read(wake_.fd(), &ignored, sizeof ignored);
      (void)got;
    }
    for (size_t i = 1; i < targets.size(); ++i) {
      if ((targets[i].revents & ~POLLOUT) != 0) Read(ranks[i]);
    }
    lock.lock();
    for (size_t i = 1; i < targets.size(); ++i) {
      Peer& peer = *peers_[ranks[i]];
      if ((targets[i].revents & POLLOUT) != 0 && !peer.writing && !peer.closed) Flush(lock, peer);
    }
  }
}

void TcpTransport::Read(int64_t rank) {
  Lock lock(mutex_);
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    if (!ReadSome(lock, rank)) return;
  }
}

// False when there is nothing to read now, or ever.
bool TcpTransport::ReadSome(Lock& lock, int64_t rank) {
  Peer& peer = *peers_[rank];
  char* place = nullptr;
  int64_t wanted = 0;
  char trash[16 << 10];
  const bool is_header = peer.header_read < static_cast<int64_t>(sizeof peer.header);
  if (is_header) {
    place = reinterpret_cast<char*>(&peer.header) + peer.header_read;
    wanted = static_cast<int64_t>(sizeof peer.header) - peer.header_read;
  } else {
    wanted = std::min(peer.payload_left, kReadBytes);
    const int64_t offset = peer.header.bytes - peer.payload_left;
    if (peer.target != nullptr && peer.target->done) {  // failed, or given up
      peer.target = nullptr;
      peer.discards = true;
    }
    if (peer.discards) {
      place = trash;
      wanted = std::min<int64_t>(wanted, sizeof trash);
    } else {
      place = (peer.target != nullptr ? peer.target->data : peer.buffer.data()) + offset;
    }
  }
  if (peer.target != nullptr) peer.target->busy = true;
  const int fd = peer.socket.fd();
  lock.unlock();
  const ssize_t got = recv(fd, place, wanted, MSG_DONTWAIT);
  const int error = errno;
  lock.lock();
  if (peer.target != nullptr) {
    peer.target->busy = false;
    if (peer.target->done) peer.target->changed.notify_all();
  }
  if (got < 0 && error == EINTR) return true;
  if (got < 0 && (error == EAGAIN || error == EWOULDBLOCK)) return false;
  if (got <= 0) {
    Close(lock, rank, got == 0 ? "it closed the connection" : strerror(error));
    return false;
  }
  if (is_header) {
    peer.header_read += got;
    if (got == wanted) BeginFrame(lock, rank);
  } else {
    peer.payload_left -= got;
    if (peer.payload_left == 0) EndFrame(lock, rank);
  }
  return !peer.closed;
}

// The header has come.
void TcpTransport::BeginFrame(Lock& lock, int64_t rank) {
  Peer& peer = *peers_[rank];
  const FrameHeader& header = peer.header;
  peer.target = nullptr;
  peer.discards = false;
  peer.payload_left = 0;
  const bool eager = header.type == FrameType::kEager, ends = header.type == FrameType::kAbort;
  if (header.bytes < 0 || (eager && header.bytes > kEagerBytes) ||
      (ends && header.bytes > kMaxAbortText) || header.type < FrameType::kOffer ||
      header.type > FrameType::kLeave) {
    Close(lock, rank, "it sent what is no frame; is it of another version of Oriel?");
    return;
  }
  if (eager || ends) {
    peer.payload_left = header.bytes;
    const auto found = posted_.find({rank, header.context, header.tag});
    const TransferPointer receiver =
        eager && found != posted_.end() ? found->second.front() : nullptr;
    if (receiver != nullptr && receiver->kind == header.kind && receiver->bytes == header.bytes) {
      found->second.pop_front();
      if (found->second.empty()) posted_.erase(found);
      under_way_[receiver->id] = receiver;
      peer.target = receiver;
    } else {
      peer.buffer.resize(header.bytes);
    }
  } else if (header.type == FrameType::kData) {
    peer.payload_left = header.bytes;
    const auto found = under_way_.find(header.receiver);
    if (found != under_way_.end() && found->second->side == kReceiver &&
        found->second->bytes == header.bytes) {
      peer.target = found->second;
    } else {
      peer.discards = true;  // it was given up
    }
  }
  if (peer.payload_left == 0) EndFrame(lock, rank);
}

// All of the frame has come.
void TcpTransport::EndFrame(Lock& lock, int64_t rank) {
  Peer& peer = *peers_[rank];
  const FrameHeader header = peer.header;
  peer.header_read = 0;
  const TransferPointer target = std::exchange(peer.target, nullptr);
  switch (header.type) {
    case FrameType::kOffer:
    case FrameType::kEager: {
      if (target != nullptr || peer.discards) {
        if (target != nullptr && !target->done) Finish(*target, absl::OkStatus());
        if (target != nullptr && header.kind == TransferKind::kMessage) {
          FrameHeader answer = header;
          answer.type = FrameType::kAccept;
          answer.receiver = target->id;
          Write(lock, rank, answer, nullptr, 0, nullptr);
        }
        return;
      }
      Offer offer;
      offer.kind = header.kind;
      offer.sender = header.sender;
      offer.bytes = header.bytes;
      offer.eager = header.type == FrameType::kEager;
      if (offer.eager) offer.payload = std::exchange(peer.buffer, {});
      // One may have been asked for meanwhile.
      const Key key{rank, header.context, header.tag};
      const auto found = posted_.find(key);
      if (found == posted_.end()) {
        offers_[key].push_back(std::move(offer));
        return;
      }
      const TransferPointer receiver = found->second.front();
      found->second.pop_front();
      if (found->second.empty()) posted_.erase(found);
      Match(lock, receiver, offer);
      return;
    }
    case FrameType::kAccept:
      return Accepted(lock, rank, header);
    case FrameType::kData:
      if (target != nullptr && !target->done) Finish(*target, absl::OkStatus());
      return;
    case FrameType::kCancel:
      if (const auto found = under_way_.find(header.receiver); found != under_way_.end()) {
        const TransferPointer receiver = found->second;
        Finish(*receiver,
               absl::AbortedError(absl::StrCat("rank ", rank, " has given up its send to rank ",
                                               rank_, " with tag ", receiver->address.tag)));
      }
      return;
    case FrameType::kAbort:
      return End(absl::AbortedError(std::string(peer.buffer.begin(), peer.buffer.end())));
    case FrameType::kLeave:
      peer.left = true;
      // What is being written to it may be all that it wanted: who writes sees.
      FailTransfers(Gone(rank), [rank](const Transfer& each) {
        return each.address.peer == rank && !(each.side == kSender && each.busy);
      });
      return;
  }
}

void TcpTransport::Accepted(Lock& lock, int64_t rank, const FrameHeader& header) {
  const auto found = under_way_.find(header.sender);
  FrameHeader answer = header;
  if (found == under_way_.end() || found->second->side != kSender) {
    // It was given up. Of an eager one the bytes have come already.
    answer.type = FrameType::kCancel;
    Write(lock, rank, answer, nullptr, 0, nullptr);
    return;
  }
  const TransferPointer sender = found->second;
  if (sender->bytes != header.bytes || sender->kind != header.kind) {
    Finish(*sender, Disagreement(*sender, header.kind, header.bytes));
  } else if (sender->bytes <= kEagerBytes) {
    Finish(*sender, absl::OkStatus());
  } else {
    answer.type = FrameType::kData;
    Write(lock, rank, answer, sender->data, sender->bytes, sender);
  }
}

// Nothing more comes from this rank.
void TcpTransport::Close(Lock& lock, int64_t rank, const std::string& why) {
  Peer& peer = *peers_[rank];
  if (peer.closed) return;
  peer.closed = peer.shut = true;
  if (!peer.writing) {
    peer.first_out += peer.out.size();
    peer.out.clear();
  }
  shutdown(peer.socket.fd(), SHUT_RDWR);
  peers_changed_.notify_all();
  // The others see it too, but perhaps not before they see this rank end because of it.
  if (!peer.left && !leaving_ && reason_.ok()) {
    AbortAll(lock, absl::AbortedError(
                       absl::StrCat("rank ", rank, " (at ", peer.address, ") was lost: ", why)));
  }
}

}  // namespace oriel::runtime
