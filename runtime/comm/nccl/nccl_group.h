// The NCCL communicators of a rank, and the watchdog over them.
#ifndef ORIEL_RUNTIME_COMM_NCCL_NCCL_GROUP_H_
#define ORIEL_RUNTIME_COMM_NCCL_NCCL_GROUP_H_

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/device.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/nccl/graph_progress.h"
#include "runtime/comm/nccl/nccl_communicator.h"
#include "runtime/comm/nccl/nccl_library.h"
#include "runtime/comm/nccl/watchdog.h"

namespace oriel::runtime {

class NcclGroup;

// What the groups of a rank share. Thread-safe.
class NcclWorld {
 public:
  NcclWorld(Communicator& host, const kernels::cuda::Device& device, const Nccl& nccl,
            const NcclOptions& options, std::unique_ptr<GraphProgress> progress);
  ~NcclWorld();

  const Nccl& nccl() const { return nccl_; }
  const kernels::cuda::Device& device() const { return device_; }
  const NcclOptions& options() const { return options_; }
  Communicator& host() { return host_; }

  // OK, or why the job has ended.
  absl::Status Check() { return watchdog_->status(); }
  // Ends it here and, by the host's communicator, on the other ranks.
  void Fail(const absl::Status& reason) { watchdog_->Fail(reason); }
  // Watches what is on the stream now, under a name; `part` may say what of it has not ended
  // (Watchdog::Watch).
  absl::Status Follow(CUstream stream, const std::string& what,
                      std::function<std::string()> part = nullptr);
  // The same, and waits for it.
  absl::Status FollowAndWait(CUstream stream, const std::string& what);
  // Of the calls that are recorded into graphs; used by the one thread that records.
  GraphProgress& progress() { return *progress_; }

  void Add(NcclGroup* group);
  void Remove(NcclGroup* group);

 private:
  // An event that is on the stream now. ReturnEvent gives it back.
  absl::StatusOr<CUevent> RecordEvent(CUstream stream);
  void ReturnEvent(CUevent event);
  void AbortGroups(const absl::Status& reason);

  Communicator& host_;
  const kernels::cuda::Device& device_;
  const Nccl& nccl_;
  const NcclOptions options_;
  const std::unique_ptr<GraphProgress> progress_;
  std::mutex mutex_;
  std::set<NcclGroup*> groups_;
  std::vector<CUevent> events_;  // that nobody uses
  std::unique_ptr<Watchdog> watchdog_;
};

// One NCCL communicator, which does not block. Used by one thread, and aborted by any.
class NcclGroup {
 public:
  // Collective over the ranks of `host`, of more than one.
  static absl::StatusOr<std::unique_ptr<NcclGroup>> Create(std::shared_ptr<NcclWorld> world,
                                                           Communicator& host);
  // Of two ranks of the world: `first` is this rank, or else `peer` is the first one. Both call it.
  // Its calls take no more than `max_ctas` blocks of the device.
  static absl::StatusOr<std::unique_ptr<NcclGroup>> CreatePair(std::shared_ptr<NcclWorld> world,
                                                               int64_t peer, bool first,
                                                               int max_ctas);
  ~NcclGroup();

  // Puts what enqueue(communicator) calls of NCCL on their streams, as one of its groups of calls.
  // `what` is for messages. Returns when NCCL has taken them.
  absl::Status Call(const std::string& what,
                    const std::function<ncclResult_t(ncclComm_t)>& enqueue);
  // Starts to abort it, and returns at once: NCCL may wait for graphs that another thread holds.
  void Abort();

 private:
  explicit NcclGroup(std::shared_ptr<NcclWorld> world) : world_(std::move(world)) {}

  static absl::StatusOr<std::unique_ptr<NcclGroup>> Make(std::shared_ptr<NcclWorld> world,
                                                         const ncclUniqueId& id, int64_t rank,
                                                         int64_t size, ncclConfig_t config);

  // Until NCCL has nothing in progress. With the error, if it found one.
  absl::Status Settle(const std::string& what);
  absl::Status AsyncError();

  const std::shared_ptr<NcclWorld> world_;
  std::mutex mutex_;  // around each call of NCCL: none comes behind an abort
  ncclComm_t comm_ = nullptr;
  bool aborted_ = false;
  bool settled_ = false;  // made, and nothing in progress
  std::string last_;      // what was asked for last, for messages
  std::thread aborting_;
  std::shared_ptr<std::atomic<bool>> abort_ended_;
  int64_t check_ = -1;

  friend class NcclWorld;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_COMM_NCCL_NCCL_GROUP_H_
