// Scratch memory of a thread, shared by all launches that it runs.
//
// Launches run one after the other, so each thread keeps one buffer, as large as
// its largest launch needs: less memory than a buffer per launch, and it stays in
// the cache. It grows when a launch first runs, never after.
#ifndef ORIEL_KERNELS_COMMON_SCRATCH_H_
#define ORIEL_KERNELS_COMMON_SCRATCH_H_

#include <cstddef>

#include "kernels/common/aligned.h"

namespace oriel::kernels {

// What asks, each for memory of its own: a kernel; one whose products take some, too; what holds
// widened tensors while a kernel runs (widened.h).
enum class ScratchUse { kKernel, kAroundProducts, kWidened };

// At least `bytes` of the calling thread's memory, aligned to 64, with any contents. The next call
// on the same thread gives the same memory: a kernel calls this once for all that it needs.
template <ScratchUse kUse = ScratchUse::kKernel>
void* ThreadScratch(size_t bytes) {
  thread_local AlignedVector<char> memory;
  if (memory.size() < bytes) {
    AlignedVector<char>().swap(memory);  // nothing to copy
    memory.resize(bytes);
  }
  return memory.data();
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_SCRATCH_H_
