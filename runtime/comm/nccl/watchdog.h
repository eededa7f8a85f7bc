// Looks whether collectives on a device end, and ends the job of one that does not.
//
// A collective that a rank never enters, or leaves because its process dies, never ends on the
// others: the device waits, and the host with it. A thread looks every few milliseconds at what is
// on its way, at NCCL's errors, and at whether another rank has failed.
#ifndef ORIEL_RUNTIME_COMM_NCCL_WATCHDOG_H_
#define ORIEL_RUNTIME_COMM_NCCL_WATCHDOG_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"

namespace oriel::runtime {

class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::chrono::milliseconds timeout{600'000};
    std::chrono::milliseconds period{20};
    // In the thread, before anything else: makes the device current.
    std::function<void()> begin = [] {};
    // Once, in the thread, with why the job ends.
    std::function<void(const absl::Status&)> on_failure = [](const absl::Status&) {};
  };

  explicit Watchdog(Options options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Watches something until done() is true, which the thread asks. Past the time: the failure
  // DeadlineExceeded, "`what` has not ended within .. s". `release` is called when it is over.
  void Watch(std::string what, std::function<bool()> done, std::function<void()> release);
  // Asks for failures until it is removed.
  int64_t AddCheck(std::function<absl::Status()> check);
  // After it returns, the check does not run.
  void RemoveCheck(int64_t number);
  // Ends the job as if the thread had found it.
  void Fail(const absl::Status& reason);
  // OK, or why the job has ended.
  absl::Status status();

 private:
  struct Watched {
    std::string what;
    std::function<bool()> done;
    std::function<void()> release;
    Clock::time_point deadline;
  };

  void Run();
  absl::Status Look();

  const Options options_;
  // Held while checks and done() run: they end soon.
  std::mutex mutex_;
  std::condition_variable stopping_changed_;
  std::list<Watched> watched_;
  std::map<int64_t, std::function<absl::Status()>> checks_;
  int64_t next_check_ = 0;
  bool stopping_ = false;
  std::mutex status_mutex_;
  absl::Status status_;
  std::thread thread_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_WATCHDOG_H_
