// What an allocator that keeps what it is given back would reserve for a program.
#ifndef ORIEL_PASSES_LOWER_CACHED_MEMORY_H_
#define ORIEL_PASSES_LOWER_CACHED_MEMORY_H_

#include <cstdint>

#include "passes/cost/software_stack.h"
#include "passes/lower/program_memory.h"

namespace oriel {

// The most bytes that CachingAllocator has reserved in two steps, if each value were allocated
// before the op that makes it and freed behind the last that uses it (but where the next microbatch
// takes its place at once). What persists is allocated first, but for the optimizer's states, which
// PyTorch's optimizers make in their first step. With what `software` keeps beside these.
int64_t cachedBytes(const ProgramMemory& memory, const SoftwareMemory& software = {});

}  // namespace oriel

#endif  // ORIEL_PASSES_LOWER_CACHED_MEMORY_H_
