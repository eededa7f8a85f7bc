#include "kernels/common/thread_pool.h"

#include <omp.h>

namespace oriel::kernels {
namespace {

// Polls before a helper goes to sleep, about 0.1 ms: launches follow each other more closely.
constexpr int kPolls = 4000;
// Polls before the owner, whose chunks are done, lets other threads have its core.
constexpr int kOwnerPolls = 200;

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// True on a helper, and on an owner while it runs a job.
thread_local bool in_job = false;

}  // namespace

ThreadPool& ThreadPool::Current() {
  thread_local ThreadPool pool;
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    announced_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::Run(int threads, int64_t chunks, Chunk run, const void* context) {
  if (in_job || threads <= 1 || chunks <= 1) {
    for (int64_t i = 0; i < chunks; ++i) run(context, i);
    return;
  }
  while (static_cast<int>(helpers_.size()) < threads - 1) {
    const int index = static_cast<int>(helpers_.size());
    helpers_.emplace_back([this, index] { Help(index); });
  }
  run_ = run;
  context_ = context;
  chunks_ = chunks;
  helpers_wanted_ = threads - 1;
  next_.store(0, std::memory_order_relaxed);
  open_.store(true);
  announced_.fetch_add(1);
  // A helper counts itself as asleep before it looks for a job once more: it sees this one, or we
  // see that it sleeps.
  if (asleep_.load() > 0) {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    wake_.notify_all();
  }
  in_job = true;
  for (int64_t i = next_.fetch_add(1); i < chunks; i = next_.fetch_add(1)) run(context, i);
  in_job = false;
  // A helper enters before it looks whether the job is open: it finds it closed, or we see it.
  open_.store(false);
  for (int polls = 0; inside_.load() > 0; ++polls) {
    if (polls < kOwnerPolls) {
      Pause();
    } else {
      std::this_thread::yield();
    }
  }
}

// False when the pool ends. `seen` is the number of jobs that the helper knows of.
bool ThreadPool::WaitForJob(uint64_t* seen) {
  for (int polls = 0; polls < kPolls && announced_.load() == *seen; ++polls) Pause();
  if (announced_.load() == *seen) {
    std::unique_lock<std::mutex> lock(mutex_);
    asleep_.fetch_add(1);
    wake_.wait(lock, [&] { return announced_.load() != *seen; });
    asleep_.fetch_sub(1);
  }
  *seen = announced_.load();
  return !stop_.load();
}

void ThreadPool::Help(int index) {
  omp_set_num_threads(1);  // for oneDNN, whose primitives were prepared for one thread
  in_job = true;
  uint64_t seen = 0;
  while (WaitForJob(&seen)) {
    inside_.fetch_add(1);
    if (open_.load() && index < helpers_wanted_) {
      const int64_t chunks = chunks_;
      for (int64_t i = next_.fetch_add(1); i < chunks; i = next_.fetch_add(1)) run_(context_, i);
    }
    inside_.fetch_sub(1);
  }
}

}  // namespace oriel::kernels
