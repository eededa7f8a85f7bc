// The memory of each program's ranks in a report: bars by use, and the numbers.
#ifndef ORIEL_DRIVER_REPORT_MEMORY_CHART_H_
#define ORIEL_DRIVER_REPORT_MEMORY_CHART_H_

#include <string>
#include <vector>

#include "passes/search/search.h"

namespace oriel::driver {

// `limit`: bytes that a device has.
std::string memoryChart(const std::vector<Evaluation::Program>& programs,
                        const std::vector<std::string>& names, double limit);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_REPORT_MEMORY_CHART_H_
