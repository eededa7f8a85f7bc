#include "runtime/comm/nccl/nccl_group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// How long the end of a communicator may take before it is aborted instead, and an abort before it
// is left to itself.
constexpr std::chrono::seconds kFinalize{5};

// Between two looks: short at first, for most things end at once.
class Pauses {
 public:
  void Pause() {
    if (++looks_ < 1000) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(looks_ < 2000 ? 20 : 500));
  }

 private:
  int looks_ = 0;
};

// What rank 0 of a group tells the others.
struct Birth {
  int32_t ok = 0;
  ncclUniqueId id = {};
};

absl::Status Bear(const Nccl& nccl, Birth& birth) {
  absl::Status status = ORIEL_NCCL(nccl, ncclGetUniqueId, &birth.id);
  birth.ok = status.ok();
  return status;
}

absl::Status Stillborn() {
  return absl::AbortedError("the first rank of a group could not make an NCCL communicator");
}

}  // namespace

NcclWorld::NcclWorld(Communicator& host, const kernels::cuda::Device& device, const Nccl& nccl,
                     const NcclOptions& options, std::unique_ptr<GraphProgress> progress)
    : host_(host), device_(device), nccl_(nccl), options_(options), progress_(std::move(progress)) {
  Watchdog::Options watch;
  watch.timeout = options.timeout;
  watch.period = std::clamp<std::chrono::milliseconds>(
      options.timeout / 10, std::chrono::milliseconds(1), std::chrono::milliseconds(20));
  watch.begin = [this] { static_cast<void>(device_.MakeCurrent()); };
  watch.on_failure = [this](const absl::Status& reason) { AbortGroups(reason); };
  watchdog_ = std::make_unique<Watchdog>(std::move(watch));
  // A rank that is lost is noticed there first.
  watchdog_->AddCheck([this] { return host_.Check(); });
}

NcclWorld::~NcclWorld() {
  watchdog_ = nullptr;
  if (!device_.MakeCurrent().ok()) return;
  for (const CUevent event : events_) device_.driver().cuEventDestroy(event);
}

absl::Status NcclWorld::Follow(CUstream stream, const std::string& what,
                               std::function<std::string()> part) {
  ORIEL_ASSIGN_OR_RETURN(const CUevent event, RecordEvent(stream));
  watchdog_->Watch(
      what, [this, event] { return device_.driver().cuEventQuery(event) != CUDA_ERROR_NOT_READY; },
      [this, event] { ReturnEvent(event); }, std::move(part));
  return absl::OkStatus();
}

absl::Status NcclWorld::FollowAndWait(CUstream stream, const std::string& what) {
  ORIEL_ASSIGN_OR_RETURN(const CUevent event, RecordEvent(stream));
  // By the watchdog as well: the host may be stuck in the driver.
  const auto over = std::make_shared<std::atomic<bool>>(false);
  watchdog_->Watch(
      what, [over] { return over->load(); }, [this, event] { ReturnEvent(event); });
  CUresult result = CUDA_ERROR_NOT_READY;
  absl::Status status;
  Pauses pauses;
  while (status.ok()) {
    result = device_.driver().cuEventQuery(event);
    if (result != CUDA_ERROR_NOT_READY) break;
    status = Check();
    pauses.Pause();
  }
  *over = true;
  // What was aborted has ended too, but is not done.
  if (status.ok()) status = Check();
  if (!status.ok()) return status;
  return DriverStatus(device_.driver(), result, "cuEventQuery");
}

absl::StatusOr<CUevent> NcclWorld::RecordEvent(CUstream stream) {
  CUevent event = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!events_.empty()) {
      event = events_.back();
      events_.pop_back();
    }
  }
  if (event == nullptr) {
    ORIEL_RETURN_IF_ERROR(
        ORIEL_CUDA(device_.driver(), cuEventCreate, &event, CU_EVENT_DISABLE_TIMING));
  }
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(device_.driver(), cuEventRecord, event, stream));
  return event;
}

void NcclWorld::ReturnEvent(CUevent event) {
  std::lock_guard<std::mutex> lock(mutex_);
  events_.push_back(event);
}

void NcclWorld::Add(NcclGroup* group) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    groups_.insert(group);
  }
  group->check_ = watchdog_->AddCheck([group] { return group->AsyncError(); });
}

void NcclWorld::Remove(NcclGroup* group) {
  watchdog_->RemoveCheck(group->check_);
  std::lock_guard<std::mutex> lock(mutex_);
  groups_.erase(group);
}

// The other ranks first: they must not wait for what is aborted here.
void NcclWorld::AbortGroups(const absl::Status& reason) {
  if (host_.Check().ok()) host_.Abort(reason);
  std::lock_guard<std::mutex> lock(mutex_);
  for (NcclGroup* group : groups_) group->Abort();
}

absl::StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Create(std::shared_ptr<NcclWorld> world,
                                                             Communicator& host) {
  ORIEL_RETURN_IF_ERROR(world->device().MakeCurrent());
  Birth birth;
  absl::Status born;
  if (host.rank() == 0) born = Bear(world->nccl(), birth);
  ORIEL_RETURN_IF_ERROR(host.Broadcast(0, &birth, sizeof birth));
  ORIEL_RETURN_IF_ERROR(born);
  if (!birth.ok) return Stillborn();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  return Make(std::move(world), birth.id, host.rank(), host.size(), config);
}

absl::StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::CreatePair(std::shared_ptr<NcclWorld> world,
                                                                 int64_t peer, bool first,
                                                                 int max_ctas) {
  constexpr int64_t kTag = kMaxTags - 2;  // channels have the first ones, services the last one
  ORIEL_RETURN_IF_ERROR(world->device().MakeCurrent());
  Communicator& host = world->host();
  Birth birth;
  const absl::Status born = first ? Bear(world->nccl(), birth) : absl::OkStatus();
  ORIEL_ASSIGN_OR_RETURN(const std::unique_ptr<Message> message,
                         first ? host.Send(peer, kTag, &birth, sizeof birth)
                               : host.Receive(peer, kTag, &birth, sizeof birth));
  ORIEL_RETURN_IF_ERROR(message->Wait());
  ORIEL_RETURN_IF_ERROR(born);
  if (!birth.ok) return Stillborn();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.maxCTAs = max_ctas;
  return Make(std::move(world), birth.id, first ? 0 : 1, 2, config);
}

absl::StatusOr<std::unique_ptr<NcclGroup>> NcclGroup::Make(std::shared_ptr<NcclWorld> world,
                                                           const ncclUniqueId& id, int64_t rank,
                                                           int64_t size, ncclConfig_t config) {
  const Nccl& nccl = world->nccl();
  std::unique_ptr<NcclGroup> group(new NcclGroup(world));
  config.blocking = 0;
  const ncclResult_t result = nccl.ncclCommInitRankConfig(&group->comm_, static_cast<int>(size), id,
                                                          static_cast<int>(rank), &config);
  world->Add(group.get());
  constexpr const char* kWhat = "making an NCCL communicator";
  ORIEL_RETURN_IF_ERROR(NcclStatus(nccl, result, kWhat, group->comm_));
  ORIEL_RETURN_IF_ERROR(group->Settle(absl::StrCat(kWhat, " of ", size, " ranks")));
  return group;
}

NcclGroup::~NcclGroup() {
  world_->Remove(this);
  static_cast<void>(world_->device().MakeCurrent());
  const Nccl& nccl = world_->nccl();
  if (aborting_.joinable()) {
    const Clock::time_point end = Clock::now() + kFinalize;
    for (Pauses pauses; !abort_ended_->load() && Clock::now() < end;) pauses.Pause();
    abort_ended_->load() ? aborting_.join() : aborting_.detach();
  }
  if (comm_ == nullptr || aborted_) return;
  ncclResult_t result = settled_ ? nccl.ncclCommFinalize(comm_) : ncclInternalError;
  const Clock::time_point end = Clock::now() + kFinalize;
  Pauses pauses;
  while (result == ncclInProgress && Clock::now() < end && world_->Check().ok()) {
    pauses.Pause();
    if (nccl.ncclCommGetAsyncError(comm_, &result) != ncclSuccess) break;
  }
  if (result == ncclSuccess) {
    nccl.ncclCommDestroy(comm_);
  } else {
    nccl.ncclCommAbort(comm_);
  }
}

absl::Status NcclGroup::Call(const std::string& what,
                             const std::function<ncclResult_t(ncclComm_t)>& enqueue) {
  ORIEL_RETURN_IF_ERROR(world_->Check());
  const Nccl& nccl = world_->nccl();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_) return world_->Check();
    settled_ = false;
    last_ = what;
    ORIEL_RETURN_IF_ERROR(ORIEL_NCCL(nccl, ncclGroupStart));
    const ncclResult_t inner = enqueue(comm_);
    const ncclResult_t outer = nccl.ncclGroupEnd();
    ORIEL_RETURN_IF_ERROR(NcclStatus(nccl, inner, what.c_str(), comm_));
    ORIEL_RETURN_IF_ERROR(NcclStatus(nccl, outer, what.c_str(), comm_));
  }
  return Settle(what);
}

void NcclGroup::Abort() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (aborted_ || comm_ == nullptr) return;
  aborted_ = true;
  abort_ended_ = std::make_shared<std::atomic<bool>>(false);
  // NCCL makes its device current itself; a call of the driver before it could wait for what is to
  // be aborted.
  aborting_ = std::thread([&nccl = world_->nccl(), comm = comm_, ended = abort_ended_] {
    nccl.ncclCommAbort(comm);
    *ended = true;
  });
}

absl::Status NcclGroup::Settle(const std::string& what) {
  const Clock::time_point end = Clock::now() + world_->options().timeout;
  Pauses pauses;
  while (true) {
    ORIEL_RETURN_IF_ERROR(world_->Check());
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!aborted_) {
        ncclResult_t result = ncclSuccess;
        ORIEL_RETURN_IF_ERROR(ORIEL_NCCL(world_->nccl(), ncclCommGetAsyncError, comm_, &result));
        if (result != ncclInProgress) {
          settled_ = result == ncclSuccess;
          return NcclStatus(world_->nccl(), result, what.c_str(), comm_);
        }
      }
    }
    if (Clock::now() > end) {
      const double seconds = std::chrono::duration<double>(world_->options().timeout).count();
      const absl::Status late = absl::DeadlineExceededError(absl::StrCat(
          what, " has not ended within ", seconds, " s: another rank is late or lost"));
      world_->Fail(late);
      return world_->Check();
    }
    pauses.Pause();
  }
}

// For the watchdog.
absl::Status NcclGroup::AsyncError() {
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || aborted_ || comm_ == nullptr) return absl::OkStatus();
  ncclResult_t result = ncclSuccess;
  ORIEL_RETURN_IF_ERROR(ORIEL_NCCL(world_->nccl(), ncclCommGetAsyncError, comm_, &result));
  const std::string what =
      last_.empty() ? "NCCL" : absl::StrCat(last_, ", or what this rank had asked for before it");
  return NcclStatus(world_->nccl(), result, what.c_str(), comm_);
}

}  // namespace oriel::runtime
