#include "runtime/backend/cuda/cuda_backend.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/copy_rows.h"
#include "runtime/backend/cuda/pinned_ring.h"
#include "runtime/base/status.h"

namespace oriel::runtime {
namespace {

namespace cuda = kernels::cuda;

// Large enough that copies run at full speed, small beside what a rank has.
constexpr int64_t kPieceBytes = 4 << 20;

CUdeviceptr Pointer(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

class CudaEvent final : public Backend::Event {
 public:
  CudaEvent(const cuda::Driver& driver, CUevent event) : driver_(driver), event_(event) {}
  ~CudaEvent() override { driver_.cuEventDestroy(event_); }
  CUevent event() const { return event_; }

 private:
  const cuda::Driver& driver_;
  const CUevent event_;
};

class CudaRecording final : public Backend::Recording {
 public:
  CudaRecording(const cuda::Driver& driver, CUgraphExec graph) : driver_(driver), graph_(graph) {}
  ~CudaRecording() override { driver_.cuGraphExecDestroy(graph_); }
  CUgraphExec graph() const { return graph_; }

 private:
  const cuda::Driver& driver_;
  const CUgraphExec graph_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const cuda::Driver& driver, std::unique_ptr<cuda::Device> device, CudaPrepare prepare,
              CudaCommunicate communicate)
      : driver_(driver),
        device_(std::move(device)),
        prepare_(std::move(prepare)),
        communicate_(std::move(communicate)) {}

  ~CudaBackend() override {
    // Of errors nothing can be said here; what is on the streams ends or has failed. Not the whole
    // context: other ranks of the process may be recording in it, which would fail.
    (void)MakeCurrent();
    for (const CUstream stream : streams_) {
      if (stream != nullptr) driver_.cuStreamSynchronize(stream);
    }
    ring_ = nullptr;
    for (const CUstream stream : streams_) {
      if (stream != nullptr) driver_.cuStreamDestroy(stream);
    }
  }

  absl::Status Init() {
    ORIEL_RETURN_IF_ERROR(Stream(0).status());
    ORIEL_ASSIGN_OR_RETURN(ring_, PinnedRing::Create(driver_, kPieceBytes));
    return absl::OkStatus();
  }

  std::string name() const override { return "cuda"; }

  absl::StatusOr<DeviceMemory> Allocate(int64_t bytes) override {
    const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    CUdeviceptr address = 0;
    const CUresult result = driver_.cuMemAlloc(&address, size);
    if (result != CUDA_SUCCESS) {
      size_t free = 0, total = 0;
      if (driver_.cuMemGetInfo(&free, &total) != CUDA_SUCCESS) free = total = 0;
      return DriverStatus(driver_, result,
                          absl::StrCat(bytes, " bytes on ", device_->properties().name, ", where ",
                                       free, " of ", total, " are free")
                              .c_str());
    }
    DeviceMemory memory(reinterpret_cast<void*>(address), [this](void* freed) {
      (void)MakeCurrent();
      driver_.cuMemFree(Pointer(freed));
    });
    ORIEL_RETURN_IF_ERROR(Fill(memory.get(), 0, bytes));
    return memory;
  }

  absl::StatusOr<kernels::KernelFn> Prepare(const kernels::KernelSpec& spec,
                                            int64_t launch) override {
    const int32_t first = device_->launches();
    ORIEL_ASSIGN_OR_RETURN(kernels::KernelFn kernel, prepare_(spec, *device_));
    if (device_->launches() > first) faults_of_.push_back({first, launch});
    return kernel;
  }

  absl::StatusOr<std::optional<int64_t>> FreeBytes() override {
    ORIEL_RETURN_IF_ERROR(MakeCurrent());
    size_t free = 0, total = 0;
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemGetInfo, &free, &total));
    return static_cast<int64_t>(free);
  }

  std::string architecture() const override {
    return absl::StrCat("sm_", device_->properties().major, device_->properties().minor);
  }

  absl::StatusOr<std::unique_ptr<Communicator>> OpenCommunicator(
      Communicator& host_world) override {
    if (communicate_ == nullptr) {
      return absl::UnimplementedError("this device has no communicator of its own");
    }
    ORIEL_RETURN_IF_ERROR(MakeCurrent());
    return communicate_(host_world, *device_);
  }

  absl::Status Copy(void* target, const void* source, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    return ORIEL_CUDA(driver_, cuMemcpyAsync, Pointer(target), Pointer(source),
                      static_cast<size_t>(bytes), streams_[0]);
  }

  absl::Status CopyRuns(void* target, const void* source, int64_t run, int64_t stride,
                        int64_t count) override {
    return cuda::CopyRows(driver_, Pointer(target), run, Pointer(source), stride, run, count,
                          streams_[0]);
  }

  absl::Status Fill(void* target, uint8_t value, int64_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    return ORIEL_CUDA(driver_, cuMemsetD8Async, Pointer(target), value, static_cast<size_t>(bytes),
                      streams_[0]);
  }

  absl::Status Upload(void* target, const void* source, int64_t bytes) override {
    return ring_->Upload(Pointer(target), source, bytes, streams_[0]);
  }

  absl::Status Download(void* target, const void* source, int64_t bytes) override {
    return ring_->Download(target, Pointer(source), bytes, streams_[0]);
  }

  bool IsAsynchronous() const override { return true; }

  absl::Status MakeCurrent() override { return device_->MakeCurrent(); }

  absl::Status Synchronize(int64_t* launch) override {
    *launch = -1;
    ORIEL_ASSIGN_OR_RETURN(const cuda::Fault fault, device_->TakeFault(streams_[0]));
    if (fault.kind == 0) return absl::OkStatus();
    // Of the launch that was prepared last before the fault's number was given.
    auto next = std::upper_bound(
        faults_of_.begin(), faults_of_.end(), fault.launch,
        [](int32_t number, const Numbers& numbers) { return number < numbers.first; });
    if (next != faults_of_.begin()) *launch = (--next)->launch;
    return device_->FaultStatus(fault);
  }

  absl::StatusOr<void*> Stream(int number) override {
    if (number >= static_cast<int>(streams_.size())) streams_.resize(number + 1);
    CUstream& stream = streams_[number];
    if (stream == nullptr) {
      // Lower numbers are of higher priority: what is communicated is what computing waits for.
      ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuStreamCreateWithPriority, &stream,
                                       CU_STREAM_NON_BLOCKING, number == 0 ? 0 : -1));
    }
    return static_cast<void*>(stream);
  }

  absl::StatusOr<std::unique_ptr<Event>> MakeEvent() override {
    return MakeEvent(CU_EVENT_DISABLE_TIMING);
  }

  absl::StatusOr<std::unique_ptr<Event>> MakeTimedEvent() override {
    return MakeEvent(CU_EVENT_DEFAULT);
  }

  absl::StatusOr<int64_t> NanosecondsBetween(Event& first, Event& last) override {
    float milliseconds = 0;
    ORIEL_RETURN_IF_ERROR(
        ORIEL_CUDA(driver_, cuEventElapsedTime, &milliseconds, EventOf(first), EventOf(last)));
    return static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
  }

  absl::Status Record(Event& event, int stream) override {
    return ORIEL_CUDA(driver_, cuEventRecord, EventOf(event), streams_[stream]);
  }

  absl::Status WaitFor(Event& event, int stream) override {
    return ORIEL_CUDA(driver_, cuStreamWaitEvent, streams_[stream], EventOf(event), 0);
  }

  absl::Status Synchronize(Event& event) override {
    return ORIEL_CUDA(driver_, cuEventSynchronize, EventOf(event));
  }

  absl::Status BeginRecording() override {
    device_->HoldScratch();
    return ORIEL_CUDA(driver_, cuStreamBeginCapture, streams_[0],
                      CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  }

  absl::StatusOr<std::unique_ptr<Recording>> EndRecording() override {
    CUgraph graph = nullptr;
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuStreamEndCapture, streams_[0], &graph));
    CUgraphExec exec = nullptr;
    // Else all of it would have the priority of computing.
    const absl::Status status = ORIEL_CUDA(driver_, cuGraphInstantiate, &exec, graph,
                                           CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    driver_.cuGraphDestroy(graph);
    ORIEL_RETURN_IF_ERROR(status);
    return std::make_unique<CudaRecording>(driver_, exec);
  }

  absl::Status Replay(Recording& recording) override {
    return ORIEL_CUDA(driver_, cuGraphLaunch, static_cast<CudaRecording&>(recording).graph(),
                      streams_[0]);
  }

 private:
  // Faults that were numbered from `first` on, to the next one's, are of the launch.
  struct Numbers {
    int32_t first;
    int64_t launch;
  };

  absl::StatusOr<std::unique_ptr<Event>> MakeEvent(unsigned flags) {
    CUevent event = nullptr;
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuEventCreate, &event, flags));
    return std::make_unique<CudaEvent>(driver_, event);
  }

  static CUevent EventOf(Event& event) { return static_cast<CudaEvent&>(event).event(); }

  const cuda::Driver& driver_;
  std::unique_ptr<cuda::Device> device_;
  const CudaPrepare prepare_;
  const CudaCommunicate communicate_;
  std::vector<CUstream> streams_;
  std::unique_ptr<PinnedRing> ring_;
  std::vector<Numbers> faults_of_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Backend>> MakeCudaBackend(const cuda::Driver& driver, int ordinal,
                                                         CudaPrepare prepare,
                                                         CudaCommunicate communicate) {
  ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<cuda::Device> device, cuda::Device::Open(driver, ordinal));
  auto backend = std::make_unique<CudaBackend>(driver, std::move(device), std::move(prepare),
                                               std::move(communicate));
  ORIEL_RETURN_IF_ERROR(backend->Init());
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace oriel::runtime
