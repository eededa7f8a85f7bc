// How torchrun, Kubernetes operators and scripts tell a process which rank it is.
//
//   MASTER_ADDR       where rank 0 is: a host name or an address
//   MASTER_PORT       a port there at which the ranks meet
//   RANK              of this process, from 0
//   WORLD_SIZE        number of ranks
//   LOCAL_RANK        among the ranks of this machine; default 0, or RANK if all ranks are here
//   LOCAL_WORLD_SIZE  ranks of this machine; not needed
//
// torchrun listens at MASTER_PORT itself (TORCHELASTIC_USE_AGENT_STORE=True): then the ranks meet
// at the port behind it. ORIEL_MASTER_PORT names another one, ORIEL_RENDEZVOUS_TIMEOUT the seconds
// that ranks wait for each other (default 300).
#ifndef ORIEL_RUNTIME_COMM_TCP_ENVIRONMENT_H_
#define ORIEL_RUNTIME_COMM_TCP_ENVIRONMENT_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace oriel::runtime {

struct LaunchEnvironment {
  std::string master_address;
  int master_port = 0;
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;
  std::optional<int64_t> local_world_size;
  std::string job;  // equal on all ranks of a job and of its restart, where the launcher says it
  std::chrono::seconds timeout{300};
};

// The value of a variable, or null.
using GetVariable = std::function<const char*(const char*)>;

// How many ranks a job has.
inline constexpr char kWorldSizeVariable[] = "WORLD_SIZE";

// Whether something has started this process as a rank: RANK and WORLD_SIZE are there.
bool HasLaunchEnvironment(const GetVariable& get);
// InvalidArgument where one of them is there alone, but for a job of one rank: each process would
// take the whole job for its own.
absl::Status CheckNoPartOfLaunchEnvironment(const GetVariable& get);
// InvalidArgument names every variable that is missing, or the one that makes no sense.
absl::StatusOr<LaunchEnvironment> ReadLaunchEnvironment(const GetVariable& get);
// Of this process.
const char* EnvironmentVariable(const char* name);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_TCP_ENVIRONMENT_H_
