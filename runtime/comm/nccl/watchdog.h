// Looks whether collectives on a device end, and ends the job of one that does not.
//
// A collective that a rank never enters, or leaves because its process dies, never ends on the
// others: the device waits, and the host with it. A thread looks every few milliseconds at the
// time, at NCCL's errors, and at whether another rank has failed. A second one asks the device what
// has ended: it may be held up there by the very call of the host that waits for ever, and must not
// hold up the first.
#ifndef ORIEL_RUNTIME_COMM_NCCL_WATCHDOG_H_
#define ORIEL_RUNTIME_COMM_NCCL_WATCHDOG_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace oriel::runtime {

class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::chrono::milliseconds timeout{600'000};
    std::chrono::milliseconds period{20};
    // In the thread that asks the device, before anything else: makes it current.
    std::function<void()> begin = [] {};
    // Once, in the thread that looks, with why the job ends. Must not wait for the device.
    std::function<void(const absl::Status&)> on_failure = [](const absl::Status&) {};
  };

  explicit Watchdog(Options options);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Watches something until done() is true, which the second thread asks. When it does not end in
  // time, nor anything else that is watched: the failure DeadlineExceeded, "`what` has not ended
  // within .. s", where part() may then give what of it has not, instead (or ""); it must not wait.
  // `release` is called when it is over.
  void Watch(std::string what, std::function<bool()> done, std::function<void()> release,
             std::function<std::string()> part = nullptr);
  // Asks for failures until it is removed. Must not wait for the device.
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
    std::function<std::string()> part;
    Clock::time_point begin;
    std::atomic<bool> over{false};
  };

  // In a thread: calls `look` every period, until the watchdog stops.
  void Run(const std::function<void()>& look);
  void Look();
  absl::Status Find();
  void AskDevice();

  const Options options_;
  // Held while checks run: they end soon.
  std::mutex mutex_;
  std::condition_variable stopping_changed_;
  std::vector<std::shared_ptr<Watched>> watched_;
  Clock::time_point last_end_ = Clock::time_point::min();  // of anything that was watched
  std::map<int64_t, std::function<absl::Status()>> checks_;
  int64_t next_check_ = 0;
  bool stopping_ = false;
  std::mutex status_mutex_;
  absl::Status status_;
  std::thread looking_, asking_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_WATCHDOG_H_
