#include "runtime/launch/stop_signal.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "runtime/launch/options.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kSameRequestMs = 300;

std::atomic<int> g_requests{0};
std::atomic<int64_t> g_last_ms{-kSameRequestMs};
std::atomic<StopHandling> g_handling{StopHandling::kInteractive};
static_assert(std::atomic<int64_t>::is_always_lock_free, "used in a signal handler");

int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void Say(const char* text) {
  ssize_t ignored = write(STDERR_FILENO, text, std::strlen(text));
  (void)ignored;
}

void CountRequest() {
  const int64_t now = NowMs();
  if (now - g_last_ms.exchange(now) < kSameRequestMs) return;
  const int before = g_requests.fetch_add(1);
  const StopHandling handling = g_handling.load();
  if (handling == StopHandling::kRank) return;
  if (before == 0) {
    Say("\noriel-run: stopping after this step; once more to stop at once\n");
  } else if (handling == StopHandling::kInteractive) {
    _exit(kExitInterrupted);
  }
}

void OnSignal(int) {
  const int before = errno;  // of the code that is interrupted
  CountRequest();
  errno = before;
}

// From now on `signals` come to a thread that does nothing else, and not to the caller's and those
// that it starts: products of oneDNN (jit_avx_gemm_f32.cpp) have the stack pointer within a buffer
// on the heap, where a signal's frame would lie over what is in front of the buffer.
void KeepFromThisThread(const sigset_t& signals) {
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread([signals] {
      pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
      while (true) pause();
    }).detach();
  } catch (const std::system_error&) {  // no more threads: better a risk than no Ctrl-C
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

}  // namespace

void InstallStopHandlers(StopHandling handling) {
  g_handling = handling;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // Interrupted reads and waits go on: a step is finished as if nothing had happened.
  action.sa_flags = SA_RESTART;
  std::vector<int> signals = {SIGINT, SIGTERM};
  struct sigaction hangup = {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    signals.push_back(SIGHUP);
  }
  if (handling == StopHandling::kRank) signals.push_back(SIGUSR1);
  sigset_t all;
  sigemptyset(&all);
  for (const int number : signals) {
    sigaction(number, &action, nullptr);
    sigaddset(&all, number);
  }
  // A launcher computes nothing, and what it starts would have its mask.
  if (handling != StopHandling::kLauncher) KeepFromThisThread(all);
  signal(SIGXFSZ, SIG_IGN);  // a file above the limit (ulimit -f) is an error as a full disk is
  signal(SIGPIPE, SIG_IGN);  // who reads what is printed may go first: training goes on
}

int StopRequests() { return g_requests.load(); }

}  // namespace oriel::runtime
