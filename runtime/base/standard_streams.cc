#include "runtime/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace oriel::runtime {

constexpr int kFailed = 1;

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
  if (status != 0 || (!fails && !failed_before) || errno == EPIPE) return status;
  std::fprintf(stderr, "%scannot write to stdout%s%s\n", prefix, errno == 0 ? "" : ": ",
               errno == 0 ? "" : std::strerror(errno));
  return kFailed;
}

}  // namespace oriel::runtime
