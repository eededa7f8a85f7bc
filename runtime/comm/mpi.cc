#include "runtime/comm/mpi.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/control_group.h"
#include "runtime/base/cores.h"
#include "runtime/base/status.h"
#include "runtime/comm/mpi_calls.h"
#include "runtime/comm/mpi_messages.h"
#include "runtime/comm/rank_order.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kMessageBytes = 1 << 30;

// How long a rank looks again and again for what it waits for before it sleeps between looks. Not
// where ranks exceed cores, for there the rank that is waited for needs this one's core.
constexpr std::chrono::microseconds kSpin{200};

#define ORIEL_MPI_AWAIT(function, ...) \
  Await([&](MPI_Request* request) { return function(__VA_ARGS__, request); }, #function)

int RankIn(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int SizeOf(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  return size;
}

class MpiCommunicator final : public RankOrderCommunicator {
 public:
  // Takes both communicators.
  MpiCommunicator(MPI_Comm comm, MPI_Comm message_comm, bool is_world,
                  std::shared_ptr<MpiMessages> messages)
      : RankOrderCommunicator(RankIn(comm), SizeOf(comm)),
        comm_(comm),
        message_comm_(message_comm),
        is_world_(is_world),
        messages_(std::move(messages)) {
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(message_comm_, MPI_ERRORS_RETURN);
    counts_.resize(size());
    displacements_.resize(size());
    receive_counts_.resize(size());
    receive_displacements_.resize(size());
  }

  ~MpiCommunicator() override {
    if (MpiFinalized()) return;
    // Who comes first sleeps here: in MPI_Finalize it would keep a core from the others.
    if (is_world_) static_cast<void>(Barrier());
    messages_->Forget(message_comm_);
    MPI_Comm_free(&message_comm_);
    MPI_Comm_free(&comm_);
    if (is_world_) MPI_Finalize();
  }

  std::string name() const override { return "mpi"; }

  absl::StatusOr<std::unique_ptr<Communicator>> Group(const std::vector<int64_t>& ranks) override {
    ORIEL_RETURN_IF_ERROR(CheckGroup(ranks, rank(), size()));
    return Join(ranks);
  }

  absl::StatusOr<std::unique_ptr<Communicator>> Renumber(
      const std::vector<int64_t>& ranks) override {
    ORIEL_ASSIGN_OR_RETURN(std::vector<int64_t> names, NewNumbers(ranks, size()));
    NameMpiRanks(std::move(names));
    return Join(ranks);
  }

  absl::Status Broadcast(int64_t root, void* data, int64_t bytes) override {
    if (root < 0 || root >= size() || bytes < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("broadcast of ", bytes, " bytes from rank ", root, " of ", size()));
    }
    for (int64_t begin = 0; begin < bytes; begin += kMessageBytes) {
      const int count = static_cast<int>(std::min(kMessageBytes, bytes - begin));
      ORIEL_RETURN_IF_ERROR(ORIEL_MPI_AWAIT(MPI_Ibcast, static_cast<char*>(data) + begin, count,
                                            MPI_BYTE, static_cast<int>(root), comm_));
    }
    return absl::OkStatus();
  }

  absl::Status Barrier() override { return ORIEL_MPI_AWAIT(MPI_Ibarrier, comm_); }

  absl::StatusOr<std::unique_ptr<Message>> Send(int64_t peer, int64_t tag, const void* data,
                                                int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("send", peer, tag, data, bytes, size()));
    return messages_->Send(message_comm_, peer, tag, data, bytes);
  }

  absl::StatusOr<std::unique_ptr<Message>> Receive(int64_t peer, int64_t tag, void* data,
                                                   int64_t bytes) override {
    ORIEL_RETURN_IF_ERROR(CheckMessage("receive", peer, tag, data, bytes, size()));
    return messages_->Receive(message_comm_, peer, tag, data, bytes);
  }

  void Progress() override { messages_->Progress(); }

  absl::Status CheckConcurrent() const override {
    int provided = MPI_THREAD_SINGLE;
    MPI_Query_thread(&provided);
    if (provided >= MPI_THREAD_MULTIPLE) return absl::OkStatus();
    return absl::UnavailableError(
        "this MPI cannot be called by several threads at the same time (MPI_THREAD_MULTIPLE)");
  }
  void SetBackground(bool background) override { background_ = background; }

  void Abort(const absl::Status& reason) override {
    EndMpiJob({reason.message().data(), reason.message().size()});
  }

 private:
  // Those of `ranks`, numbered as they are listed.
  absl::StatusOr<std::unique_ptr<Communicator>> Join(const std::vector<int64_t>& ranks) {
    const std::vector<int> members(ranks.begin(), ranks.end());
    MPI_Group all;
    MPI_Group group;
    ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_group, comm_, &all));
    ORIEL_RETURN_IF_ERROR(
        ORIEL_MPI(MPI_Group_incl, all, static_cast<int>(members.size()), members.data(), &group));
    MPI_Comm comm = MPI_COMM_NULL;
    const absl::Status status = ORIEL_MPI(MPI_Comm_create_group, comm_, group, /*tag=*/0, &comm);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    ORIEL_RETURN_IF_ERROR(status);
    MPI_Comm message_comm = MPI_COMM_NULL;
    ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_dup, comm, &message_comm));
    return std::make_unique<MpiCommunicator>(comm, message_comm, /*is_world=*/false, messages_);
  }

  absl::Status ExchangeBytes(const char* source, absl::Span<const Extent> outgoing, char* target,
                             absl::Span<const Extent> incoming) override {
    Spread(outgoing, counts_, displacements_);
    Spread(incoming, receive_counts_, receive_displacements_);
    return ORIEL_MPI_AWAIT(MPI_Ialltoallv, source, counts_.data(), displacements_.data(), MPI_BYTE,
                           target, receive_counts_.data(), receive_displacements_.data(), MPI_BYTE,
                           comm_);
  }

  absl::Status GatherBytes(char* target, absl::Span<const Extent> extents) override {
    Spread(extents, counts_, displacements_);
    return ORIEL_MPI_AWAIT(MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_BYTE, target, counts_.data(),
                           displacements_.data(), MPI_BYTE, comm_);
  }

  absl::Status GatherWhole(char* target, int64_t bytes) override {
    if (bytes <= INT_MAX / size()) {
      return ORIEL_MPI_AWAIT(MPI_Iallgather, MPI_IN_PLACE, 0, MPI_BYTE, target,
                             static_cast<int>(bytes), MPI_BYTE, comm_);
    }
    for (int64_t root = 0; root < size(); ++root) {
      ORIEL_RETURN_IF_ERROR(Broadcast(root, target + root * bytes, bytes));
    }
    return absl::OkStatus();
  }

  // As MPI takes them.
  static void Spread(absl::Span<const Extent> extents, std::vector<int>& counts,
                     std::vector<int>& displacements) {
    for (size_t rank = 0; rank < extents.size(); ++rank) {
      counts[rank] = static_cast<int>(extents[rank].bytes);
      displacements[rank] = static_cast<int>(extents[rank].offset);
    }
  }

  // Starts a nonblocking call by `start(&request)` and waits for it.
  template <typename Start>
  absl::Status Await(const Start& start, const char* call) {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = start(&request);
    if (code == MPI_SUCCESS) code = messages_->Await(request, background_);
    return MpiStatus(code, call);
  }

  MPI_Comm comm_;
  // Of messages alone: who looks for one of any tag would take what Open MPI's
  // MPI_Comm_create_group sends.
  MPI_Comm message_comm_;
  const bool is_world_;
  const std::shared_ptr<MpiMessages> messages_;  // of all groups
  bool background_ = false;
  // Kept between calls.
  std::vector<int> counts_;
  std::vector<int> displacements_;
  std::vector<int> receive_counts_;
  std::vector<int> receive_displacements_;
};

// Whether this machine has a core for each of its ranks. A rank that mpirun has bound to a core
// sees only that one, so all ranks' cores are joined.
absl::StatusOr<bool> CoresSuffice() {
  MPI_Comm machine = MPI_COMM_NULL;
  ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_split_type, MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED,
                                  /*key=*/0, MPI_INFO_NULL, &machine));
  int ranks = 1;
  MPI_Comm_size(machine, &ranks);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);
  const absl::Status joined =
      ORIEL_MPI(MPI_Allreduce, MPI_IN_PLACE, &cores, sizeof cores, MPI_BYTE, MPI_BOR, machine);
  MPI_Comm_free(&machine);
  ORIEL_RETURN_IF_ERROR(joined);
  return ranks <= CoresOfQuota(CPU_COUNT(&cores), CpuQuota());
}

absl::StatusOr<Communicator*> OpenWorld() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized) return absl::FailedPreconditionError("MPI is initialised already");
  // Where ranks exceed cores, Open MPI gives the core away in every call that finds nothing, also
  // in a rank's look at its messages between two kernels. Ranks sleep when they wait, so that this
  // only costs: with other processes on the machine, a step took hundreds of times as long.
  setenv("OMPI_MCA_mpi_yield_when_idle", "0", /*replace=*/0);
  int provided = MPI_THREAD_SINGLE;
  ORIEL_RETURN_IF_ERROR(
      ORIEL_MPI(MPI_Init_thread, nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided));
  if (provided < MPI_THREAD_SERIALIZED) {
    MPI_Finalize();
    return absl::UnavailableError(
        "this MPI cannot be called from several threads (MPI_THREAD_SERIALIZED)");
  }
  ORIEL_RETURN_IF_ERROR(CheckMpiTags());
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm message_comm = MPI_COMM_NULL;
  ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_dup, MPI_COMM_WORLD, &comm));
  ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Comm_dup, MPI_COMM_WORLD, &message_comm));
  ORIEL_ASSIGN_OR_RETURN(const bool cores_suffice, CoresSuffice());
  return new MpiCommunicator(
      comm, message_comm, /*is_world=*/true,
      std::make_shared<MpiMessages>(cores_suffice ? kSpin : MpiMessages::Clock::duration()));
}

}  // namespace
}  // namespace oriel::runtime

extern "C" oriel::runtime::Communicator* OrielOpenMpiWorld(absl::Status* status) {
  absl::StatusOr<oriel::runtime::Communicator*> world = oriel::runtime::OpenWorld();
  *status = world.status();
  return world.ok() ? *world : nullptr;
}
