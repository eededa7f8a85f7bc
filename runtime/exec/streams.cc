#include "runtime/exec/streams.h"

#include "runtime/base/status.h"
#include "runtime/exec/trace.h"

namespace oriel::runtime {

CommunicationStream::~CommunicationStream() {
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

CommunicationStream::Task* CommunicationStream::Add(Communicator* communicator,
                                                    std::function<absl::Status()> call) {
  tasks_.push_back(std::unique_ptr<Task>(new Task(communicator, std::move(call))));
  queue_.resize(tasks_.size());
  return tasks_.back().get();
}

absl::Status CommunicationStream::Start(Task& task) {
  {
    Lock lock(mutex_);
    ORIEL_RETURN_IF_ERROR(Enqueue(task));
    if (!thread_.joinable()) thread_ = std::thread([this] { Work(); });
    if (running_ != nullptr || queued_ > 1) return absl::OkStatus();  // it is awake
  }
  work_.notify_one();
  return absl::OkStatus();
}

absl::Status CommunicationStream::Wait(Task& task) {
  Lock lock(mutex_);
  if (task.state_ == Task::State::kIdle) {
    return absl::FailedPreconditionError("waits for a collective that was not started");
  }
  while (task.state_ != Task::State::kDone) {
    if (running_ == nullptr) {
      RunFirst(lock, /*background=*/false);
    } else {
      done_.wait(lock);
    }
  }
  task.state_ = Task::State::kIdle;
  --started_;
  return task.status_;
}

absl::Status CommunicationStream::Run(Task& task) {
  {
    Lock lock(mutex_);
    ORIEL_RETURN_IF_ERROR(Enqueue(task));
  }
  return Wait(task);
}

bool CommunicationStream::IsBusy() const {
  Lock lock(mutex_);
  return started_ > 0;
}

absl::Status CommunicationStream::Enqueue(Task& task) {
  ORIEL_RETURN_IF_ERROR(status_);
  if (task.state_ != Task::State::kIdle) {
    return absl::FailedPreconditionError("starts a collective that is on its way");
  }
  task.state_ = Task::State::kQueued;
  ++started_;
  queue_[(first_ + queued_++) % queue_.size()] = &task;
  return absl::OkStatus();
}

void CommunicationStream::RunFirst(Lock& lock, bool background) {
  Task& task = *queue_[first_];
  first_ = (first_ + 1) % queue_.size();
  --queued_;
  running_ = &task;
  task.state_ = Task::State::kRunning;
  lock.unlock();
  task.communicator_->SetBackground(background);
  task.begin_ = TraceNow();
  absl::Status status = task.call_();
  task.end_ = TraceNow();
  lock.lock();
  running_ = nullptr;
  task.status_ = status;
  task.state_ = Task::State::kDone;
  if (!status.ok()) {
    status_ = std::move(status);
    for (; queued_ > 0; --queued_, first_ = (first_ + 1) % queue_.size()) {
      queue_[first_]->status_ = status_;
      queue_[first_]->state_ = Task::State::kDone;
    }
  }
  // Of the two threads one has run this task; the other one may wait.
  if (!background && queued_ > 0) work_.notify_one();
  if (background) done_.notify_one();
}

void CommunicationStream::Work() {
  Lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stopping_ || (running_ == nullptr && queued_ > 0); });
    if (stopping_) return;
    RunFirst(lock, /*background=*/true);
  }
}

}  // namespace oriel::runtime
