// A search and the strategy that it chose as one page of HTML (docs/report.md).
#ifndef ORIEL_DRIVER_REPORT_HTML_REPORT_H_
#define ORIEL_DRIVER_REPORT_HTML_REPORT_H_

#include <cstdint>
#include <string>

#include "driver/simulation.h"
#include "driver/strategy_search.h"

namespace oriel::driver {

struct ReportInputs {
  std::string model, recipe, cluster;  // as the user named them
  int64_t rows = 5;                    // of the table of strategies, at most
};

// `best`: the simulation of found.best(). The page needs no other file, no network and no script.
std::string htmlReport(const FoundStrategies& found, const Simulation& best,
                       const ReportInputs& inputs);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_REPORT_HTML_REPORT_H_
