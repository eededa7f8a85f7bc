#include "runtime/comm/mpi_calls.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace oriel::runtime {
namespace {

std::vector<int64_t>& Names() {
  static auto* const names = new std::vector<int64_t>;
  return *names;
}

}  // namespace

absl::Status MpiStatus(int code, const char* call) {
  if (code == MPI_SUCCESS) return absl::OkStatus();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return absl::AbortedError(absl::StrCat(call, ": ", std::string(text, length)));
}

bool MpiFinalized() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return finalized != 0;
}

void NameMpiRanks(std::vector<int64_t> names) { Names() = std::move(names); }

int64_t NameOfMpiRank(int world_rank) {
  return world_rank >= 0 && world_rank < static_cast<int64_t>(Names().size()) ? Names()[world_rank]
                                                                              : world_rank;
}

void EndMpiJob(std::string_view reason) {
  int world_rank = 0;
  int world_size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  const std::string message = absl::StrCat("rank ", NameOfMpiRank(world_rank), " of ", world_size,
                                           " ends the job: ", std::string(reason), "\n");
  std::fputs(message.c_str(), stderr);
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

}  // namespace oriel::runtime
