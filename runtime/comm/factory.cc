#include "runtime/comm/factory.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/executable.h"

namespace oriel::runtime {
namespace {

constexpr const char* kPluginFile = "liboriel_comm_mpi.so";
// Defined in mpi.cc. On success the caller owns the result; else it is null and the status set.
constexpr const char* kPluginEntry = "OrielOpenMpiWorld";
using PluginEntry = Communicator* (*)(absl::Status*);

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> OpenMpiWorld() {
  absl::StatusOr<std::string> folder = ExecutableFolder();
  if (!folder.ok()) return folder.status();
  const std::string plugin = absl::StrCat(*folder, kPluginFile);
  if (access(plugin.c_str(), F_OK) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "no MPI communicator: ", plugin,
        " is missing; build Oriel with MPI (-DORIEL_WITH_MPI=ON), or use --comm in_process"));
  }
  // Global, because Open MPI loads components that look up its symbols. Never closed: the
  // communicator's code is in there.
  void* library = dlopen(plugin.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no MPI communicator: ", dlerror(),
                     "; install Open MPI on this machine, or use --comm in_process"));
  }
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginEntry));
  if (entry == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no MPI communicator: ", plugin, " is of another version of Oriel"));
  }
  absl::Status status;
  std::unique_ptr<Communicator> communicator(entry(&status));
  if (communicator == nullptr) return status;
  return communicator;
}

}  // namespace oriel::runtime
