// Helper threads of a thread that runs kernels.
//
// The owner takes part in its own jobs and waits only for chunks that a helper has
// begun. So a helper that the operating system does not run at the moment holds
// nobody up, and a job on a busy machine takes no longer than on one thread; a
// barrier, as OpenMP has at the end of each region, would cost time slices.
#ifndef ORIEL_KERNELS_COMMON_THREAD_POOL_H_
#define ORIEL_KERNELS_COMMON_THREAD_POOL_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace oriel::kernels {

class ThreadPool {
 public:
  using Chunk = void (*)(const void* context, int64_t chunk);

  // The calling thread's own pool, which ends with it. Helpers are started as they are asked for.
  static ThreadPool& Current();

  ThreadPool() = default;
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // Calls run(context, i) once for each i in [0, chunks), on the calling thread and up to
  // `threads` - 1 helpers, in any order; returns when all have ended. Only by the owner; a job
  // started from within a job runs on one thread.
  void Run(int threads, int64_t chunks, Chunk run, const void* context);

 private:
  void Help(int index);
  bool WaitForJob(uint64_t* seen);

  // The job. Written by the owner while it is closed and no helper is inside.
  Chunk run_ = nullptr;
  const void* context_ = nullptr;
  int64_t chunks_ = 0;
  int helpers_wanted_ = 0;

  // On cache lines of their own: each is written while others are polled.
  alignas(64) std::atomic<int64_t> next_{0};        // chunk to be taken
  alignas(64) std::atomic<int> inside_{0};          // helpers that may be looking at the job
  alignas(64) std::atomic<uint64_t> announced_{0};  // number of jobs so far
  std::atomic<bool> open_{false};                   // helpers may enter
  std::atomic<bool> stop_{false};

  alignas(64) std::atomic<int> asleep_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> helpers_;
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_THREAD_POOL_H_
