// Streams, events, and graphs by capture, as the emulated driver has them.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/emulated_device.h"

namespace oriel::kernels::cuda {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

thread_local EmulatedDevice* current_device = nullptr;
// Captures that this thread has begun. As a capture of mode thread-local or global, which is all
// that there is here, forbids.
thread_local std::vector<std::shared_ptr<Capture>> captures;

CUevent Handle(EmulatedEvent* event) { return reinterpret_cast<CUevent>(event); }
EmulatedEvent* From(CUevent event) { return reinterpret_cast<EmulatedEvent*>(event); }
EmulatedGraph* From(CUgraph graph) { return reinterpret_cast<EmulatedGraph*>(graph); }
EmulatedGraph* From(CUgraphExec graph) { return reinterpret_cast<EmulatedGraph*>(graph); }

CUresult NoContext() {
  return EmulatorFails(CUDA_ERROR_INVALID_CONTEXT, "no device is current in this thread");
}

CUresult CreateStream(CUstream* stream, unsigned, int) {
  EmulatedDevice* device = CurrentDevice();
  if (device == nullptr) return NoContext();
  const Lock lock(device->mutex());
  *stream = reinterpret_cast<CUstream>(device->AddStream());
  return CUDA_SUCCESS;
}

CUresult DestroyStream(CUstream handle) {
  EmulatedStream* stream = StreamFrom(handle);
  if (stream == nullptr) return NoContext();
  const Lock lock(stream->device->mutex());
  stream->destroyed = true;
  return CUDA_SUCCESS;
}

CUresult SynchronizeStream(CUstream handle) {
  EmulatedStream* stream = StreamFrom(handle);
  if (stream == nullptr) return NoContext();
  if (const CUresult result = CheckNoCapture("cuStreamSynchronize"); result != CUDA_SUCCESS) {
    return result;
  }
  const Lock lock(stream->device->mutex());
  const CUresult result =
      stream->device->RunUntil(stream, [stream] { return stream->queue.empty(); });
  return result == CUDA_SUCCESS ? stream->device->CheckGuards() : result;
}

CUresult CreateEvent(CUevent* event, unsigned) {
  if (CurrentDevice() == nullptr) return NoContext();
  *event = Handle(new EmulatedEvent);
  return CUDA_SUCCESS;
}

CUresult DestroyEvent(CUevent event) {
  delete From(event);
  return CUDA_SUCCESS;
}

CUresult RecordEvent(CUevent handle, CUstream stream_handle) {
  EmulatedStream* stream = StreamFrom(stream_handle);
  if (stream == nullptr) return NoContext();
  const Lock lock(stream->device->mutex());
  EmulatedEvent& event = *From(handle);
  event.capture = stream->capture;
  event.record = nullptr;
  if (stream->capture != nullptr) {
    event.after = stream->capture->streams[stream];
    return CUDA_SUCCESS;
  }
  auto record = std::make_shared<EventRecord>();
  event.record = record;
  return stream->device->Enqueue(stream, "an event's record", [record](bool, CUresult&) {
    record->time = std::chrono::steady_clock::now();
    record->done = true;
    return Progress::kDone;
  });
}

// Another stream of a capture goes on behind `nodes`.
void Join(EmulatedStream* stream, const std::shared_ptr<Capture>& capture,
          const std::vector<int>& nodes) {
  stream->capture = capture;
  std::vector<int>& after = capture->streams[stream];
  for (const int node : nodes) {
    if (std::find(after.begin(), after.end(), node) == after.end()) after.push_back(node);
  }
}

CUresult WaitEvent(CUstream stream_handle, CUevent handle, unsigned) {
  EmulatedStream* stream = StreamFrom(stream_handle);
  if (stream == nullptr) return NoContext();
  const Lock lock(stream->device->mutex());
  const EmulatedEvent& event = *From(handle);
  if (event.capture != nullptr) {
    if (stream->capture != nullptr && stream->capture != event.capture) {
      event.capture->valid = stream->capture->valid = false;
      return EmulatorFails(CUDA_ERROR_STREAM_CAPTURE_MERGE,
                           "a wait for an event of another capture");
    }
    if (event.capture->streams.empty()) {
      return EmulatorFails(CUDA_ERROR_CAPTURED_EVENT,
                           "a wait for an event that was recorded into a graph");
    }
    Join(stream, event.capture, event.after);
    return CUDA_SUCCESS;
  }
  if (event.record == nullptr) return CUDA_SUCCESS;  // never recorded
  if (stream->capture != nullptr) {
    stream->capture->valid = false;
    return EmulatorFails(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                         "a captured stream waits for an event from before the capture");
  }
  return stream->device->Enqueue(stream, "a wait for an event",
                                 [record = event.record](bool, CUresult&) {
                                   return record->done ? Progress::kDone : Progress::kBlocked;
                                 });
}

CUresult QueryEvent(CUevent handle) {
  EmulatedDevice* device = CurrentDevice();
  if (device == nullptr) return NoContext();
  if (const CUresult result = CheckNoCapture("cuEventQuery"); result != CUDA_SUCCESS) return result;
  const Lock lock(device->mutex());
  const EmulatedEvent& event = *From(handle);
  if (event.capture != nullptr) {
    return EmulatorFails(CUDA_ERROR_CAPTURED_EVENT, "cuEventQuery of a captured event");
  }
  if (const CUresult result = device->RunSome(); result != CUDA_SUCCESS) return result;
  return event.record == nullptr || event.record->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult SynchronizeEvent(CUevent handle) {
  EmulatedDevice* device = CurrentDevice();
  if (device == nullptr) return NoContext();
  if (const CUresult result = CheckNoCapture("cuEventSynchronize"); result != CUDA_SUCCESS) {
    return result;
  }
  const Lock lock(device->mutex());
  const std::shared_ptr<EventRecord> record = From(handle)->record;
  return device->RunUntil(nullptr, [&record] { return record == nullptr || record->done; });
}

CUresult ElapsedTime(float* milliseconds, CUevent first, CUevent last) {
  const auto& begin = From(first)->record;
  const auto& end = From(last)->record;
  if (begin == nullptr || end == nullptr) {
    return EmulatorFails(CUDA_ERROR_INVALID_HANDLE, "an event that was not recorded");
  }
  if (!begin->done || !end->done) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return CUDA_SUCCESS;
}

CUresult BeginCapture(CUstream handle, CUstreamCaptureMode) {
  EmulatedStream* stream = StreamFrom(handle);
  if (stream == nullptr) return NoContext();
  const Lock lock(stream->device->mutex());
  if (handle == nullptr || stream->capture != nullptr) {
    return EmulatorFails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                         "the null stream, or one under capture, can't be captured");
  }
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  Join(stream, capture, {});
  captures.push_back(std::move(capture));
  return CUDA_SUCCESS;
}

CUresult IsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  EmulatedStream* stream = StreamFrom(handle);
  if (stream == nullptr) return NoContext();
  const Lock lock(stream->device->mutex());
  *status = stream->capture == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->valid   ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                       : CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  return CUDA_SUCCESS;
}

// Whether the last node of the origin comes behind every other one.
bool IsJoined(const Capture& capture) {
  const auto& nodes = capture.graph.nodes;
  std::vector<bool> joined(nodes.size());
  for (const int node : capture.streams.at(capture.origin)) joined[node] = true;
  for (size_t i = nodes.size(); i-- > 0;) {
    for (const int before : nodes[i].after) joined[before] = joined[before] || joined[i];
  }
  return std::all_of(joined.begin(), joined.end(), [](bool is) { return is; });
}

CUresult EndCapture(CUstream handle, CUgraph* graph) {
  EmulatedStream* stream = StreamFrom(handle);
  if (stream == nullptr) return NoContext();
  const Lock lock(stream->device->mutex());
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr || capture->origin != stream) {
    return EmulatorFails(CUDA_ERROR_ILLEGAL_STATE, "the capture did not begin at this stream");
  }
  captures.erase(std::remove(captures.begin(), captures.end(), capture), captures.end());
  const bool joined = IsJoined(*capture);
  for (const auto& [member, after] : capture->streams) member->capture = nullptr;
  capture->streams.clear();
  if (!capture->valid) {
    return EmulatorFails(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "a call has ended the capture");
  }
  if (!joined) {
    return EmulatorFails(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                         "the captured stream does not wait for all that was forked from it");
  }
  *graph = reinterpret_cast<CUgraph>(new EmulatedGraph(std::move(capture->graph)));
  return CUDA_SUCCESS;
}

CUresult InstantiateGraph(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  EmulatedDevice* device = CurrentDevice();
  if (device == nullptr) return NoContext();
  const Lock lock(device->mutex());
  auto copy = std::make_unique<EmulatedGraph>(*From(graph));
  if (const CUresult result = device->TakeForGraph(copy->nodes.size(), &copy->memory);
      result != CUDA_SUCCESS) {
    return result;
  }
  *exec = reinterpret_cast<CUgraphExec>(copy.release());
  return CUDA_SUCCESS;
}

CUresult DestroyGraph(CUgraph graph) {
  delete From(graph);
  return CUDA_SUCCESS;
}

CUresult DestroyGraphExec(CUgraphExec graph) {
  delete From(graph);
  return CUDA_SUCCESS;
}

// One run of a graph: of the nodes that can, each time another one goes on.
class GraphRun {
 public:
  GraphRun(const EmulatedGraph& graph, uint64_t seed) : nodes_(graph.nodes), random_(seed) {}

  Progress Run(bool first, CUresult& error) {
    if (first) {
      for (EmulatedGraph::Node& node : nodes_) node.operation.begun = false;
      done_.assign(nodes_.size(), false);
    }
    std::vector<int> ready;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto& after = nodes_[i].after;
      const bool can = std::all_of(after.begin(), after.end(), [&](int j) { return done_[j]; });
      if (!done_[i] && can) ready.push_back(static_cast<int>(i));
    }
    if (ready.empty()) return Progress::kDone;
    std::shuffle(ready.begin(), ready.end(), random_);
    for (const int i : ready) {
      Operation& operation = nodes_[i].operation;
      const bool begins = !operation.begun;
      operation.begun = true;
      const Progress progress = operation.run(begins, error);
      if (error != CUDA_SUCCESS) {
        EmulatorFails(error, absl::StrCat(operation.name, EmulatorError().empty() ? "" : ": ",
                                          EmulatorError()));
        return Progress::kDone;
      }
      if (progress == Progress::kBlocked) continue;
      if (progress == Progress::kDone) done_[i] = true;
      return Progress::kSome;
    }
    return Progress::kBlocked;
  }

 private:
  std::vector<EmulatedGraph::Node> nodes_;
  std::vector<bool> done_;
  std::mt19937_64 random_;
};

CUresult LaunchGraph(CUgraphExec graph, CUstream handle) {
  EmulatedStream* stream = StreamFrom(handle);
  if (stream == nullptr) return NoContext();
  if (const CUresult result = CheckNoCapture("cuGraphLaunch"); result != CUDA_SUCCESS) {
    return result;
  }
  const Lock lock(stream->device->mutex());
  auto run = std::make_shared<GraphRun>(*From(graph), stream->device->options().seed);
  return stream->device->Enqueue(
      stream, "a graph", [run](bool first, CUresult& error) { return run->Run(first, error); });
}

}  // namespace

EmulatedDevice* CurrentDevice() { return current_device; }

void SetCurrentDevice(EmulatedDevice* device) { current_device = device; }

EmulatedStream* StreamFrom(CUstream stream) {
  if (stream != nullptr) return reinterpret_cast<EmulatedStream*>(stream);
  return current_device == nullptr ? nullptr : current_device->null_stream();
}

CUresult CheckNoCapture(const char* call) {
  if (captures.empty()) return CUDA_SUCCESS;
  for (const auto& capture : captures) capture->valid = false;
  return EmulatorFails(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                       absl::StrCat(call, " while a stream is captured"));
}

void FillStreamFunctions(Driver& driver) {
  driver.cuStreamCreateWithPriority = &CreateStream;
  driver.cuStreamDestroy = &DestroyStream;
  driver.cuStreamSynchronize = &SynchronizeStream;
  driver.cuStreamWaitEvent = &WaitEvent;
  driver.cuStreamBeginCapture = &BeginCapture;
  driver.cuStreamIsCapturing = &IsCapturing;
  driver.cuStreamEndCapture = &EndCapture;
  driver.cuGraphInstantiate = &InstantiateGraph;
  driver.cuGraphLaunch = &LaunchGraph;
  driver.cuGraphExecDestroy = &DestroyGraphExec;
  driver.cuGraphDestroy = &DestroyGraph;
  driver.cuEventCreate = &CreateEvent;
  driver.cuEventDestroy = &DestroyEvent;
  driver.cuEventRecord = &RecordEvent;
  driver.cuEventQuery = &QueryEvent;
  driver.cuEventSynchronize = &SynchronizeEvent;
  driver.cuEventElapsedTime = &ElapsedTime;
}

CUresult EnqueueEmulated(CUstream handle, std::string name, EmulatedOperation operation) {
  EmulatedStream* stream = StreamFrom(handle);
  if (stream == nullptr) return NoContext();
  const Lock lock(stream->device->mutex());
  return stream->device->Enqueue(stream, std::move(name),
                                 [operation = std::move(operation)](bool first, CUresult& error) {
                                   const CUresult result = operation(first);
                                   if (result == CUDA_ERROR_NOT_READY) return Progress::kBlocked;
                                   error = result;
                                   return Progress::kDone;
                                 });
}

}  // namespace oriel::kernels::cuda
