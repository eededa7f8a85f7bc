// Threads for host kernels.
//
// A kernel that uses several threads gives the same bits as with one: every
// unit below computes its own results, and sums over units are taken
// afterwards, in unit order, over units whose size depends on the shape alone.
#ifndef ORIEL_KERNELS_COMMON_PARALLEL_H_
#define ORIEL_KERNELS_COMMON_PARALLEL_H_

#include <algorithm>
#include <cstdint>

#include "kernels/common/thread_pool.h"

namespace oriel::kernels {

// Below this much work, starting threads costs more than it saves. The unit is an element of a
// sum of two tensors, about 0.05 ns; kernels say how much more they do. Tests lower it.
inline int64_t min_parallel_work = 128 * 1024;

// Elements in one unit of a flat loop. A multiple of every vector length, so that
// an element is always reached by the same code, whatever thread computes it.
inline constexpr int64_t kFlatUnit = 1024;

// Chunks of a job for each thread, so that one that is held up is helped out.
inline constexpr int64_t kChunksPerThread = 4;

// Calls f(begin, end) on ranges that cover [0, units), on up to `num_threads` threads if
// units * work_per_unit is worth it.
template <typename F>
void ParallelFor(int num_threads, int64_t units, int64_t work_per_unit, const F& f) {
  if (num_threads <= 1 || units <= 1 || units * work_per_unit < min_parallel_work) {
    if (units > 0) f(int64_t{0}, units);
    return;
  }
  struct Job {
    const F* f;
    int64_t units;
    int64_t chunks;
  };
  const Job job{&f, units, std::min(units, num_threads * kChunksPerThread)};
  ThreadPool::Current().Run(
      num_threads, job.chunks,
      [](const void* context, int64_t chunk) {
        const Job& j = *static_cast<const Job*>(context);
        (*j.f)(j.units * chunk / j.chunks, j.units * (chunk + 1) / j.chunks);
      },
      &job);
}

// The same over `count` elements in units of kFlatUnit: f(begin, end) in elements, each of which is
// `work`.
template <typename F>
void ParallelForElements(int num_threads, int64_t count, int64_t work, const F& f) {
  const int64_t units = (count + kFlatUnit - 1) / kFlatUnit;
  ParallelFor(num_threads, units, kFlatUnit * work, [&](int64_t begin, int64_t end) {
    f(begin * kFlatUnit, std::min(end * kFlatUnit, count));
  });
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_PARALLEL_H_
