// The connections of the transport: frames that are written and read.
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/comm/tcp/transport.h"

namespace oriel::runtime {
namespace {

// Read at a time into memory that its owner may want to free.
constexpr int64_t kReadBytes = 1 << 20;
// Reads of one connection before the next one's turn.
constexpr int kReadsPerTurn = 32;

}  // namespace

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
        Finish(*receiver, absl::AbortedError(
                              absl::StrCat("rank ", names_[rank], " has given up its send to rank ",
                                           names_[rank_], " with tag ", receiver->address.tag)));
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
    AbortAll(lock, absl::AbortedError(absl::StrCat("rank ", names_[rank], " (at ", peer.address,
                                                   ") was lost: ", why)));
  }
}

}  // namespace oriel::runtime
