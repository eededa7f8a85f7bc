// When the bytes of a program's arena hold nothing that anything reads any more.
#ifndef ORIEL_RUNTIME_EXEC_DEAD_MEMORY_H_
#define ORIEL_RUNTIME_EXEC_DEAD_MEMORY_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/plan/lifetimes.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// Bytes that are dead behind an instruction of a run, or, at kBeforeRun, before its first one.
struct DeadBytes {
  static constexpr int kBeforeRun = -1;
  int instruction = kBeforeRun;
  ByteRange bytes;
};

// Found by following the schedule (lifetimes.h), whatever the plan says of kinds of buffers.
class DeadMemory {
 public:
  DeadMemory() = default;
  // Of a verified program.
  explicit DeadMemory(const plan::Program& program);

  // Before anything runs: all but what stays from step to step.
  const std::vector<ByteRange>& AtStart() const { return at_start_; }
  // What dies in a run, in the order of the instructions. Empty for a run that the schedule does
  // not have, but microbatch 0 of segments that are not in it.
  const std::vector<DeadBytes>& In(int segment, int64_t microbatch) const;

 private:
  void Add(const Lifetimes& lifetimes);

  std::vector<ByteRange> at_start_;
  std::map<std::pair<int, int64_t>, std::vector<DeadBytes>> in_;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_DEAD_MEMORY_H_
