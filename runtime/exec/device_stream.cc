#include "runtime/exec/device_stream.h"

#include <utility>

#include "runtime/base/status.h"

namespace oriel::runtime {

absl::StatusOr<std::unique_ptr<DeviceStream>> DeviceStream::Create(Backend& backend, int number) {
  std::unique_ptr<DeviceStream> stream(new DeviceStream(backend, number));
  ORIEL_ASSIGN_OR_RETURN(stream->computing_, backend.Stream(0));
  ORIEL_ASSIGN_OR_RETURN(stream->stream_, backend.Stream(number));
  return stream;
}

absl::StatusOr<CommunicationStream::Task*> DeviceStream::Add(Communicator* communicator,
                                                             std::function<absl::Status()> call) {
  auto task = std::make_unique<DeviceTask>();
  task->communicator = communicator;
  task->call = std::move(call);
  ORIEL_ASSIGN_OR_RETURN(task->ready, backend_.MakeEvent());
  ORIEL_ASSIGN_OR_RETURN(task->done, backend_.MakeEvent());
  tasks_.push_back(std::move(task));
  return tasks_.back().get();
}

absl::Status DeviceStream::Start(Task& started) {
  auto& task = static_cast<DeviceTask&>(started);
  if (task.started) {
    return absl::FailedPreconditionError("starts a collective that is on its way");
  }
  ORIEL_RETURN_IF_ERROR(backend_.Record(*task.ready, 0));
  ORIEL_RETURN_IF_ERROR(backend_.WaitFor(*task.ready, number_));
  task.communicator->SetStream(stream_);
  task.started = true;
  ++started_;
  ORIEL_RETURN_IF_ERROR(task.call());
  return backend_.Record(*task.done, number_);
}

absl::Status DeviceStream::Wait(Task& awaited) {
  auto& task = static_cast<DeviceTask&>(awaited);
  if (!task.started) {
    return absl::FailedPreconditionError("waits for a collective that was not started");
  }
  task.started = false;
  --started_;
  return backend_.WaitFor(*task.done, 0);
}

absl::Status DeviceStream::Run(Task& run) {
  if (IsBusy()) {  // behind what the communicator does there already
    ORIEL_RETURN_IF_ERROR(Start(run));
    return Wait(run);
  }
  auto& task = static_cast<DeviceTask&>(run);
  task.communicator->SetStream(computing_);
  return task.call();
}

}  // namespace oriel::runtime
