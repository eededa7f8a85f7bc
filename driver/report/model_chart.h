// The model in a report: its parts and the stages that have them, and where the ranks are.
#ifndef ORIEL_DRIVER_REPORT_MODEL_CHART_H_
#define ORIEL_DRIVER_REPORT_MODEL_CHART_H_

#include <cstdint>
#include <string>

#include "driver/simulation.h"
#include "passes/cost/cluster.h"
#include "passes/search/candidate.h"

namespace oriel::driver {

// The parts in a row, coloured by the ranks that have them; under them the stages.
std::string blocksChart(const Simulation& simulation, int64_t grids);

// The nodes with their devices, by rank.
std::string ranksChart(const Candidate& candidate, const Cluster& cluster);

// A table: what is split over which ranks, and over which links these talk.
std::string splitsTable(const Candidate& candidate, const Cluster& cluster);

// The name of the level of links that joins devices 0, `apart`, 2 `apart`, .. (`size` of them) and
// every other such group of the first `ranks`; "" if they are one rank.
std::string linksOfGroups(const Cluster& cluster, int64_t ranks, int64_t size, int64_t apart);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_REPORT_MODEL_CHART_H_
