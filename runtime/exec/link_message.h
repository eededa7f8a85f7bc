// A message over a link, as a transfer of the executor has it: made ready, put, and waited for.
#ifndef ORIEL_RUNTIME_EXEC_LINK_MESSAGE_H_
#define ORIEL_RUNTIME_EXEC_LINK_MESSAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backend/backend.h"
#include "runtime/base/status.h"
#include "runtime/comm/link.h"

namespace oriel::runtime {

// A link, and the number of the backend's stream that it has for itself.
struct LinkLane {
  Link* link = nullptr;
  int stream = 0;
};

// Used again and again for messages of the same memory. The host never waits.
class LinkMessage {
 public:
  // The backend and the lane's link outlive it.
  static absl::StatusOr<LinkMessage> Create(Backend& backend, LinkLane lane, void* data,
                                            int64_t bytes) {
    LinkMessage message(backend, lane, data, bytes);
    ORIEL_ASSIGN_OR_RETURN(message.ready_, backend.MakeEvent());
    ORIEL_ASSIGN_OR_RETURN(message.done_, backend.MakeEvent());
    return message;
  }

  // Whether it was made ready, and not waited for since.
  bool IsPending() const { return state_ != State::kIdle; }

  // The computing stream has come so far that the memory may be sent, or received in.
  absl::Status MakeReady() {
    state_ = State::kReady;
    return backend_->Record(*ready_, 0);
  }
  // On the link's stream, behind that. FailedPrecondition if it is not ready.
  absl::Status Put(const std::string& what) {
    if (state_ != State::kReady) return absl::FailedPreconditionError("a message is not ready");
    state_ = State::kPut;
    ORIEL_RETURN_IF_ERROR(backend_->WaitFor(*ready_, lane_.stream));
    ORIEL_ASSIGN_OR_RETURN(void* const stream, backend_->Stream(lane_.stream));
    ORIEL_RETURN_IF_ERROR(lane_.link->Put(data_, bytes_, stream, what));
    return backend_->Record(*done_, lane_.stream);
  }
  // The computing stream waits until it is done. FailedPrecondition if it was not put.
  absl::Status Wait() {
    if (state_ != State::kPut) return absl::FailedPreconditionError("a message is not on its way");
    state_ = State::kIdle;
    return backend_->WaitFor(*done_, 0);
  }

 private:
  enum class State : uint8_t { kIdle, kReady, kPut };

  LinkMessage(Backend& backend, LinkLane lane, void* data, int64_t bytes)
      : backend_(&backend), lane_(lane), data_(data), bytes_(bytes) {}

  Backend* backend_;
  LinkLane lane_;
  void* data_;
  int64_t bytes_;
  std::unique_ptr<Backend::Event> ready_, done_;
  State state_ = State::kIdle;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_LINK_MESSAGE_H_
