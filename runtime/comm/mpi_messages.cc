#include "runtime/comm/mpi_messages.h"

#include <time.h>

#include <algorithm>
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

// In the world, of rank `rank` of `comm`.
int64_t WorldRank(MPI_Comm comm, int rank) {
  MPI_Group group, world;
  int result = MPI_UNDEFINED;
  MPI_Comm_group(comm, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_translate_ranks(group, 1, &rank, world, &result);
  MPI_Group_free(&world);
  MPI_Group_free(&group);
  return result;
}

int64_t OwnWorldRank(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return WorldRank(comm, rank);
}

class MpiSend final : public Message {
 public:
  MpiSend(MpiMessages& messages, MPI_Comm comm, int64_t peer, int64_t tag, int64_t bytes)
      : messages_(messages), comm_(comm), peer_(static_cast<int>(peer)), tag_(tag), bytes_(bytes) {
    messages_.Count(1);
  }

  ~MpiSend() override {
    messages_.Count(-1);
    if (MpiFinalized()) return;
    if (peer_size_ != MPI_REQUEST_NULL) {
      MPI_Cancel(&peer_size_);
      messages_.Await(peer_size_);
    }
    const auto end = std::chrono::steady_clock::now() + kPatience;
    messages_.Poll([&] {
      int done = 0;
      if (MPI_Test(&data_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) return true;
      if (std::chrono::steady_clock::now() > end) {
        EndMpiJob(absl::StrCat("it has given up its send of ", bytes_, " bytes to rank ",
                               WorldRank(comm_, peer_), " with tag ", tag_,
                               ", which nobody receives"));
      }
      return false;
    });
  }

  absl::Status Start(const void* data) {
    ORIEL_RETURN_IF_ERROR(ORIEL_MPI(MPI_Irecv, &peer_bytes_, 1, MPI_INT64_T, peer_, SizeTag(tag_),
                                    comm_, &peer_size_));
    return WithType(
        bytes_,
        [&](int count, MPI_Datatype type) {
          return MPI_Isend(data, count, type, peer_, DataTag(tag_), comm_, &data_);
        },
        "MPI_Isend");
  }

  absl::Status Wait() override {
    ORIEL_RETURN_IF_ERROR(MpiStatus(messages_.Await(peer_size_), "MPI_Irecv"));
    ORIEL_RETURN_IF_ERROR(MpiStatus(messages_.Await(data_), "MPI_Isend"));
    if (peer_bytes_ == bytes_) return absl::OkStatus();
    return MessageMismatch(OwnWorldRank(comm_), WorldRank(comm_, peer_), tag_, bytes_, peer_bytes_);
  }

 private:
  MpiMessages& messages_;
  const MPI_Comm comm_;
  const int peer_;
  const int64_t tag_;
  const int64_t bytes_;
  int64_t peer_bytes_ = 0;
  MPI_Request peer_size_ = MPI_REQUEST_NULL;
  MPI_Request data_ = MPI_REQUEST_NULL;
};

}  // namespace

class MpiReceive final : public Message {
 public:
  MpiReceive(MpiMessages& messages, MPI_Comm comm, int64_t peer, int64_t tag, void* data,
             int64_t bytes)
      : messages_(messages),
        comm_(comm),
        peer_(static_cast<int>(peer)),
        tag_(tag),
        target_(data),
        bytes_(bytes) {
    messages_.Count(1);
  }

  ~MpiReceive() override {
    messages_.Count(-1);
    if (!taken_) messages_.Remove(this);
    if (MpiFinalized()) return;
    messages_.Await(data_);
    messages_.Await(size_);
  }

  absl::Status Start() {
    messages_.Add(this);
    return ORIEL_MPI(MPI_Isend, &bytes_, 1, MPI_INT64_T, peer_, SizeTag(tag_), comm_, &size_);
  }

  MPI_Comm comm() const { return comm_; }
  int peer() const { return peer_; }
  int data_tag() const { return DataTag(tag_); }

  // Starts to receive the message if it has come. False if it hasn't.
  bool Take() {
    int came = 0;
    MPI_Message message;
    MPI_Status status;
    result_ = ORIEL_MPI(MPI_Improbe, peer_, data_tag(), comm_, &came, &message, &status);
    if (result_.ok() && !came) return false;
    taken_ = true;
    if (!result_.ok()) return true;
    MPI_Count bytes = 0;
    MPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    void* target = target_;
    if (bytes != bytes_) {
      result_ = MessageMismatch(WorldRank(comm_, peer_), OwnWorldRank(comm_), tag_, bytes, bytes_);
      misfit_.resize(bytes);
      target = misfit_.data();
    }
    const absl::Status started = WithType(
        bytes,
        [&](int count, MPI_Datatype type) {
          return MPI_Imrecv(target, count, type, &message, &data_);
        },
        "MPI_Imrecv");
    if (result_.ok()) result_ = started;
    return true;
  }

  absl::Status Wait() override {
    messages_.Poll([&] { return taken_; });
    const int code = messages_.Await(data_);
    if (result_.ok()) result_ = MpiStatus(code, "MPI_Imrecv");
    if (result_.ok()) result_ = MpiStatus(messages_.Await(size_), "MPI_Isend");
    return result_;
  }

 private:
  MpiMessages& messages_;
  const MPI_Comm comm_;
  const int peer_;
  const int64_t tag_;
  void* const target_;
  const int64_t bytes_;
  bool taken_ = false;
  absl::Status result_;
  std::vector<char> misfit_;  // a message of another size, so that its sender gets done
  MPI_Request size_ = MPI_REQUEST_NULL;
  MPI_Request data_ = MPI_REQUEST_NULL;
};

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

int MpiMessages::Await(MPI_Request& request) {
  int code = MPI_SUCCESS;
  Poll([&] {
    int done = 0;
    code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done || code != MPI_SUCCESS;
  });
  return code;
}

void MpiMessages::Progress() {
  if (under_way_ == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_progress_) return;
  next_progress_ = now + kProgressPeriod;
  Take();
  // What MPI does in any call, also if no receive is left to look for.
  int came = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &came, MPI_STATUS_IGNORE);
}

void MpiMessages::Add(MpiReceive* receive) {
  waiting_[{receive->comm(), receive->peer(), receive->data_tag()}].push_back(receive);
}

void MpiMessages::Remove(MpiReceive* receive) {
  const auto entry = waiting_.find({receive->comm(), receive->peer(), receive->data_tag()});
  std::deque<MpiReceive*>& queue = entry->second;
  queue.erase(std::find(queue.begin(), queue.end(), receive));
  if (queue.empty()) waiting_.erase(entry);
}

void MpiMessages::Take() {
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    std::deque<MpiReceive*>& queue = entry->second;
    while (!queue.empty() && queue.front()->Take()) queue.pop_front();
    entry = queue.empty() ? waiting_.erase(entry) : std::next(entry);
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
