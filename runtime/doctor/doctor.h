// What a machine has of what Oriel needs, and what to do about what is missing.
#ifndef ORIEL_RUNTIME_DOCTOR_DOCTOR_H_
#define ORIEL_RUNTIME_DOCTOR_DOCTOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/doctor/machine.h"

namespace oriel::runtime {

struct Finding {
  std::string name;    // "CUDA driver"
  bool ok = false;     // it is there, and enough
  std::string value;   // what was found, or why not
  std::string remedy;  // what to do; empty where nothing is to be done
};

// What was asked for must be there; all else is only told.
struct DoctorRequest {
  std::string device;  // "cuda"; "host" or empty: nothing more
  std::string comm;    // "mpi"; "in_process" or empty: nothing more
};

// Looks at this machine: cores, memory, limits, oneDNN, oriel-run and the plugins beside the
// executable, MPI, CUDA with its devices and libraries. Loads libraries; needs no device.
std::vector<Finding> Examine();

// The findings without which what was asked for can't run, that are not ok.
std::vector<Finding> Missing(const std::vector<Finding>& findings, const DoctorRequest& request);

// A line per finding, and one for each remedy.
std::string DoctorText(const std::vector<Finding>& findings);
// {"ok": nothing is in `missing`, "missing": [names], "findings": [{"name","ok","value","remedy"}]}
std::string DoctorJson(const std::vector<Finding>& findings, const std::vector<Finding>& missing);

// Parts of Examine, for tests.

// Of what DescribeCuda gives, or of why there is nothing.
std::vector<Finding> CudaFindings(const absl::StatusOr<std::string>& description);
Finding MemoryFinding(const MachineMemory& memory);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_DOCTOR_DOCTOR_H_
