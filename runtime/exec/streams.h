// Communication streams: what a rank communicates while it computes.
//
//   ThreadStream stream;
//   ORIEL_ASSIGN_OR_RETURN(CommunicationStream::Task* task,
//                          stream.Add(group, [&] { return group->AllReduce(..); }));
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
#include "absl/status/statusor.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// An order of a rank's collectives, of which another stream's are independent.
//
// All methods are for the one thread that computes; only it starts and waits. Starting allocates
// nothing. The first call that fails is the stream's last: those behind it are not run, and get its
// status.
class CommunicationStream {
 public:
  // A call that is started and waited for again and again.
  class Task {
   public:
    virtual ~Task() = default;
    // When it last ran: TraceNow(). Between its Wait and its next Start. Zeros where the device
    // runs it, and its times are not known here.
    int64_t begin() const { return begin_; }
    int64_t end() const { return end_; }

   protected:
    int64_t begin_ = 0, end_ = 0;
  };

  virtual ~CommunicationStream() = default;

  // A task of this stream, which owns it. `call` uses `communicator` and nothing else that another
  // thread uses meanwhile; both outlive the stream. Before the first Start.
  virtual absl::StatusOr<Task*> Add(Communicator* communicator,
                                    std::function<absl::Status()> call) = 0;

  // Queues the task, and returns. The status of the call that has failed before, if one has.
  // FailedPrecondition if the task was started and not waited for.
  virtual absl::Status Start(Task& task) = 0;
  // Until the task is done: its status. On a device's stream it is the computing stream that waits,
  // not this thread. FailedPrecondition if the task was not started.
  virtual absl::Status Wait(Task& task) = 0;
  // Starts it and waits.
  virtual absl::Status Run(Task& task) = 0;

  // Whether tasks have been started and not waited for, as after a run that has failed.
  virtual bool IsBusy() const = 0;
};

// A thread that runs blocking calls, in the order in which they were started. In Wait, what no
// thread has taken up yet runs in the one that waits, which has nothing else to do; in Run, where
// the stream has nothing else to do, no other thread is woken.
class ThreadStream final : public CommunicationStream {
 public:
  ThreadStream() = default;
  // Drops what has not begun. A call that runs is waited for; as its peers may not come, or be
  // gone, its communicator is aborted first. So an executor that has failed can be destroyed at any
  // time.
  ~ThreadStream() override;
  ThreadStream(const ThreadStream&) = delete;
  ThreadStream& operator=(const ThreadStream&) = delete;

  absl::StatusOr<Task*> Add(Communicator* communicator,
                            std::function<absl::Status()> call) override;
  absl::Status Start(Task& task) override;
  absl::Status Wait(Task& task) override;
  absl::Status Run(Task& task) override;
  bool IsBusy() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  class ThreadTask final : public Task {
   public:
    ThreadTask(Communicator* communicator, std::function<absl::Status()> call)
        : communicator_(communicator), call_(std::move(call)) {}

   private:
    friend class ThreadStream;
    enum class State : uint8_t { kIdle, kQueued, kRunning, kDone };

    Communicator* const communicator_;
    const std::function<absl::Status()> call_;
    State state_ = State::kIdle;
    absl::Status status_;
  };

  absl::Status Enqueue(ThreadTask& task);
  // With the lock, which is given up meanwhile: runs the first task of the queue.
  void RunFirst(Lock& lock, bool background);
  // The body of the thread, which the first Start makes.
  void Work();

  std::vector<std::unique_ptr<ThreadTask>> tasks_;
  std::thread thread_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  // for the thread: there is something in the queue, or the end
  std::condition_variable done_;  // a task is done
  // A ring of room for all tasks: each is in it once at most.
  std::vector<ThreadTask*> queue_;
  size_t first_ = 0, queued_ = 0;
  ThreadTask* running_ = nullptr;
  int64_t started_ = 0;  // tasks that are not waited for
  bool stopping_ = false;
  absl::Status status_;  // of the call that has failed
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_STREAMS_H_
