#include "runtime/comm/mpi_messages.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/comm/mpi_calls.h"
#include "runtime/comm/reduce.h"

namespace oriel::runtime {
namespace {

int DataTag(int64_t tag) { return static_cast<int>(2 * tag); }
// Of the receiver's size, which goes the other way.
int SizeTag(int64_t tag) { return static_cast<int>(2 * tag + 1); }

// How long a rank that has given up a send waits for its receiver.
constexpr std::chrono::seconds kPatience{5};

// Between two looks at MPI by a rank that computes: one takes about a microsecond, a kernel often
// less than this.
constexpr std::chrono::microseconds kProgressPeriod{100};

// Calls start(count, type) for `bytes` bytes, whose number may exceed an int.
template <typename Start>
absl::Status WithType(int64_t bytes, const Start& start, const char* call) {
  if (bytes <= INT_MAX) return MpiStatus(start(static_cast<int>(bytes), MPI_BYTE), call);
  constexpr int64_t kBlock = 1 << 20;
  int lengths[] = {static_cast<int>(bytes / kBlock), static_cast<int>(bytes % kBlock)};
  MPI_Aint places[] = {0, static_cast<MPI_Aint>(bytes - bytes % kBlock)};
  MPI_Datatype types[] = {MPI_DATATYPE_NULL, MPI_BYTE};
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  ORIEL_RETURN_IF_ERROR(
      ORIEL_MPI(MPI_Type_contiguous, static_cast<int>(kBlock), MPI_BYTE, &types[0]));
  absl::Status status = ORIEL_MPI(MPI_Type_create_struct, 2, lengths, places, types, &whole);
  MPI_Type_free(&types[0]);
  ORIEL_RETURN_IF_ERROR(status);
  status = ORIEL_MPI(MPI_Type_commit, &whole);
  if (status.ok()) status = MpiStatus(start(1, whole), call);
  MPI_Type_free(&whole);  // MPI keeps it until the message is done
  return status;
}

// What errors call rank `rank` of `comm`.
int64_t WorldRank(MPI_Comm comm, int rank) {
  MPI_Group group, world;
  int result = MPI_UNDEFINED;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, 1, &rank, world, &result);
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  return NameOfMpiRank(result);
}

int64_t OwnWorldRank(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return WorldRank(comm, rank);
}

class MpiSend final : public Message, private MpiMessages::Waiter {
 public:
  MpiSend(MpiMessages& messages, MPI_Comm comm, int64_t peer, int64_t tag, int64_t bytes)
      : messages_(messages), comm_(comm), peer_(static_cast<int>(peer)), tag_(tag), bytes_(bytes) {
    messages_.Begin(comm_);
  }

  ~MpiSend() override {
    messages_.Remove(comm_, {peer_, SizeTag(tag_)}, this);
    if (!MpiFinalized()) GiveUp();
    messages_.End(comm_);
  }

  absl::Status Start(const void* data) {
    messages_.Add(comm_, {peer_, SizeTag(tag_)}, this);
    return WithType(
        bytes_,
        [&](int count, MPI_Datatype type) {
          return MPI_Isend(data, count, type, peer_, DataTag(tag_), comm_, &data_);
        },
        "MPI_Isend");
  }

  absl::Status Wait() override {
    messages_.Poll([&] { return !waits_; });
    ORIEL_RETURN_IF_ERROR(size_status_);
    ORIEL_RETURN_IF_ERROR(MpiStatus(messages_.Await(data_), "MPI_Isend"));
    if (peer_bytes_ == bytes_) return absl::OkStatus();
    return MessageMismatch(OwnWorldRank(comm_), WorldRank(comm_, peer_), tag_, bytes_, peer_bytes_);
  }

 private:
  // The receiver's size.
  void Accept(MpiMessages::Arrived arrived) override {
    size_status_ =
        ORIEL_MPI(MPI_Mrecv, &peer_bytes_, 1, MPI_INT64_T, &arrived.message, MPI_STATUS_IGNORE);
    waits_ = false;
  }

  void GiveUp() {
    const auto end = MpiMessages::Clock::now() + kPatience;
    messages_.Poll([&] {
      int done = 0;
      if (MPI_Test(&data_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) return true;
      if (MpiMessages::Clock::now() > end) {
        EndMpiJob(absl::StrCat("it has given up its send of ", bytes_, " bytes to rank ",
                               WorldRank(comm_, peer_), " with tag ", tag_,
                               ", which nobody receives"));
      }
      return false;
    });
  }

  MpiMessages& messages_;
  const MPI_Comm comm_;
  const int peer_;
  const int64_t tag_;
  const int64_t bytes_;
  std::atomic<bool> waits_{true};  // for the receiver's size; what comes with it is read behind
  int64_t peer_bytes_ = 0;
  absl::Status size_status_;
  MPI_Request data_ = MPI_REQUEST_NULL;
};

class MpiReceive final : public Message, private MpiMessages::Waiter {
 public:
  MpiReceive(MpiMessages& messages, MPI_Comm comm, int64_t peer, int64_t tag, void* data,
             int64_t bytes)
      : messages_(messages),
        comm_(comm),
        peer_(static_cast<int>(peer)),
        tag_(tag),
        target_(data),
        bytes_(bytes) {
    messages_.Begin(comm_);
  }

  ~MpiReceive() override {
    messages_.Remove(comm_, {peer_, DataTag(tag_)}, this);
    if (!MpiFinalized()) {
      messages_.Await(data_);
      messages_.Await(size_);
    }
    messages_.End(comm_);
  }

  absl::Status Start() {
    messages_.Add(comm_, {peer_, DataTag(tag_)}, this);
    return ORIEL_MPI(MPI_Isend, &bytes_, 1, MPI_INT64_T, peer_, SizeTag(tag_), comm_, &size_);
  }

  absl::Status Wait() override {
    messages_.Poll([&] { return !waits_; });
    const int code = messages_.Await(data_);
    if (result_.ok()) result_ = MpiStatus(code, "MPI_Imrecv");
    if (result_.ok()) result_ = MpiStatus(messages_.Await(size_), "MPI_Isend");
    return result_;
  }

 private:
  void Accept(MpiMessages::Arrived arrived) override {
    void* target = target_;
    if (arrived.bytes != bytes_) {
      result_ = MessageMismatch(WorldRank(comm_, peer_), OwnWorldRank(comm_), tag_, arrived.bytes,
                                bytes_);
      misfit_.resize(arrived.bytes);
      target = misfit_.data();
    }
    const absl::Status started = WithType(
        arrived.bytes,
        [&](int count, MPI_Datatype type) {
          return MPI_Imrecv(target, count, type, &arrived.message, &data_);
        },
        "MPI_Imrecv");
    if (result_.ok()) result_ = started;
    waits_ = false;
  }

  MpiMessages& messages_;
  const MPI_Comm comm_;
  const int peer_;
  const int64_t tag_;
  void* const target_;
  const int64_t bytes_;
  std::atomic<bool> waits_{true};  // for the message; what comes with it is read behind
  absl::Status result_;
  std::vector<char> misfit_;  // a message of another size, so that its sender gets done
  MPI_Request size_ = MPI_REQUEST_NULL;
  MPI_Request data_ = MPI_REQUEST_NULL;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Message>> MpiMessages::Send(MPI_Comm comm, int64_t peer, int64_t tag,
                                                           const void* data, int64_t bytes) {
  auto message = std::make_unique<MpiSend>(*this, comm, peer, tag, bytes);
  ORIEL_RETURN_IF_ERROR(message->Start(data));
  return message;
}

absl::StatusOr<std::unique_ptr<Message>> MpiMessages::Receive(MPI_Comm comm, int64_t peer,
                                                              int64_t tag, void* data,
                                                              int64_t bytes) {
  auto message = std::make_unique<MpiReceive>(*this, comm, peer, tag, data, bytes);
  ORIEL_RETURN_IF_ERROR(message->Start());
  return message;
}

int MpiMessages::Await(MPI_Request& request, bool background) {
  int code = MPI_SUCCESS;
  const auto is_done = [&] {
    int done = 0;
    code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done || code != MPI_SUCCESS;
  };
  Poll(is_done, background);
  return code;
}

void MpiMessages::Progress() {
  const Clock::time_point now = Clock::now();
  if (now < next_progress_.load()) return;
  next_progress_ = now + kProgressPeriod;
  Take();
}

void MpiMessages::Begin(MPI_Comm comm) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++lanes_[comm].under_way;
}

void MpiMessages::End(MPI_Comm comm) {
  std::lock_guard<std::mutex> lock(mutex_);
  --lanes_[comm].under_way;
}

void MpiMessages::Forget(MPI_Comm comm) {
  std::lock_guard<std::mutex> lock(mutex_);
  lanes_.erase(comm);
}

void MpiMessages::Add(MPI_Comm comm, Key key, Waiter* waiter) {
  std::lock_guard<std::mutex> lock(mutex_);
  Lane& lane = lanes_[comm];
  std::deque<Arrived>& arrived = lane.arrived[key];
  if (arrived.empty()) {
    lane.waiting[key].push_back(waiter);
    return;
  }
  const Arrived first = arrived.front();
  arrived.pop_front();
  waiter->Accept(first);
}

void MpiMessages::Remove(MPI_Comm comm, Key key, Waiter* waiter) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::deque<Waiter*>& waiting = lanes_[comm].waiting[key];
  waiting.erase(std::remove(waiting.begin(), waiting.end(), waiter), waiting.end());
}

void MpiMessages::Take() {
  // Who finds it locked leaves the looking to the other thread.
  const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (auto& [comm, lane] : lanes_) {
    while (lane.under_way > 0) {
      int came = 0;
      Arrived arrived;
      MPI_Status status;
      // An error shows in the request that is waited for.
      if (MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &came, &arrived.message, &status) !=
              MPI_SUCCESS ||
          !came) {
        break;
      }
      MPI_Count bytes = 0;
      MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
      arrived.bytes = bytes;
      const Key key{status.MPI_SOURCE, status.MPI_TAG};
      std::deque<Waiter*>& waiting = lane.waiting[key];
      if (waiting.empty()) {
        lane.arrived[key].push_back(arrived);
        continue;
      }
      Waiter* const first = waiting.front();
      waiting.pop_front();
      first->Accept(arrived);
    }
  }
}

void MpiMessages::Sleep() {
  constexpr timespec kPause = {0, 20'000};
  nanosleep(&kPause, nullptr);
}

absl::Status CheckMpiTags() {
  void* attribute = nullptr;
  int found = 0;
  ORIEL_RETURN_IF_ERROR(
      ORIEL_MPI(MPI_Comm_get_attr, MPI_COMM_WORLD, MPI_TAG_UB, &attribute, &found));
  const int highest = found ? *static_cast<int*>(attribute) : 0;
  if (highest >= SizeTag(kMaxTags - 1)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("this MPI has tags up to ", highest, "; messages need ", SizeTag(kMaxTags - 1)));
}

}  // namespace oriel::runtime
