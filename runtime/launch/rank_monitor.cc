#include "runtime/launch/rank_monitor.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/launch/rank_link.h"

namespace oriel::runtime {

absl::StatusOr<RankMonitor> RankMonitor::Listen() {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::InternalError(absl::StrCat("socket: ", strerror(errno)));
  const int64_t now = std::chrono::system_clock::now().time_since_epoch().count();
  std::string name = absl::StrCat("oriel-run-", getpid(), "-", absl::Hex(now));
  sockaddr_un address;
  const socklen_t length = FillAbstractAddress(name, &address);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(fd, 1024) != 0) {
    const int error = errno;
    close(fd);
    return absl::InternalError(absl::StrCat("cannot listen for ranks: ", strerror(error)));
  }
  return RankMonitor(std::move(name), fd);
}

RankMonitor::RankMonitor(RankMonitor&& other) noexcept
    : name_(std::move(other.name_)), listener_(std::exchange(other.listener_, -1)) {}

RankMonitor::~RankMonitor() {
  if (listener_ >= 0) close(listener_);
  for (Link& link : links_) {
    if (link.fd >= 0) close(link.fd);
  }
}

void RankMonitor::AddPollTargets(std::vector<pollfd>& targets) const {
  targets.push_back({listener_, POLLIN, 0});
  for (const Link& link : links_) {
    if (link.fd >= 0) targets.push_back({link.fd, POLLIN, 0});
  }
}

void RankMonitor::Update() {
  Accept();
  // All that was said comes before all ends: who was killed because of another's error shall
  // not be taken for the cause.
  std::vector<Link*> closed;
  for (Link& link : links_) {
    if (link.fd >= 0 && !Receive(link)) closed.push_back(&link);
  }
  for (Link* link : closed) HandleEnd(*link);
}

void RankMonitor::Accept() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      if (errno == EINTR) continue;
      return;
    }
    // Any process of this machine can connect to an abstract socket.
    ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != geteuid()) {
      close(fd);
      continue;
    }
    links_.emplace_back();
    links_.back().fd = fd;
    links_.back().pid = peer.pid;
  }
}

bool RankMonitor::Receive(Link& link) {
  char buffer[4096];
  bool open = true;
  while (true) {
    const ssize_t got = recv(link.fd, buffer, sizeof buffer, 0);
    if (got > 0) {
      link.received.append(buffer, got);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    open = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    break;
  }
  size_t end;
  while ((end = link.received.find('\n')) != std::string::npos) {
    const std::string line = link.received.substr(0, end);
    link.received.erase(0, end + 1);
    HandleLine(link, line);
  }
  return open;
}

void RankMonitor::HandleLine(Link& link, const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 2));
  int number = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words[1], &number)) return;
  if (words[0] == "start") {
    if (link.rank < 0) ++started_;
    link.rank = number;
  } else if (words[0] == "error" && words.size() == 3) {
    link.ended = true;
    failures_.push_back({link.rank, link.pid,
                         absl::Status(static_cast<absl::StatusCode>(number),
                                      absl::StrReplaceAll(words[2], {{"\v", "\n"}}))});
  } else if (words[0] == "done") {
    link.ended = true;
    if (link.rank == 0) exit_status_ = number;
  }
}

void RankMonitor::HandleEnd(Link& link) {
  close(std::exchange(link.fd, -1));
  // A connection that never said "start" is not one of our ranks.
  if (link.rank >= 0 && !link.ended) failures_.push_back({link.rank, link.pid, std::nullopt});
}

std::optional<RankMonitor::Failure> RankMonitor::failure() const {
  for (const Failure& failure : failures_) {
    if (!failure.error || !absl::IsAborted(*failure.error)) return failure;
  }
  return failures_.empty() ? std::nullopt : std::optional<Failure>(failures_.front());
}

RankMonitor::Heard RankMonitor::HeardOf(pid_t pid) const {
  for (const Link& link : links_) {
    if (link.pid == pid && link.rank >= 0) return link.ended ? Heard::kEnd : Heard::kStart;
  }
  return Heard::kNothing;
}

std::vector<pid_t> RankMonitor::running() const {
  std::vector<pid_t> pids;
  for (const Link& link : links_) {
    if (link.fd >= 0 && link.rank >= 0) pids.push_back(link.pid);
  }
  return pids;
}

}  // namespace oriel::runtime
