// The device that a rank computes on, as the executor sees it.
//
// A device has streams: work that is put on one runs there in order. Stream 0 computes. The host
// has that one alone, and what is put on it is done when the call returns; on a device that is
// asynchronous, calls return at once, and errors may come later.
#ifndef ORIEL_RUNTIME_BACKEND_BACKEND_H_
#define ORIEL_RUNTIME_BACKEND_BACKEND_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "runtime/comm/communicator.h"

namespace oriel::runtime {

// Memory of a device; frees itself.
using DeviceMemory = std::unique_ptr<void, std::function<void(void*)>>;

// Used by one thread, but where it says so.
class Backend {
 public:
  // A point in the work of a stream.
  class Event {
   public:
    virtual ~Event() = default;
  };
  // Work that can be put on the computing stream again and again (a CUDA graph).
  class Recording {
   public:
    virtual ~Recording() = default;
  };

  virtual ~Backend() = default;

  // "host", "cuda"
  virtual std::string name() const = 0;
  // Zeroed memory, aligned to at least 64 bytes. ResourceExhausted if there is not enough.
  virtual absl::StatusOr<DeviceMemory> Allocate(int64_t bytes) = 0;
  // The kernel for one launch; its arguments are addresses of this device, and Stream(0). `launch`
  // is the caller's number of it.
  virtual absl::StatusOr<kernels::KernelFn> Prepare(const kernels::KernelSpec& spec,
                                                    int64_t launch) = 0;

  // Bytes that Allocate could still give; nothing where that is no fixed number.
  virtual absl::StatusOr<std::optional<int64_t>> FreeBytes() { return std::nullopt; }
  // Of the device, as plan::Device has it ("sm_90"); empty on the host.
  virtual std::string architecture() const { return ""; }
  // The ranks of `host_world`, for this device's memory. Collective, and `host_world` outlives it.
  // Unimplemented on the host, whose memory every communicator knows.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> OpenCommunicator(
      Communicator& /*host_world*/) {
    return absl::UnimplementedError("the host needs no communicator of its own");
  }

  // The following are put on the computing stream. The ranges of a copy don't overlap.
  virtual absl::Status Copy(void* target, const void* source, int64_t bytes) = 0;
  // Copies `count` runs of `run` bytes each, which begin `stride` bytes apart, to `target`, one
  // behind the other.
  virtual absl::Status CopyRuns(void* target, const void* source, int64_t run, int64_t stride,
                                int64_t count) = 0;
  // Sets every byte.
  virtual absl::Status Fill(void* target, uint8_t value, int64_t bytes) = 0;
  // From the host's memory, which may change when it returns.
  virtual absl::Status Upload(void* target, const void* source, int64_t bytes) = 0;
  // Into the host's memory, where it is when this returns. Waits for what was put on the computing
  // stream before; kernels that found their data wrong are for Synchronize to report.
  virtual absl::Status Download(void* target, const void* source, int64_t bytes) = 0;

  // Whether calls return before their work is done. The following are for such devices; the host
  // has one stream, nothing to wait for, and records nothing.
  virtual bool IsAsynchronous() const { return false; }
  // For each thread before anything else, and for one that uses several backends. From any thread.
  virtual absl::Status MakeCurrent() { return absl::OkStatus(); }
  // Until the computing stream has done all its work. InvalidArgument if a kernel found its data
  // wrong since the last call (an index out of range); `*launch` is its number then, else -1.
  virtual absl::Status Synchronize(int64_t* launch) {
    *launch = -1;
    return absl::OkStatus();
  }
  // The handle of a stream, for kernels and communicators (CUstream); null on the host. Streams
  // but 0 are made when they are first asked for.
  virtual absl::StatusOr<void*> Stream(int /*number*/) { return nullptr; }
  virtual absl::StatusOr<std::unique_ptr<Event>> MakeEvent() { return std::make_unique<Event>(); }
  // One that also knows when that was.
  virtual absl::StatusOr<std::unique_ptr<Event>> MakeTimedEvent() { return MakeEvent(); }
  // Between the moments at which the device has come to two timed events, both behind it.
  virtual absl::StatusOr<int64_t> NanosecondsBetween(Event& /*first*/, Event& /*last*/) {
    return absl::UnimplementedError("this device has no timed events");
  }
  // The event becomes the point that the stream's work has come to by now.
  virtual absl::Status Record(Event& /*event*/, int /*stream*/) { return absl::OkStatus(); }
  // What is put on the stream from now on runs behind the event.
  virtual absl::Status WaitFor(Event& /*event*/, int /*stream*/) { return absl::OkStatus(); }
  // This thread waits for the event. From any thread.
  virtual absl::Status Synchronize(Event& /*event*/) { return absl::OkStatus(); }

  // From here to EndRecording, nothing runs: what is put on the computing stream, and on streams
  // that wait for it and that it waits for, is recorded. Nothing is uploaded, downloaded, allocated
  // or waited for meanwhile.
  virtual absl::Status BeginRecording() {
    return absl::UnimplementedError("this device records nothing");
  }
  virtual absl::StatusOr<std::unique_ptr<Recording>> EndRecording() {
    return absl::UnimplementedError("this device records nothing");
  }
  virtual absl::Status Replay(Recording& /*recording*/) {
    return absl::UnimplementedError("this device records nothing");
  }
};

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BACKEND_BACKEND_H_
