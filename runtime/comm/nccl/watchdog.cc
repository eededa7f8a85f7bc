#include "runtime/comm/nccl/watchdog.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

Watchdog::Watchdog(Options options) : options_(std::move(options)), thread_([this] { Run(); }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stopping_changed_.notify_all();
  thread_.join();
  for (Watched& watched : watched_) watched.release();
}

void Watchdog::Watch(std::string what, std::function<bool()> done, std::function<void()> release) {
  std::lock_guard<std::mutex> lock(mutex_);
  watched_.push_back(
      {std::move(what), std::move(done), std::move(release), Clock::now() + options_.timeout});
}

int64_t Watchdog::AddCheck(std::function<absl::Status()> check) {
  std::lock_guard<std::mutex> lock(mutex_);
  checks_[next_check_] = std::move(check);
  return next_check_++;
}

void Watchdog::RemoveCheck(int64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  checks_.erase(number);
}

void Watchdog::Fail(const absl::Status& reason) {
  {
    std::lock_guard<std::mutex> lock(status_mutex_);
    if (!status_.ok()) return;
    status_ = reason;
  }
  options_.on_failure(reason);
}

absl::Status Watchdog::status() {
  std::lock_guard<std::mutex> lock(status_mutex_);
  return status_;
}

void Watchdog::Run() {
  options_.begin();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    absl::Status found = status().ok() ? Look() : absl::OkStatus();
    if (!found.ok()) {
      lock.unlock();
      Fail(found);
      lock.lock();
    }
    stopping_changed_.wait_for(lock, options_.period, [this] { return stopping_; });
  }
}

// With the mutex.
absl::Status Watchdog::Look() {
  for (const auto& [number, check] : checks_) ORIEL_RETURN_IF_ERROR(check());
  const Clock::time_point now = Clock::now();
  for (auto at = watched_.begin(); at != watched_.end();) {
    if (at->done()) {
      at->release();
      at = watched_.erase(at);
      continue;
    }
    if (now > at->deadline) {
      const double seconds = std::chrono::duration<double>(options_.timeout).count();
      return absl::DeadlineExceededError(
          absl::StrCat(at->what, " has not ended within ", seconds,
                       " s: another rank is late or hangs, or its GPU does"));
    }
    ++at;
  }
  return absl::OkStatus();
}

}  // namespace oriel::runtime
