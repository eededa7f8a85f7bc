// What an instruction does with the buffers of its program.
#ifndef ORIEL_RUNTIME_PLAN_ACCESS_H_
#define ORIEL_RUNTIME_PLAN_ACCESS_H_

#include <vector>

#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// Buffers that an instruction of a verified program reads and writes.
struct Access {
  std::vector<int> reads;
  std::vector<int> writes;
};
Access AccessOf(const plan::Instruction& instruction);

// Of each instruction of each segment.
using SegmentAccesses = std::vector<std::vector<Access>>;
SegmentAccesses AccessesOf(const plan::Program& program);

// The buffer that update finds in the memory of `buffer`, a gradient of a verified program: itself,
// or its view of the same shape that is reduced over ranks, if that is what the last write before
// has left. What was written as another shape and reshaped in place lies as the buffer itself says.
const plan::Buffer& BeforeUpdate(const plan::Program& program, const plan::Buffer& buffer);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_ACCESS_H_
