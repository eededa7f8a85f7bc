// The strategies that a search tried, by memory and time.
#ifndef ORIEL_DRIVER_REPORT_FRONTIER_CHART_H_
#define ORIEL_DRIVER_REPORT_FRONTIER_CHART_H_

#include <cstddef>
#include <string>
#include <vector>

#include "passes/search/search.h"

namespace oriel::driver {

// Of these, those that no other beats in memory and time (equal ones count once), the fastest
// first.
std::vector<size_t> frontierOf(const std::vector<TriedStrategy>& tried);

// `tried` begins with the best; `limit`: bytes that a device has.
std::string frontierChart(const std::vector<TriedStrategy>& tried, double limit);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_REPORT_FRONTIER_CHART_H_
