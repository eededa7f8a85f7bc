// A device of the emulated driver: its memory, and its streams as queues of operations.
#ifndef ORIEL_KERNELS_CUDA_EMULATOR_EMULATED_DEVICE_H_
#define ORIEL_KERNELS_CUDA_EMULATOR_EMULATED_DEVICE_H_

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/emulated_driver.h"

namespace oriel::kernels::cuda {

enum class Progress : uint8_t {
  kDone,
  kSome,     // not done, but nearer to it
  kBlocked,  // waits for something else
};

// A step of work on a stream or in a graph. Called until it is done, at first with `first`; sets
// `error`, which is CUDA_SUCCESS before, where it fails.
struct Operation {
  std::string name;
  std::function<Progress(bool first, CUresult& error)> run;
  bool begun = false;
};

// One cuEventRecord.
struct EventRecord {
  std::atomic<bool> done{false};
  std::chrono::steady_clock::time_point time;
};

// A graph: nodes after all that they depend on.
struct EmulatedGraph {
  struct Node {
    Operation operation;
    std::vector<int> after;
  };
  std::vector<Node> nodes;
  std::shared_ptr<void> memory;  // of the device, once it can be launched
};

// A capture under way: what it has recorded, and the streams that take part, each with the nodes
// that its next one depends on.
struct Capture {
  EmulatedGraph graph;
  struct EmulatedStream* origin = nullptr;
  std::map<struct EmulatedStream*, std::vector<int>> streams;
  bool valid = true;
};

struct EmulatedStream {
  class EmulatedDevice* device = nullptr;
  std::deque<Operation> queue;
  std::shared_ptr<Capture> capture;
  bool destroyed = false;  // goes when it is empty
};

struct EmulatedEvent {
  std::shared_ptr<EventRecord> record;  // the last one
  // Instead, if the last one was captured.
  std::shared_ptr<Capture> capture;
  std::vector<int> after;
};

// All methods are for threads that hold mutex().
class EmulatedDevice {
 public:
  EmulatedDevice(int ordinal, const EmulatorOptions& options);
  ~EmulatedDevice();

  std::recursive_mutex& mutex() { return mutex_; }
  int ordinal() const { return ordinal_; }
  const EmulatorOptions& options() const { return options_; }
  // Of an operation that has failed; for good.
  CUresult error() const { return error_; }

  // Memory. Zero bytes are an error, as is more than there is.
  CUresult Allocate(size_t bytes, CUdeviceptr* address);
  CUresult Free(CUdeviceptr address);
  // What a graph of so many nodes takes to be launched, until `memory` goes.
  CUresult TakeForGraph(size_t nodes, std::shared_ptr<void>* memory);
  size_t free_bytes() const { return options_.memory_bytes - used_ - *graph_bytes_; }
  // Whether the first byte is an allocation's.
  bool Has(const void* address) const;
  // CUDA_ERROR_INVALID_VALUE unless all bytes are within one allocation.
  CUresult CheckRange(const void* address, size_t bytes, const char* what) const;
  // CUDA_ERROR_ILLEGAL_ADDRESS if something was written beyond an allocation.
  CUresult CheckGuards();

  // Streams.
  EmulatedStream* AddStream();
  EmulatedStream* null_stream() { return null_stream_; }
  // To the end of the queue, or into the graph under capture.
  CUresult Enqueue(EmulatedStream* stream, std::string name,
                   std::function<Progress(bool, CUresult&)> run);
  // Runs operations until `done`, in an order of its own; with what fails, for good. Gives the
  // mutex up while everything waits for other devices.
  CUresult RunUntil(EmulatedStream* preferred, const std::function<bool()>& done);
  // A few operations, if any can run.
  CUresult RunSome();
  bool IsIdle() const;

 private:
  struct Allocation {
    void* mapping;
    size_t mapped, bytes;
  };

  // CUDA_ERROR_OUT_OF_MEMORY unless so many bytes are free.
  CUresult CheckFree(size_t bytes) const;
  Progress RunFront(EmulatedStream& stream);
  // One operation of any stream but `except`.
  Progress RunAny(const EmulatedStream* except);
  void Fail(CUresult error, const std::string& operation);
  CUresult CheckAllocation(uintptr_t address, const Allocation& allocation) const;
  void DropDestroyed();

  const int ordinal_;
  const EmulatorOptions options_;
  std::recursive_mutex mutex_;
  std::mt19937_64 random_;
  std::map<uintptr_t, Allocation> allocations_;
  size_t used_ = 0;
  // Of all graphs; they may outlive the device.
  const std::shared_ptr<std::atomic<size_t>> graph_bytes_ =
      std::make_shared<std::atomic<size_t>>(0);
  std::vector<std::unique_ptr<EmulatedStream>> streams_;
  EmulatedStream* null_stream_ = nullptr;
  CUresult error_ = CUDA_SUCCESS;
  std::string error_text_;
};

// The words behind the last error of this thread; returns `error`.
CUresult EmulatorFails(CUresult error, std::string text);

// Of this thread; null before cuCtxSetCurrent.
EmulatedDevice* CurrentDevice();
void SetCurrentDevice(EmulatedDevice* device);
// The device's own for the null stream.
EmulatedStream* StreamFrom(CUstream stream);

// Ends the captures of this thread with an error, if one is under way, for `call` does not go into
// a graph.
CUresult CheckNoCapture(const char* call);

// The functions of streams, events and graphs.
void FillStreamFunctions(Driver& driver);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_EMULATOR_EMULATED_DEVICE_H_
