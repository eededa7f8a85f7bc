// TCP sockets with deadlines: what ranks meet and are connected by.
#ifndef ORIEL_RUNTIME_COMM_TCP_SOCKETS_H_
#define ORIEL_RUNTIME_COMM_TCP_SOCKETS_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace oriel::runtime {

using Deadline = std::chrono::steady_clock::time_point;

// Owns a file descriptor. Nonblocking, not inherited by other programs.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// Listens at `port` of all addresses of this machine; 0: at any free port, which PortOf tells.
// AlreadyExists if another process listens there.
absl::StatusOr<Socket> ListenAt(int port);
absl::StatusOr<int> PortOf(const Socket& socket);
// A port at which nobody listens: below those that Linux gives to whoever asks for any (by default
// from 32768), of which another process may get it before a job's rank 0 listens.
absl::StatusOr<int> FindFreePort();
// Unavailable when nobody connects before the deadline.
absl::StatusOr<Socket> AcceptBefore(const Socket& listener, Deadline deadline);
// One attempt for each address of `host`. NotFound if there is no such host, Unavailable if it does
// not answer (it may later).
absl::StatusOr<Socket> ConnectOnce(const std::string& host, int port, Deadline deadline);

// The numeric address of the other end, or of this one.
std::string PeerAddress(const Socket& socket);
std::string OwnAddress(const Socket& socket);
bool IsLoopback(const std::string& address);

// All `bytes`. Unavailable when the other end closes, or at the deadline.
absl::Status WriteBefore(const Socket& socket, const void* data, int64_t bytes, Deadline deadline);
absl::Status ReadBefore(const Socket& socket, void* data, int64_t bytes, Deadline deadline);

// For a connection that is used for long: small messages go at once, and a machine that has gone is
// noticed after 20 to 60 s.
void TuneForRanks(const Socket& socket);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_TCP_SOCKETS_H_
