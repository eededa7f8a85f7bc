#include "runtime/comm/nccl/watchdog.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace oriel::runtime {

Watchdog::Watchdog(Options options)
    : options_(std::move(options)), looking_([this] { Run([this] { Look(); }); }), asking_([this] {
        options_.begin();
        Run([this] { AskDevice(); });
      }) {}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  stopping_changed_.notify_all();
  looking_.join();
  asking_.join();
  for (const std::shared_ptr<Watched>& watched : watched_) {
    if (!watched->over) watched->release();
  }
}

void Watchdog::Watch(std::string what, std::function<bool()> done, std::function<void()> release,
                     std::function<std::string()> part) {
  auto watched = std::make_shared<Watched>();
  watched->what = std::move(what);
  watched->done = std::move(done);
  watched->release = std::move(release);
  watched->part = std::move(part);
  watched->begin = Clock::now();
  std::lock_guard<std::mutex> lock(mutex_);
  watched_.push_back(std::move(watched));
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

void Watchdog::Run(const std::function<void()>& look) {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    look();
    lock.lock();
    stopping_changed_.wait_for(lock, options_.period, [this] { return stopping_; });
  }
}

void Watchdog::Look() {
  const absl::Status found = status().ok() ? Find() : absl::OkStatus();
  if (!found.ok()) Fail(found);
}

absl::Status Watchdog::Find() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& [number, check] : checks_) ORIEL_RETURN_IF_ERROR(check());
  const Clock::time_point now = Clock::now();
  for (const std::shared_ptr<Watched>& watched : watched_) {
    // What is behind others on a stream begins when they have ended.
    if (watched->over || now <= std::max(watched->begin, last_end_) + options_.timeout) continue;
    const double seconds = std::chrono::duration<double>(options_.timeout).count();
    const std::string part = watched->part ? watched->part() : "";
    return absl::DeadlineExceededError(
        absl::StrCat(part.empty() ? watched->what : part, " has not ended within ", seconds,
                     " s: another rank is late or hangs, or its GPU does"));
  }
  return absl::OkStatus();
}

void Watchdog::AskDevice() {
  std::vector<std::shared_ptr<Watched>> open;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    open = watched_;
  }
  bool any = false;
  for (const std::shared_ptr<Watched>& watched : open) {
    if (!watched->done()) continue;
    watched->release();
    watched->over = true;
    any = true;
  }
  if (!any) return;
  std::lock_guard<std::mutex> lock(mutex_);
  last_end_ = Clock::now();
  watched_.erase(std::remove_if(watched_.begin(), watched_.end(),
                                [](const auto& watched) { return watched->over.load(); }),
                 watched_.end());
}

}  // namespace oriel::runtime
