// What a software stack adds to the times of a device, in four numbers, and how it gets memory:
// with others' published numbers, what they ran; without, Oriel's own runtime.
#ifndef ORIEL_PASSES_STRATEGIZE_SOFTWARE_STACK_H_
#define ORIEL_PASSES_STRATEGIZE_SOFTWARE_STACK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel {

struct SoftwareStack {
  double kernelOverhead = 0;  // seconds that an op takes at least: its launch by the host
  double pointwise = 1;       // how often bytes are moved by ops that are no products
  double overlap = 1;         // the part of communication beside computing that costs nothing
  double attention = 1;       // times what fused attention takes
  bool cachesMemory = false;  // an allocator at run time, in place of an arena (cached_memory.h)

  friend bool operator==(const SoftwareStack& a, const SoftwareStack& b) {
    return a.kernelOverhead == b.kernelOverhead && a.pointwise == b.pointwise &&
           a.overlap == b.overlap && a.attention == b.attention && a.cachesMemory == b.cachesMemory;
  }
};

// Of {"kernel_overhead=6us", "pointwise=1.5", "overlap=0.8", "attention=1.5",
// "allocator=caching"}; what is not given is as above. InvalidArgument names the key or value that
// can't be used.
absl::StatusOr<SoftwareStack> parseSoftwareStack(const std::vector<std::string>& values);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_SOFTWARE_STACK_H_
