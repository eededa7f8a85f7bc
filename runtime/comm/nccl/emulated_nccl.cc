#include "runtime/comm/nccl/emulated_nccl.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/emulated_device.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

using kernels::cuda::EmulatedDevice;

enum class Kind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kSend, kReceive };
constexpr const char* kKindNames[] = {"all-reduce", "reduce-scatter", "all-gather",
                                      "broadcast",  "send",           "receive"};

struct Group;

using Flag = std::shared_ptr<std::atomic<bool>>;

// A rank's communicator. Operations on streams hold it: it may be aborted before they end.
struct State {
  std::shared_ptr<Group> group;
  int rank = 0;
  const EmulatedDevice* device = nullptr;
  bool aborted = false;   // with the group's mutex
  uint64_t sequence = 0;  // of collectives
  Flag last_done;         // of the batch that was put last, if it was not captured
};

struct Call {
  Kind kind;
  const void* source;
  void* target;
  size_t count;  // as NCCL's function has it
  ncclDataType_t type;
  ncclRedOp_t op;
  int peer;  // or root
  std::shared_ptr<State> state;
  CUstream stream;
};

using CallPointer = std::shared_ptr<const Call>;

// One collective of all ranks.
struct Collective {
  std::vector<CallPointer> calls;
  size_t arrived = 0, taken = 0;
  bool done = false;
};

struct Parcel {
  CallPointer call;
  bool taken = false;
};

struct Group {
  std::mutex mutex;  // of what follows
  std::vector<std::shared_ptr<State>> states;
  size_t joined = 0;
  std::map<uint64_t, std::shared_ptr<Collective>> collectives;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Parcel>>> parcels;  // sender, receiver
  std::string disagreement;
};

struct Library {
  std::mutex mutex;
  uint64_t next_id = 1;
  std::map<uint64_t, std::weak_ptr<Group>> groups;
  std::map<int, ncclResult_t> errors;  // SetEmulatedNcclError
  // Of the batch that was put last on a device, whatever its communicator and stream.
  std::map<const EmulatedDevice*, Flag> last_begun;
};

Library& TheLibrary() {
  static auto* library = new Library;
  return *library;
}

thread_local std::string last_error;
thread_local int depth = 0;
thread_local std::vector<Call> collected;

ncclResult_t Refuse(ncclResult_t result, std::string text) {
  last_error = std::move(text);
  return result;
}

std::shared_ptr<State>& From(ncclComm_t comm) {
  return *reinterpret_cast<std::shared_ptr<State>*>(comm);
}

size_t Width(ncclDataType_t type) {
  switch (type) {
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclFloat32:
    case ncclInt32:
      return 4;
    default:
      return 8;
  }
}

DType TypeOf(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
      return DType::kF16;
    case ncclBfloat16:
      return DType::kBF16;
    case ncclFloat32:
      return DType::kF32;
    case ncclInt32:
      return DType::kI32;
    case ncclInt64:
      return DType::kI64;
    default:
      return DType::kF64;
  }
}

const char* At(const void* address, size_t offset) {
  return static_cast<const char*>(address) + offset;
}
char* At(void* address, size_t offset) { return static_cast<char*>(address) + offset; }

std::string Describe(const Call& call) {
  return absl::StrCat("rank ", call.state->rank, " is in ", kKindNames[static_cast<int>(call.kind)],
                      " of ", call.count, " elements");
}

// All ranks are there, and wait: their memory is. Sums are in another order than the ranks', for
// NCCL promises none.
void Run(const std::vector<CallPointer>& calls) {
  const Call& first = *calls[0];
  const size_t ranks = calls.size(), bytes = first.count * Width(first.type);
  if (first.count == 0) return;
  const Reduction reduction = first.op == ncclMax ? Reduction::kMax : Reduction::kSum;
  std::vector<const void*> sources;
  std::vector<void*> targets;
  switch (first.kind) {
    case Kind::kAllReduce:
      for (const CallPointer& call : calls) {
        sources.push_back(call->source);
        targets.push_back(call->target);
      }
      std::reverse(sources.begin(), sources.end());
      ReduceInOrder(reduction, TypeOf(first.type), sources, targets, first.count);
      return;
    case Kind::kReduceScatter:
      for (size_t rank = 0; rank < ranks; ++rank) {
        sources.clear();
        for (const CallPointer& call : calls) sources.push_back(At(call->source, rank * bytes));
        std::reverse(sources.begin(), sources.end());
        ReduceInOrder(reduction, TypeOf(first.type), sources,
                      absl::MakeConstSpan(&calls[rank]->target, 1), first.count);
      }
      return;
    case Kind::kAllGather:
      for (const CallPointer& to : calls) {
        for (size_t rank = 0; rank < ranks; ++rank) {
          std::memmove(At(to->target, rank * bytes), calls[rank]->source, bytes);
        }
      }
      return;
    case Kind::kBroadcast:
      for (const CallPointer& to : calls)
        std::memmove(to->target, calls[first.peer]->source, bytes);
      return;
    default:
      return;
  }
}

// Calls of one communicator on one stream that were grouped: they run together.
class Batch {
 public:
  explicit Batch(std::vector<Call> calls) : calls_(std::move(calls)) {}

  // It begins when what was put on the device before it has begun (NCCL_LAUNCH_ORDER_IMPLICIT), and
  // when what its communicator had to do before is done. What is captured is as its graph is.
  void Order() {
    const std::shared_ptr<State>& state = calls_[0].state;
    {
      Library& library = TheLibrary();
      const std::lock_guard<std::mutex> lock(library.mutex);
      begun_before_ = std::exchange(library.last_begun[state->device], has_begun_);
    }
    const std::lock_guard<std::mutex> lock(state->group->mutex);
    done_before_ = std::exchange(state->last_done, is_done_);
  }

  CUresult Step(bool first) {
    const std::shared_ptr<State> state = calls_[0].state;
    Group& group = *state->group;
    const std::lock_guard<std::mutex> lock(group.mutex);
    if (state->aborted) {
      *has_begun_ = *is_done_ = true;
      return CUDA_SUCCESS;
    }
    if (first) waits_ = true;
    if (waits_) {
      for (const Flag* before : {&begun_before_, &done_before_}) {
        if (*before != nullptr && !(*before)->load()) return CUDA_ERROR_NOT_READY;
      }
      waits_ = false;
      Begin(group);
      *has_begun_ = true;
    }
    bool done = true;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (!done_[i]) done_[i] = Look(group, i);
      done = done && done_[i];
    }
    if (done) *is_done_ = true;
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }

 private:
  void Begin(Group& group) {
    done_.assign(calls_.size(), false);
    collectives_.assign(calls_.size(), nullptr);
    parcels_.assign(calls_.size(), nullptr);
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Call& call = calls_[i];
      if (call.kind == Kind::kSend) {
        parcels_[i] = std::make_shared<Parcel>(Parcel{std::make_shared<Call>(call)});
        group.parcels[{call.state->rank, call.peer}].push_back(parcels_[i]);
      } else if (call.kind != Kind::kReceive) {
        std::shared_ptr<Collective>& slot = group.collectives[call.state->sequence++];
        if (slot == nullptr) slot = std::make_shared<Collective>();
        slot->calls.resize(group.states.size());
        slot->calls[call.state->rank] = std::make_shared<Call>(call);
        ++slot->arrived;
        collectives_[i] = slot;
      }
    }
  }

  // Whether it is done.
  bool Look(Group& group, size_t i) {
    const Call& call = calls_[i];
    if (call.kind == Kind::kSend) return parcels_[i]->taken;
    if (call.kind == Kind::kReceive) return Receive(group, call);
    Collective& collective = *collectives_[i];
    if (!collective.done) {
      if (collective.arrived < group.states.size() || !group.disagreement.empty()) return false;
      for (const CallPointer& other : collective.calls) {
        if (other->state->aborted) return false;
        if (other->kind != call.kind || other->count != call.count || other->type != call.type ||
            other->op != call.op || (call.kind == Kind::kBroadcast && other->peer != call.peer)) {
          group.disagreement =
              absl::StrCat("ranks disagree: ", Describe(call), ", ", Describe(*other));
          return false;
        }
      }
      Run(collective.calls);
      collective.done = true;
    }
    if (++collective.taken == group.states.size()) Forget(group, collectives_[i]);
    return true;
  }

  bool Receive(Group& group, const Call& call) {
    auto& queue = group.parcels[{call.peer, call.state->rank}];
    if (queue.empty()) return false;
    const std::shared_ptr<Parcel> parcel = queue.front();
    if (parcel->call->state->aborted) return false;
    if (parcel->call->count != call.count) {
      group.disagreement =
          absl::StrCat("ranks disagree: ", Describe(*parcel->call), ", ", Describe(call));
      return false;
    }
    std::memmove(call.target, parcel->call->source, call.count * Width(call.type));
    parcel->taken = true;
    queue.pop_front();
    return true;
  }

  static void Forget(Group& group, const std::shared_ptr<Collective>& collective) {
    for (auto at = group.collectives.begin(); at != group.collectives.end(); ++at) {
      if (at->second != collective) continue;
      group.collectives.erase(at);
      return;
    }
  }

  const std::vector<Call> calls_;
  const Flag has_begun_ = std::make_shared<std::atomic<bool>>(false);
  const Flag is_done_ = std::make_shared<std::atomic<bool>>(false);
  Flag begun_before_, done_before_;  // null: nothing to wait for
  bool waits_ = false;               // for them
  std::vector<bool> done_;
  std::vector<std::shared_ptr<Collective>> collectives_;
  std::vector<std::shared_ptr<Parcel>> parcels_;
};

bool IsCaptured(CUstream handle) {
  kernels::cuda::EmulatedStream* stream = kernels::cuda::StreamFrom(handle);
  const std::lock_guard<std::recursive_mutex> lock(stream->device->mutex());
  return stream->capture != nullptr;
}

ncclResult_t Flush() {
  std::vector<Call> calls = std::exchange(collected, {});
  while (!calls.empty()) {
    const Call first = calls.front();
    std::vector<Call> batch, rest;
    for (Call& call : calls) {
      const bool together = call.state == first.state && call.stream == first.stream;
      (together ? batch : rest).push_back(std::move(call));
    }
    auto shared = std::make_shared<Batch>(std::move(batch));
    if (!IsCaptured(first.stream)) shared->Order();
    const CUresult result = kernels::cuda::EnqueueEmulated(
        first.stream, absl::StrCat("NCCL's ", kKindNames[static_cast<int>(first.kind)]),
        [shared](bool begins) { return shared->Step(begins); });
    if (result != CUDA_SUCCESS) return Refuse(ncclUnhandledCudaError, "the stream takes nothing");
    calls = std::move(rest);
  }
  return ncclSuccess;
}

bool IsMemory(const void* address, size_t bytes) {
  return bytes == 0 || kernels::cuda::IsEmulatedMemory(address, static_cast<int64_t>(bytes));
}

// `source_bytes` and `target_bytes`: of memory that is read and written.
ncclResult_t Put(Call call, size_t source_bytes, size_t target_bytes) {
  if (kernels::cuda::CurrentDevice() != call.state->device) {
    return Refuse(ncclInvalidUsage, "another device is current than the communicator's");
  }
  if (!IsMemory(call.source, source_bytes) || !IsMemory(call.target, target_bytes)) {
    return Refuse(ncclInvalidArgument, "a buffer is not in the device's memory");
  }
  if (call.state->group->joined < call.state->group->states.size()) {
    return Refuse(ncclInvalidUsage, "the communicator is not ready");
  }
  collected.push_back(std::move(call));
  return depth > 0 ? ncclSuccess : Flush();
}

ncclResult_t GetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t GetUniqueId(ncclUniqueId* id) {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  std::memset(id, 0, sizeof *id);
  std::memcpy(id->internal, &library.next_id, sizeof library.next_id);
  ++library.next_id;
  return ncclSuccess;
}

const char* ErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      return "internal error";
  }
}

const char* GetLastError(ncclComm_t) { return last_error.c_str(); }

ncclResult_t InitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                      ncclConfig_t* config) {
  *comm = nullptr;
  if (config == nullptr || config->blocking != 0) {
    return Refuse(ncclInvalidUsage, "the emulator makes communicators that don't block only");
  }
  if (rank < 0 || rank >= ranks) return Refuse(ncclInvalidArgument, "there is no such rank");
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  std::shared_ptr<Group> group;
  {
    Library& library = TheLibrary();
    const std::lock_guard<std::mutex> lock(library.mutex);
    group = library.groups[number].lock();
    if (group == nullptr) library.groups[number] = group = std::make_shared<Group>();
  }
  auto state = std::make_shared<State>();
  state->group = group;
  state->rank = rank;
  state->device = kernels::cuda::CurrentDevice();
  const std::lock_guard<std::mutex> lock(group->mutex);
  group->states.resize(ranks);
  for (const auto& other : group->states) {
    if (other != nullptr && other->device == state->device) {
      return Refuse(ncclInvalidUsage, absl::StrCat("Duplicate GPU: rank ", rank, " and rank ",
                                                   other->rank, " are on one device"));
    }
  }
  if (group->states[rank] != nullptr) return Refuse(ncclInvalidArgument, "the rank is taken");
  group->states[rank] = state;
  ++group->joined;
  *comm = reinterpret_cast<ncclComm_t>(new std::shared_ptr<State>(state));
  return ncclInProgress;
}

ncclResult_t Finalize(ncclComm_t) { return ncclSuccess; }

ncclResult_t Drop(ncclComm_t comm, bool aborts) {
  const std::shared_ptr<State> state = From(comm);
  {
    const std::lock_guard<std::mutex> lock(state->group->mutex);
    state->aborted = state->aborted || aborts;
  }
  delete &From(comm);
  return ncclSuccess;
}
ncclResult_t Destroy(ncclComm_t comm) { return Drop(comm, /*aborts=*/false); }
ncclResult_t Abort(ncclComm_t comm) { return Drop(comm, /*aborts=*/true); }

ncclResult_t GetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const State& state = *From(comm);
  {
    Library& library = TheLibrary();
    const std::lock_guard<std::mutex> lock(library.mutex);
    const auto found = library.errors.find(state.rank);
    if (found != library.errors.end()) {
      *error = found->second;
      return ncclSuccess;
    }
  }
  const std::lock_guard<std::mutex> lock(state.group->mutex);
  *error = state.group->joined < state.group->states.size() ? ncclInProgress : ncclSuccess;
  if (!state.group->disagreement.empty()) {
    *error = ncclInternalError;
    last_error = state.group->disagreement;
  }
  return ncclSuccess;
}

ncclResult_t AllReduce(const void* source, void* target, size_t count, ncclDataType_t type,
                       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * Width(type);
  return Put({Kind::kAllReduce, source, target, count, type, op, 0, From(comm), stream}, bytes,
             bytes);
}

ncclResult_t ReduceScatter(const void* source, void* target, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * Width(type), ranks = From(comm)->group->states.size();
  return Put({Kind::kReduceScatter, source, target, count, type, op, 0, From(comm), stream},
             ranks * bytes, bytes);
}

ncclResult_t AllGather(const void* source, void* target, size_t count, ncclDataType_t type,
                       ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * Width(type), ranks = From(comm)->group->states.size();
  return Put({Kind::kAllGather, source, target, count, type, ncclSum, 0, From(comm), stream}, bytes,
             ranks * bytes);
}

ncclResult_t Broadcast(const void* source, void* target, size_t count, ncclDataType_t type,
                       int root, ncclComm_t comm, cudaStream_t stream) {
  const size_t bytes = count * Width(type);
  return Put({Kind::kBroadcast, source, target, count, type, ncclSum, root, From(comm), stream},
             From(comm)->rank == root ? bytes : 0, bytes);
}

ncclResult_t Send(const void* source, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  return Put({Kind::kSend, source, nullptr, count, type, ncclSum, peer, From(comm), stream},
             count * Width(type), 0);
}

ncclResult_t Receive(void* target, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                     cudaStream_t stream) {
  return Put({Kind::kReceive, nullptr, target, count, type, ncclSum, peer, From(comm), stream}, 0,
             count * Width(type));
}

ncclResult_t GroupStart() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t GroupEnd() {
  if (depth == 0) return Refuse(ncclInvalidUsage, "no group of calls was begun");
  return --depth > 0 ? ncclSuccess : Flush();
}

}  // namespace

const Nccl& EmulatedNccl() {
  static const auto* const table = [] {
    auto* nccl = new Nccl;
    nccl->ncclGetVersion = &GetVersion;
    nccl->ncclGetUniqueId = &GetUniqueId;
    nccl->ncclGetErrorString = &ErrorString;
    nccl->ncclGetLastError = &GetLastError;
    nccl->ncclCommInitRankConfig = &InitRank;
    nccl->ncclCommFinalize = &Finalize;
    nccl->ncclCommDestroy = &Destroy;
    nccl->ncclCommAbort = &Abort;
    nccl->ncclCommGetAsyncError = &GetAsyncError;
    nccl->ncclAllReduce = &AllReduce;
    nccl->ncclReduceScatter = &ReduceScatter;
    nccl->ncclAllGather = &AllGather;
    nccl->ncclBroadcast = &Broadcast;
    nccl->ncclSend = &Send;
    nccl->ncclRecv = &Receive;
    nccl->ncclGroupStart = &GroupStart;
    nccl->ncclGroupEnd = &GroupEnd;
    return nccl;
  }();
  return *table;
}

void SetEmulatedNcclError(int rank, ncclResult_t error) {
  Library& library = TheLibrary();
  const std::lock_guard<std::mutex> lock(library.mutex);
  if (error == ncclSuccess) {
    library.errors.erase(rank);
  } else {
    library.errors[rank] = error;
  }
}

}  // namespace oriel::runtime
