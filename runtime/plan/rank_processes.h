// Which process of a job runs which rank of a plan. Launchers number processes node by node.
#ifndef ORIEL_RUNTIME_PLAN_RANK_PROCESSES_H_
#define ORIEL_RUNTIME_PLAN_RANK_PROCESSES_H_

#include <cstdint>
#include <vector>

#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// Whether each rank of a verified plan is the process of its number.
bool AreRanksProcesses(const plan::Plan& plan);

// The process of a rank of a verified plan (Plan.placement_block). Rank 0 is process 0.
int64_t ProcessOfRank(const plan::Plan& plan, int64_t rank);

// By rank.
std::vector<int64_t> ProcessesOfRanks(const plan::Plan& plan);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_RANK_PROCESSES_H_
