// What a plan costs: memory by kind, instructions by kernel, bytes communicated within and between
// grids.
#ifndef ORIEL_RUNTIME_PLAN_PLAN_STATS_H_
#define ORIEL_RUNTIME_PLAN_PLAN_STATS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/plan/memory_stats.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// The collectives of a segment of one kind over the same axes and on the same stream, for one run
// of one rank.
struct CollectiveStats {
  std::string kind;  // "all_gather", ..
  std::vector<std::string> axes;
  int stream = 0;       // on which they are started; 0: the rank waits for each
  int64_t ranks = 1;    // of the group
  int64_t count = 0;    // a bucket is one
  int64_t tensors = 0;  // in all of them
  int64_t bytes = 0;    // of the operands
  // What the rank has to send, whatever the algorithm sends (a ring sends no more). Of the operand
  // of B bytes on n ranks: 2 B (n-1)/n for all-reduce, B (n-1) for all-gather, B (n-1)/n for
  // reduce-scatter and all-to-all.
  int64_t sent_bytes = 0;
};

// A collective that a segment starts, and waits for later.
struct StartedStats {
  std::string kind;
  std::vector<std::string> axes;
  int stream = 0;
  int instruction = 0;     // that starts it
  int wait = 0;            // .. and that waits for it
  int64_t tensors = 0;     // above 1: a bucket
  int64_t sent_bytes = 0;  // as in CollectiveStats
};

struct SegmentStats {
  std::string name;
  int64_t runs_per_step = 0;  // in the schedule
  int64_t instructions = 0;
  // Launches of each; "copy" for copies, "slice_local" for slices, "send" and "receive".
  std::map<std::string, int64_t> kernels;
  int64_t collectives = 0;
  int64_t collective_bytes = 0;                      // sum of the operands of one rank, for one run
  int64_t sent_bytes = 0;                            // as in CollectiveStats
  std::vector<CollectiveStats> collectives_by_kind;  // in the order of first use
  std::vector<StartedStats> started;                 // in the order of starts
};

// What a rank sends in one step in the collectives of one segment over the same mesh axes.
struct AxisVolume {
  // "dp", "dp+fsdp"; a module's as "vision dp", if the common mesh has none made of the same
  // atomic axes; if no mesh has, the atomic axes.
  std::string axes;
  std::string segment;
  int64_t ranks = 1;  // of the group
  int64_t sent_bytes = 0;
  std::map<std::string, int64_t> counts;  // of collectives, by kind
};

struct ProgramStats {
  int64_t first_rank = 0;
  int64_t rank_count = 0;
  int grid = 0;
  std::vector<int64_t> stages;           // that it runs, ascending; none in a plan without stages
  std::vector<std::string> stage_names;  // one of each, or none
  int64_t arena_bytes = 0;
  // Bytes of the arena that buffers of a kind cover; memory that stash, temporaries and outputs
  // use by turns counts for each. Views of a parameter are not temporaries.
  std::map<std::string, int64_t> bytes_by_kind;
  std::map<std::string, int64_t> buffers_by_kind;
  std::map<std::string, int64_t> copies_by_kind;  // the most copies of a buffer, where above 1
  MemoryStats memory;
  std::vector<SegmentStats> segments;
  std::vector<AxisVolume> volume;         // by axes, in the order of first use, then by segment
  int64_t collective_bytes_per_step = 0;  // of one rank
  int64_t sent_bytes_per_step = 0;        // of one rank
  int64_t instructions_per_step = 0;
};

struct ChannelStats {
  std::string name;
  int source_grid = 0;
  int target_grid = 0;
  std::string segment;        // that sends
  int64_t runs_per_step = 0;  // of it
  int64_t bytes = 0;          // that the ranks of the target grid get in one run, all together
  int64_t bytes_per_step = 0;
};

// What a segment sends from one grid to another in one step.
struct TransferVolume {
  int source_grid = 0;
  int target_grid = 0;
  std::string segment;
  int64_t runs_per_step = 0;
  int64_t channels = 0;
  int64_t bytes_per_step = 0;
};

struct PlanStats {
  int64_t parameters = 0;  // elements, over all ranks
  int64_t trainable_parameters = 0;
  std::vector<ProgramStats> programs;
  std::vector<ChannelStats> channels;      // in the order of the plan
  std::vector<TransferVolume> transfers;   // by grids and segment; those of the schedule
  int64_t transferred_bytes_per_step = 0;  // all together
};

// Of a verified plan.
PlanStats ComputePlanStats(const plan::Plan& plan);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_PLAN_STATS_H_
