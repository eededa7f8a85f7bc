// What a plan costs: memory by kind, instructions by kernel, bytes communicated.
#ifndef ORIEL_RUNTIME_PLAN_PLAN_STATS_H_
#define ORIEL_RUNTIME_PLAN_PLAN_STATS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

struct SegmentStats {
  std::string name;
  int64_t runs_per_step = 0;  // in the schedule
  int64_t instructions = 0;
  std::map<std::string, int64_t> kernels;  // launches of each; "copy" for copies
  int64_t collectives = 0;
  int64_t collective_bytes = 0;  // sum of the operands of one rank, for one run
};

struct ProgramStats {
  int64_t first_rank = 0;
  int64_t rank_count = 0;
  int64_t arena_bytes = 0;
  // Bytes of the arena that buffers of a kind cover; memory that stash, temporaries and outputs
  // use by turns counts for each. Views of a parameter are not temporaries.
  std::map<std::string, int64_t> bytes_by_kind;
  std::map<std::string, int64_t> buffers_by_kind;
  std::vector<SegmentStats> segments;
  int64_t collective_bytes_per_step = 0;  // of one rank
  int64_t instructions_per_step = 0;
};

struct PlanStats {
  int64_t parameters = 0;  // elements, over all ranks
  int64_t trainable_parameters = 0;
  std::vector<ProgramStats> programs;
};

// Of a verified plan.
PlanStats ComputePlanStats(const plan::Plan& plan);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_PLAN_STATS_H_
