#include "runtime/launch/rank_link.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace oriel::runtime {

socklen_t FillAbstractAddress(const std::string& name, sockaddr_un* address) {
  std::memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  // The first byte of an abstract name is zero.
  const size_t bytes = std::min(name.size(), sizeof address->sun_path - 1);
  std::memcpy(address->sun_path + 1, name.data(), bytes);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
}

RankLink::RankLink() {
  const char* name = std::getenv(kLauncherSocketVariable);
  if (name == nullptr || *name == '\0') return;
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address;
  const socklen_t length = FillAbstractAddress(name, &address);
  // A rank on another machine has no launcher to talk to.
  if (fd_ >= 0 && connect(fd_, reinterpret_cast<sockaddr*>(&address), length) != 0) {
    close(fd_);
    fd_ = -1;
  }
}

RankLink::~RankLink() {
  if (fd_ >= 0) close(fd_);
}

void RankLink::Start(int64_t rank) { Send(absl::StrCat("start ", rank)); }

void RankLink::Error(const absl::Status& status) {
  Send(absl::StrCat("error ", static_cast<int>(status.code()), " ",
                    absl::StrReplaceAll(status.message(), {{"\n", "\v"}})));
}

void RankLink::Done(int exit_status) { Send(absl::StrCat("done ", exit_status)); }

void RankLink::Send(const std::string& line) {
  if (fd_ < 0) return;
  const std::string text = line + "\n";
  for (size_t sent = 0; sent < text.size();) {
    ssize_t put = send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return;
    sent += put;
  }
}

}  // namespace oriel::runtime
