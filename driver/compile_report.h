// What `oriel compile` says in the end.
#ifndef ORIEL_DRIVER_COMPILE_REPORT_H_
#define ORIEL_DRIVER_COMPILE_REPORT_H_

#include <string>

#include "runtime/plan/plan.pb.h"

namespace oriel::driver {

// Of a verified plan that was written to `path`; ends with the command to run next.
std::string compileReport(const plan::Plan& plan, const std::string& path);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_COMPILE_REPORT_H_
