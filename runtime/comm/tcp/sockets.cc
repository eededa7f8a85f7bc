#include "runtime/comm/tcp/sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

absl::Status SocketError(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", strerror(error)));
}

absl::Status Taken(int port) {
  return port == 0 ? absl::ResourceExhaustedError("this machine has no free port")
                   : absl::AlreadyExistsError(absl::StrCat("port ", port, " is taken"));
}

// Until `events` can be had without waiting. Unavailable at the deadline.
absl::Status PollBefore(int fd, short events, Deadline deadline) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd target = {fd, events, 0};
    const int timeout = static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 1'000'000));
    const int ready = poll(&target, 1, timeout);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return SocketError("poll", errno);
    if (left.count() < 0) return absl::UnavailableError("no answer in time");
  }
}

std::string NumericAddress(const sockaddr_storage& address, socklen_t length) {
  char host[NI_MAXHOST] = "?";
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof host, nullptr, 0,
              NI_NUMERICHOST);
  const std::string text = host;
  // An IPv4 peer of a socket for both.
  return absl::StartsWith(text, "::ffff:") ? text.substr(7) : text;
}

absl::StatusOr<Socket> ConnectTo(const addrinfo& address, Deadline deadline) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return SocketError("socket", errno);
  if (connect(socket.fd(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return SocketError("connect", errno);
    ORIEL_RETURN_IF_ERROR(PollBefore(socket.fd(), POLLOUT, deadline));
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return SocketError("connect", error);
  }
  // Within one machine, a connection to a free port may by chance connect to itself.
  sockaddr_storage own = {}, peer = {};
  socklen_t own_length = sizeof own, peer_length = sizeof peer;
  getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&own), &own_length);
  getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&peer), &peer_length);
  if (own_length == peer_length && std::memcmp(&own, &peer, own_length) == 0) {
    return absl::UnavailableError("connect: nobody listens");
  }
  return socket;
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<Socket> ListenAt(int port) {
  // IPv6 takes IPv4 as well; a machine may have one of them only.
  for (const int family : {AF_INET6, AF_INET}) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open()) continue;
    const int on = 1, off = 0;
    // A job that starts again shall not wait for the last one's port.
    setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_storage address = {};
    socklen_t length = sizeof(sockaddr_in);
    if (family == AF_INET6) {
      setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      auto* any = reinterpret_cast<sockaddr_in6*>(&address);
      any->sin6_family = AF_INET6;
      any->sin6_addr = in6addr_any;
      any->sin6_port = htons(static_cast<uint16_t>(port));
      length = sizeof(sockaddr_in6);
    } else {
      auto* any = reinterpret_cast<sockaddr_in*>(&address);
      any->sin_family = AF_INET;
      any->sin_addr.s_addr = htonl(INADDR_ANY);
      any->sin_port = htons(static_cast<uint16_t>(port));
    }
    if (bind(socket.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
      if (errno == EADDRNOTAVAIL && family == AF_INET6) continue;
      if (errno == EADDRINUSE) return Taken(port);
      return SocketError("bind", errno);
    }
    if (listen(socket.fd(), 1024) != 0) {
      if (errno == EADDRINUSE) return Taken(port);
      return SocketError("listen", errno);
    }
    return socket;
  }
  return absl::UnavailableError("this machine has no TCP");
}

absl::StatusOr<int> PortOf(const Socket& socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return SocketError("getsockname", errno);
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

absl::StatusOr<int> FindFreePort() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(10'000, 32'767);
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int port = ports(random);
    if (ListenAt(port).ok()) return port;
  }
  return absl::ResourceExhaustedError("no port is free at which ranks can meet");
}

absl::StatusOr<Socket> AcceptBefore(const Socket& listener, Deadline deadline) {
  while (true) {
    ORIEL_RETURN_IF_ERROR(PollBefore(listener.fd(), POLLIN, deadline));
    const int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return Socket(fd);
    // Others mean that this connection has ended by now.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EBADF) {
      return SocketError("accept", errno);
    }
  }
}

absl::StatusOr<Socket> ConnectOnce(const std::string& host, int port, Deadline deadline) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (code != 0) {
    return absl::NotFoundError(absl::StrCat("there is no host '", host, "': ", gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  absl::Status status = absl::UnavailableError("no address");
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    absl::StatusOr<Socket> socket = ConnectTo(*address, deadline);
    if (socket.ok()) return socket;
    status = socket.status();
  }
  return status;
}

std::string PeerAddress(const Socket& socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  if (getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return "?";
  return NumericAddress(address, length);
}

std::string OwnAddress(const Socket& socket) {
  sockaddr_storage address = {};
  socklen_t length = sizeof address;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &length) != 0) return "?";
  return NumericAddress(address, length);
}

bool IsLoopback(const std::string& address) {
  return address == "::1" || absl::StartsWith(address, "127.");
}

absl::Status WriteBefore(const Socket& socket, const void* data, int64_t bytes, Deadline deadline) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = send(socket.fd(), next, bytes, MSG_NOSIGNAL);
    if (put > 0) {
      next += put;
      bytes -= put;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      ORIEL_RETURN_IF_ERROR(PollBefore(socket.fd(), POLLOUT, deadline));
    } else if (errno != EINTR) {
      return SocketError("send", errno);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadBefore(const Socket& socket, void* data, int64_t bytes, Deadline deadline) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(socket.fd(), next, bytes, 0);
    if (got > 0) {
      next += got;
      bytes -= got;
    } else if (got == 0) {
      return absl::UnavailableError("the other end has closed the connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      ORIEL_RETURN_IF_ERROR(PollBefore(socket.fd(), POLLIN, deadline));
    } else if (errno != EINTR) {
      return SocketError("recv", errno);
    }
  }
  return absl::OkStatus();
}

void TuneForRanks(const Socket& socket) {
  const int on = 1, idle_s = 5, interval_s = 3, probes = 5;
  // Data that is not acknowledged. Longer, for a process that is stopped for a while takes none.
  const unsigned user_timeout_ms = 60'000;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

}  // namespace oriel::runtime
