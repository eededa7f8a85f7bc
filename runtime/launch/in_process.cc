#include "runtime/launch/in_process.h"

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status.h"
#include "runtime/comm/in_process.h"

namespace oriel::runtime {
namespace {

// The outcome of all ranks. The root cause is the first error that is not the echo of another
// rank's (Aborted).
class Outcome {
 public:
  void Add(int64_t rank, const absl::StatusOr<bool>& result) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (result.ok()) {
      interrupted_ = interrupted_ || *result;
    } else if (error_.ok() || (absl::IsAborted(error_) && !absl::IsAborted(result.status()))) {
      error_ = WithRank(result.status(), rank);
    }
  }
  absl::StatusOr<bool> Get() const {
    if (!error_.ok()) return error_;
    return interrupted_;
  }

 private:
  std::mutex mutex_;
  absl::Status error_;
  bool interrupted_ = false;
};

// Beyond this, threads of one process are not what the user wants, and may not be had.
constexpr int64_t kMaxRanks = 1024;

}  // namespace

absl::Status WithRank(const absl::Status& status, int64_t rank) {
  const std::string name = absl::StrCat("rank ", rank);
  // Executor errors begin with it; "rank 12" does not name rank 1.
  const absl::string_view message = status.message();
  const size_t place = message.find(name);
  const size_t end = place + name.size();
  const bool named = place != absl::string_view::npos &&
                     (end == message.size() || !absl::ascii_isdigit(message[end]));
  return named ? status : Annotate(status, name);
}

absl::StatusOr<bool> RunInProcess(
    int64_t ranks,
    const std::function<absl::StatusOr<bool>(int64_t rank, Communicator* world)>& run_rank) {
  if (ranks == 1) return run_rank(0, nullptr);
  if (ranks > kMaxRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat(ranks, " ranks are too many for one process (", kMaxRanks,
                     " at most); start them with mpirun, or use --comm mpi"));
  }
  std::vector<std::unique_ptr<Communicator>> world = MakeInProcessWorld(ranks);
  Outcome outcome;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&run_rank, &outcome, rank, comm = std::move(world[rank])] {
      absl::StatusOr<bool> result = run_rank(rank, comm.get());
      outcome.Add(rank, result);
      if (!result.ok()) comm->Abort(WithRank(result.status(), rank));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcome.Get();
}

}  // namespace oriel::runtime
