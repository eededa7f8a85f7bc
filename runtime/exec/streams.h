// Communication streams: what a rank communicates while it computes.
//
//   CommunicationStream stream;
//   CommunicationStream::Task* task = stream.Add(group, [&] { return group->AllReduce(..); });
//   ORIEL_RETURN_IF_ERROR(stream.Start(*task));
//   ..  // the rank computes
//   ORIEL_RETURN_IF_ERROR(stream.Wait(*task));  // the reduction is there
#ifndef ORIEL_RUNTIME_EXEC_STREAMS_H_
#define ORIEL_RUNTIME_EXEC_STREAMS_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// A thread that runs a rank's blocking calls, in the order in which they were started.
//
// All methods are for the one thread that computes; only it starts and waits. Starting allocates
// nothing. The first call that fails is the stream's last: those behind it are not run, and get its
// status.
class CommunicationStream {
 public:
  // A call that is started and waited for again and again.
  class Task {
   public:
    // When it last ran: TraceNow(). Between its Wait and its next Start.
    int64_t begin() const { return begin_; }
    int64_t end() const { return end_; }

   private:
    friend class CommunicationStream;
    enum class State : uint8_t { kIdle, kQueued, kRunning, kDone };

    Task(Communicator* communicator, std::function<absl::Status()> call)
        : communicator_(communicator), call_(std::move(call)) {}

    Communicator* const communicator_;
    const std::function<absl::Status()> call_;
    State state_ = State::kIdle;
    absl::Status status_;
    int64_t begin_ = 0, end_ = 0;
  };

  CommunicationStream() = default;
  // Drops what has not begun. A call that runs is waited for; as its peers may not come, or be
  // gone, its communicator is aborted first. So an executor that has failed can be destroyed at any
  // time.
  ~CommunicationStream();
  CommunicationStream(const CommunicationStream&) = delete;
  CommunicationStream& operator=(const CommunicationStream&) = delete;

  // A task of this stream, which owns it. `call` uses `communicator` and nothing else that another
  // thread uses meanwhile; both outlive the stream. Before the first Start.
  Task* Add(Communicator* communicator, std::function<absl::Status()> call);

  // Queues the task, and returns. The status of the call that has failed before, if one has.
  // FailedPrecondition if the task was started and not waited for.
  absl::Status Start(Task& task);
  // Until the task is done: its status. What no thread has taken up yet runs in this one, which has
  // nothing else to do. FailedPrecondition if the task was not started.
  absl::Status Wait(Task& task);
  // Starts it and waits. Where the stream has nothing else to do, no other thread is woken.
  absl::Status Run(Task& task);

  // Whether tasks have been started and not waited for, as after a run that has failed.
  bool IsBusy() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  absl::Status Enqueue(Task& task);
  // With the lock, which is given up meanwhile: runs the first task of the queue.
  void RunFirst(Lock& lock, bool background);
  // The body of the thread, which the first Start makes.
  void Work();

  std::vector<std::unique_ptr<Task>> tasks_;
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  // for the thread: there is something in the queue, or the end
  std::condition_variable done_;  // a task is done
  // A ring of room for all tasks: each is in it once at most.
  std::vector<Task*> queue_;
  size_t first_ = 0, queued_ = 0;
  Task* running_ = nullptr;
  int64_t started_ = 0;  // tasks that are not waited for
  bool stopping_ = false;
  absl::Status status_;  // of the call that has failed
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_STREAMS_H_
