// A communication stream that is one of the device's: what is started there is ordered with the
// computing stream by events, and no thread waits.
#ifndef ORIEL_RUNTIME_EXEC_DEVICE_STREAM_H_
#define ORIEL_RUNTIME_EXEC_DEVICE_STREAM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backend/backend.h"
#include "runtime/comm/communicator.h"
#include "runtime/exec/streams.h"

namespace oriel::runtime {

// Of communicators that are asynchronous. Start, Wait and Run can be recorded, and Run puts the
// call on the computing stream where nothing else is on its way.
class DeviceStream final : public CommunicationStream {
 public:
  // `number` > 0: of the backend's streams. The backend outlives it.
  static absl::StatusOr<std::unique_ptr<DeviceStream>> Create(Backend& backend, int number);

  absl::StatusOr<Task*> Add(Communicator* communicator,
                            std::function<absl::Status()> call) override;
  absl::Status Start(Task& task) override;
  absl::Status Wait(Task& task) override;
  absl::Status Run(Task& task) override;
  bool IsBusy() const override { return started_ > 0; }

 private:
  struct DeviceTask final : Task {
    Communicator* communicator = nullptr;
    std::function<absl::Status()> call;
    std::unique_ptr<Backend::Event> ready, done;
    bool started = false;
  };

  DeviceStream(Backend& backend, int number) : backend_(backend), number_(number) {}

  Backend& backend_;
  const int number_;
  void* computing_ = nullptr;  // handles
  void* stream_ = nullptr;
  std::vector<std::unique_ptr<DeviceTask>> tasks_;
  int64_t started_ = 0;
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_EXEC_DEVICE_STREAM_H_
