#include "runtime/base/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace oriel::runtime {

namespace {

constexpr int kFailed = 1;

// Whether stdout is a pipe or a socket whose other end is closed.
bool IsReaderGone() {
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

int WithStandardStreams(const char* prefix, const std::function<int()>& run) {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest number that is free, as open() takes, is this one.
    if (fcntl(stream, F_GETFD) == -1 && errno == EBADF && open("/dev/null", O_RDWR) != stream) {
      return kFailed;
    }
  }
  const int status = run();
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  const bool fails = std::fflush(stdout) != 0;
  const int reason = errno;
  if (status != 0 || (!fails && !failed_before) || IsReaderGone()) return status;
  std::fprintf(stderr, "%scannot write to stdout%s%s\n", prefix, reason == 0 ? "" : ": ",
               reason == 0 ? "" : std::strerror(reason));
  return kFailed;
}

}  // namespace oriel::runtime
