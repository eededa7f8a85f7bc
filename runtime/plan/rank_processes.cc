#include "runtime/plan/rank_processes.h"

namespace oriel::runtime {

bool AreRanksProcesses(const plan::Plan& plan) { return plan.placement_block() == 0; }

int64_t ProcessOfRank(const plan::Plan& plan, int64_t rank) {
  if (AreRanksProcesses(plan)) return rank;
  const int64_t grids = plan.grids_size(), block = plan.placement_block();
  const int64_t ranks = plan.world_size() / grids;
  const int64_t grid = rank / ranks, own = rank % ranks;
  return own / block * block * grids + grid * block + own % block;
}

std::vector<int64_t> ProcessesOfRanks(const plan::Plan& plan) {
  std::vector<int64_t> processes;
  for (int64_t rank = 0; rank < plan.world_size(); ++rank) {
    processes.push_back(ProcessOfRank(plan, rank));
  }
  return processes;
}

}  // namespace oriel::runtime
