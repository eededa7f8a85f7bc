#include "runtime/exec/dead_memory.h"

#include <algorithm>

namespace oriel::runtime {

DeadMemory::DeadMemory(const plan::Program& program) {
  int64_t end = 0;
  for (const ByteRange& kept : KeptRanges(program)) {
    if (kept.begin > end) at_start_.push_back({end, kept.begin});
    end = std::max(end, kept.end);
  }
  if (program.arena_bytes() > end) at_start_.push_back({end, program.arena_bytes()});
  Add(LifetimesOfStep(program));
  for (const Lifetimes& lifetimes : LifetimesOfOthers(program)) Add(lifetimes);
}

const std::vector<DeadBytes>& DeadMemory::In(int segment, int64_t microbatch) const {
  static const auto& kNone = *new std::vector<DeadBytes>();
  const auto found = in_.find({segment, microbatch});
  return found == in_.end() ? kNone : found->second;
}

void DeadMemory::Add(const Lifetimes& lifetimes) {
  const std::vector<RunTimes>& runs = lifetimes.runs;
  for (const Life& life : lifetimes.lives) {
    const auto run =
        std::lower_bound(runs.begin(), runs.end(), life.end,
                         [](const RunTimes& one, int64_t time) { return one.finish < time; });
    if (run == runs.end()) continue;  // a message that nothing has waited for
    if (life.overwritten) continue;
    // The host reads outputs behind the run, so that the next one finds them dead.
    const bool behind = life.end == run->finish;
    const RunTimes& where = !behind ? *run : run + 1 == runs.end() ? runs.front() : *(run + 1);
    const auto instruction =
        behind ? DeadBytes::kBeforeRun : static_cast<int>(life.end - run->start - 1);
    in_[{where.segment, where.microbatch}].push_back({instruction, life.bytes});
  }
  for (auto& [unused, dead] : in_) {
    std::stable_sort(dead.begin(), dead.end(), [](const DeadBytes& a, const DeadBytes& b) {
      return a.instruction < b.instruction;
    });
  }
}

}  // namespace oriel::runtime
