// What a software stack adds to the times of a device, in four numbers, and how it gets memory:
// with others' published numbers, what they ran; without, Oriel's own runtime.
#ifndef ORIEL_PASSES_COST_SOFTWARE_STACK_H_
#define ORIEL_PASSES_COST_SOFTWARE_STACK_H_

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel {

// Which gradients an optimizer in f32 steps on where those of a backward have fewer bits.
enum class StepGradients {
  kAccumulated,  // themselves, as Oriel's
  kCopied,       // an f32 copy of each, all made before the step
  kFlat,         // one f32 copy of all that this rank steps on
};

// How software gets memory.
struct SoftwareMemory {
  bool isCached = false;  // an allocator at run time, in place of an arena (cached_memory.h)
  // Bytes that a device has for it; where they end, it gives back what it doesn't use.
  int64_t capacity = std::numeric_limits<int64_t>::max();
  // Of such software, what it keeps beside what a program's values need.
  StepGradients stepGradients = StepGradients::kAccumulated;
  bool keepsGradients = false;  // of a microbatch, in their own type, while f32 ones accumulate
  bool keepsOutputs = false;    // of a stage, until their microbatch's backward

  friend bool operator==(const SoftwareMemory& a, const SoftwareMemory& b) {
    auto parts = [](const SoftwareMemory& memory) {
      return std::tie(memory.isCached, memory.capacity, memory.stepGradients, memory.keepsGradients,
                      memory.keepsOutputs);
    };
    return parts(a) == parts(b);
  }
};

struct SoftwareStack {
  double kernelOverhead = 0;  // seconds that an op takes at least: its launch by the host
  double pointwise = 1;       // how often bytes are moved by ops that are no products
  double overlap = 1;         // the part of communication beside computing that costs nothing
  double attention = 1;       // times what fused attention takes
  SoftwareMemory memory;

  friend bool operator==(const SoftwareStack& a, const SoftwareStack& b) {
    return a.kernelOverhead == b.kernelOverhead && a.pointwise == b.pointwise &&
           a.overlap == b.overlap && a.attention == b.attention && a.memory == b.memory;
  }
};

// Of {"kernel_overhead=6us", "pointwise=1.5", "overlap=0.8", "attention=1.5",
// "allocator=caching", "step_gradients=flat", "microbatch_gradients=kept", "stage_outputs=kept"};
// what is not given is as above. InvalidArgument names the key or value that can't be used.
absl::StatusOr<SoftwareStack> parseSoftwareStack(const std::vector<std::string>& values);

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_SOFTWARE_STACK_H_
