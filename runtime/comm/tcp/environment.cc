#include "runtime/comm/tcp/environment.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

// Ranks beyond this are a mistake, and would take more connections than a process can have.
constexpr int64_t kMaxRanks = 65536;

bool IsSet(const char* text) { return text != nullptr && *text != '\0'; }

// A whole number in [low, high].
absl::StatusOr<int64_t> Number(const GetVariable& get, const char* name, int64_t low,
                               int64_t high) {
  const std::string text = get(name);
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= low && value <= high) return value;
  return absl::InvalidArgumentError(
      absl::StrCat(name, " is '", text, "', which is no number from ", low, " to ", high));
}

// The same; nothing where the variable is not set.
absl::StatusOr<std::optional<int64_t>> OptionalNumber(const GetVariable& get, const char* name,
                                                      int64_t low, int64_t high) {
  if (!IsSet(get(name))) return std::nullopt;
  ORIEL_ASSIGN_OR_RETURN(const int64_t value, Number(get, name, low, high));
  return value;
}

absl::Status Contradiction(const char* name, int64_t value, const char* other,
                           int64_t other_value) {
  return absl::InvalidArgumentError(
      absl::StrCat(name, "=", value, " contradicts ", other, "=", other_value,
                   ": ranks count from 0, and ranks of a machine are among all ranks"));
}

}  // namespace

const char* EnvironmentVariable(const char* name) { return std::getenv(name); }

bool HasLaunchEnvironment(const GetVariable& get) {
  return IsSet(get("RANK")) && IsSet(get(kWorldSizeVariable));
}

absl::Status CheckNoPartOfLaunchEnvironment(const GetVariable& get) {
  const bool has_rank = IsSet(get("RANK")), has_size = IsSet(get(kWorldSizeVariable));
  if (has_rank == has_size || (has_size && std::string(get(kWorldSizeVariable)) == "1")) {
    return absl::OkStatus();
  }
  const char* set = has_rank ? "RANK" : kWorldSizeVariable;
  const char* missing = has_rank ? kWorldSizeVariable : "RANK";
  return absl::InvalidArgumentError(absl::StrCat(
      set, "=", get(set), " is set and ", missing, " is not: each process would train with all ",
      "ranks by itself. Set ", missing, " too if it is one rank of several; else unset ", set,
      ", or give --comm in_process or processes"));
}

absl::StatusOr<LaunchEnvironment> ReadLaunchEnvironment(const GetVariable& get) {
  std::vector<const char*> missing;
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}) {
    if (!IsSet(get(name))) missing.push_back(name);
  }
  if (!missing.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        absl::StrJoin(missing, ", "), missing.size() == 1 ? " is" : " are",
        " not set; torchrun --no-python sets what a rank needs, or set MASTER_ADDR, MASTER_PORT, "
        "RANK, WORLD_SIZE and LOCAL_RANK for each process"));
  }
  LaunchEnvironment result;
  result.master_address = get("MASTER_ADDR");
  ORIEL_ASSIGN_OR_RETURN(int64_t port, Number(get, "MASTER_PORT", 1, 65535));
  ORIEL_ASSIGN_OR_RETURN(result.world_size, Number(get, "WORLD_SIZE", 1, kMaxRanks));
  ORIEL_ASSIGN_OR_RETURN(result.rank, Number(get, "RANK", 0, kMaxRanks - 1));
  if (result.rank >= result.world_size) {
    return Contradiction("RANK", result.rank, "WORLD_SIZE", result.world_size);
  }
  ORIEL_ASSIGN_OR_RETURN(result.local_world_size,
                         OptionalNumber(get, "LOCAL_WORLD_SIZE", 1, kMaxRanks));
  if (result.local_world_size && *result.local_world_size > result.world_size) {
    return Contradiction("LOCAL_WORLD_SIZE", *result.local_world_size, "WORLD_SIZE",
                         result.world_size);
  }
  ORIEL_ASSIGN_OR_RETURN(const std::optional<int64_t> local_rank,
                         OptionalNumber(get, "LOCAL_RANK", 0, kMaxRanks - 1));
  const bool all_here = result.local_world_size.value_or(0) == result.world_size;
  result.local_rank = local_rank.value_or(all_here ? result.rank : 0);
  const int64_t local_ranks = result.local_world_size.value_or(result.world_size);
  if (result.local_rank >= local_ranks) {
    return Contradiction("LOCAL_RANK", result.local_rank,
                         result.local_world_size ? "LOCAL_WORLD_SIZE" : "WORLD_SIZE", local_ranks);
  }
  ORIEL_ASSIGN_OR_RETURN(const std::optional<int64_t> own_port,
                         OptionalNumber(get, "ORIEL_MASTER_PORT", 1, 65535));
  const char* agent = get("TORCHELASTIC_USE_AGENT_STORE");
  if (own_port) {
    port = *own_port;
  } else if (agent != nullptr && std::string(agent) == "True") {
    port = port < 65535 ? port + 1 : port - 1;
  }
  result.master_port = static_cast<int>(port);
  ORIEL_ASSIGN_OR_RETURN(const std::optional<int64_t> timeout,
                         OptionalNumber(get, "ORIEL_RENDEZVOUS_TIMEOUT", 1, 1'000'000));
  if (timeout) result.timeout = std::chrono::seconds(*timeout);
  for (const char* name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}) {
    if (IsSet(get(name))) absl::StrAppend(&result.job, result.job.empty() ? "" : "/", get(name));
  }
  return result;
}

}  // namespace oriel::runtime
