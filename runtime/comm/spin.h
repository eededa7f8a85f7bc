// How long a thread that waits for another one tries before it sleeps.
#ifndef ORIEL_RUNTIME_COMM_SPIN_H_
#define ORIEL_RUNTIME_COMM_SPIN_H_

#include <cstdint>

#include "runtime/base/cores.h"

namespace oriel::runtime {

// Looks at what is waited for, with a Pause() between, by one of `threads` that work together:
// tens of microseconds, longer than ranks in step differ, shorter than a wake-up hurts. None where
// threads exceed cores: spinning would keep the core from the one that is waited for.
inline int SpinsOf(int64_t threads, int64_t cores = UsableCores()) {
  return threads <= cores ? 2000 : 0;
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_SPIN_H_
