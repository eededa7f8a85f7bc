#include "runtime/exec/streams.h"

#include "runtime/base/status.h"
#include "runtime/exec/trace.h"

namespace oriel::runtime {

ThreadStream::~ThreadStream() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    if (running_ != nullptr) {
      running_->communicator_->Abort(
          absl::AbortedError("the executor is destroyed while a collective is on its way"));
    }
  }
  work_.notify_one();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<CommunicationStream::Task*> ThreadStream::Add(Communicator* communicator,
                                                             std::function<absl::Status()> call) {
  tasks_.push_back(std::make_unique<ThreadTask>(communicator, std::move(call)));
  queue_.resize(tasks_.size());
  return tasks_.back().get();
}

absl::Status ThreadStream::Start(Task& started) {
  auto& task = static_cast<ThreadTask&>(started);
  {
    Lock lock(mutex_);
    ORIEL_RETURN_IF_ERROR(Enqueue(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
    if (running_ != nullptr || queued_ > 1) return absl::OkStatus();  // it is awake
  }
  work_.notify_one();
  return absl::OkStatus();
}

absl::Status ThreadStream::Wait(Task& awaited) {
  auto& task = static_cast<ThreadTask&>(awaited);
  Lock lock(mutex_);
  if (task.state_ == ThreadTask::State::kIdle) {
    return absl::FailedPreconditionError("waits for a collective that was not started");
  }
  while (task.state_ != ThreadTask::State::kDone) {
    if (running_ == nullptr) {
      RunFirst(lock, /*background=*/false);
    } else {
      done_.wait(lock);
    }
  }
  task.state_ = ThreadTask::State::kIdle;
  --started_;
  return task.status_;
}

absl::Status ThreadStream::Run(Task& task) {
  {
    Lock lock(mutex_);
    ORIEL_RETURN_IF_ERROR(Enqueue(static_cast<ThreadTask&>(task)));
  }
  return Wait(task);
}

bool ThreadStream::IsBusy() const {
  Lock lock(mutex_);
  return started_ > 0;
}

absl::Status ThreadStream::Enqueue(ThreadTask& task) {
  ORIEL_RETURN_IF_ERROR(status_);
  if (task.state_ != ThreadTask::State::kIdle) {
    return absl::FailedPreconditionError("starts a collective that is on its way");
  }
  task.state_ = ThreadTask::State::kQueued;
  ++started_;
  queue_[(first_ + queued_++) % queue_.size()] = &task;
  return absl::OkStatus();
}

void ThreadStream::RunFirst(Lock& lock, bool background) {
  ThreadTask& task = *queue_[first_];
  first_ = (first_ + 1) % queue_.size();
  --queued_;
  running_ = &task;
  task.state_ = ThreadTask::State::kRunning;
  lock.unlock();
  task.communicator_->SetBackground(background);
  task.begin_ = TraceNow();
  absl::Status status = task.call_();
  task.end_ = TraceNow();
  lock.lock();
  running_ = nullptr;
  task.status_ = status;
  task.state_ = ThreadTask::State::kDone;
  if (!status.ok()) {
    status_ = std::move(status);
    for (; queued_ > 0; --queued_, first_ = (first_ + 1) % queue_.size()) {
      queue_[first_]->status_ = status_;
      queue_[first_]->state_ = ThreadTask::State::kDone;
    }
  }
  // Of the two threads one has run this task; the other one may wait.
  if (!background && queued_ > 0) work_.notify_one();
  if (background) done_.notify_one();
}

void ThreadStream::Work() {
  Lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stopping_ || (running_ == nullptr && queued_ > 0); });
    if (stopping_) return;
    RunFirst(lock, /*background=*/true);
  }
}

}  // namespace oriel::runtime
