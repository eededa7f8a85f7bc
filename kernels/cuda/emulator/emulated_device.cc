#include "kernels/cuda/emulator/emulated_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"

namespace oriel::kernels::cuda {
namespace {

constexpr size_t kAlignment = 512;  // as cuMemAlloc's
constexpr size_t kGuard = 512;      // on each side
constexpr uint8_t kGuardByte = 0xa5;
constexpr uint8_t kFreshByte = 0xff;

// Sooner than a peer's thread can do anything.
constexpr std::chrono::microseconds kPoll(20);

thread_local std::string last_error;

}  // namespace

std::string EmulatorError() { return last_error; }

CUresult EmulatorFails(CUresult error, std::string text) {
  last_error = std::move(text);
  return error;
}

EmulatedDevice::EmulatedDevice(int ordinal, const EmulatorOptions& options)
    : ordinal_(ordinal), options_(options), random_(options.seed * 1000003 + ordinal) {
  null_stream_ = AddStream();
}

EmulatedDevice::~EmulatedDevice() {
  for (const auto& [address, allocation] : allocations_) {
    munmap(allocation.mapping, allocation.mapped);
  }
}

CUresult EmulatedDevice::CheckFree(size_t bytes) const {
  if (bytes <= free_bytes()) return CUDA_SUCCESS;
  return EmulatorFails(CUDA_ERROR_OUT_OF_MEMORY,
                       absl::StrCat("out of memory: ", bytes, " bytes are wanted, ", free_bytes(),
                                    " of ", options_.memory_bytes, " are free"));
}

CUresult EmulatedDevice::TakeForGraph(size_t nodes, std::shared_ptr<void>* memory) {
  constexpr size_t kBytesOfNode = 1024;
  const size_t bytes = nodes * kBytesOfNode;
  if (const CUresult result = CheckFree(bytes); result != CUDA_SUCCESS) return result;
  *graph_bytes_ += bytes;
  *memory =
      std::shared_ptr<void>(nullptr, [total = graph_bytes_, bytes](void*) { *total -= bytes; });
  return CUDA_SUCCESS;
}

CUresult EmulatedDevice::Allocate(size_t bytes, CUdeviceptr* address) {
  if (bytes == 0) {
    return EmulatorFails(CUDA_ERROR_INVALID_VALUE, "an allocation of no bytes");
  }
  if (const CUresult result = CheckFree(bytes); result != CUDA_SUCCESS) return result;
  const size_t mapped = (bytes + kAlignment - 1) / kAlignment * kAlignment + 2 * kGuard;
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) {
    return EmulatorFails(CUDA_ERROR_OUT_OF_MEMORY,
                         "the host has no memory for the emulated device");
  }
  char* const first = static_cast<char*>(mapping) + kGuard;
  std::memset(mapping, kGuardByte, kGuard);
  std::memset(first, kFreshByte, bytes);
  std::memset(first + bytes, kGuardByte, mapped - kGuard - bytes);
  allocations_[reinterpret_cast<uintptr_t>(first)] = {mapping, mapped, bytes};
  used_ += bytes;
  *address = reinterpret_cast<CUdeviceptr>(first);
  return CUDA_SUCCESS;
}

CUresult EmulatedDevice::Free(CUdeviceptr address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) {
    return EmulatorFails(CUDA_ERROR_INVALID_VALUE, "frees memory that was not allocated");
  }
  if (error_ == CUDA_SUCCESS) {  // whatever still uses it, runs first
    RunUntil(nullptr, [this] { return IsIdle(); });
  }
  const CUresult result = CheckAllocation(found->first, found->second);
  used_ -= found->second.bytes;
  munmap(found->second.mapping, found->second.mapped);
  allocations_.erase(found);
  return error_ != CUDA_SUCCESS ? error_ : result;
}

bool EmulatedDevice::Has(const void* address) const {
  const auto value = reinterpret_cast<uintptr_t>(address);
  auto next = allocations_.upper_bound(value);
  if (next == allocations_.begin()) return false;
  --next;
  return value < next->first + next->second.bytes;
}

CUresult EmulatedDevice::CheckRange(const void* address, size_t bytes, const char* what) const {
  const auto value = reinterpret_cast<uintptr_t>(address);
  auto next = allocations_.upper_bound(value);
  if (next != allocations_.begin()) {
    --next;
    if (value + bytes <= next->first + next->second.bytes) return CUDA_SUCCESS;
    if (value < next->first + next->second.bytes) {
      return EmulatorFails(
          CUDA_ERROR_INVALID_VALUE,
          absl::StrCat(what, " of ", bytes, " bytes at offset ", value - next->first,
                       " goes beyond an allocation of ", next->second.bytes, " bytes"));
    }
  }
  return EmulatorFails(CUDA_ERROR_INVALID_VALUE,
                       absl::StrCat(what, " of ", bytes, " bytes is not in the device's memory"));
}

CUresult EmulatedDevice::CheckAllocation(uintptr_t address, const Allocation& allocation) const {
  const auto* const first = reinterpret_cast<const uint8_t*>(address);
  const auto* const begin = static_cast<const uint8_t*>(allocation.mapping);
  const auto* const end = begin + allocation.mapped;
  const auto is_guard = [](uint8_t byte) { return byte == kGuardByte; };
  if (std::all_of(begin, first, is_guard) && std::all_of(first + allocation.bytes, end, is_guard)) {
    return CUDA_SUCCESS;
  }
  return EmulatorFails(
      CUDA_ERROR_ILLEGAL_ADDRESS,
      absl::StrCat("something was written beyond an allocation of ", allocation.bytes, " bytes"));
}

CUresult EmulatedDevice::CheckGuards() {
  for (const auto& [address, allocation] : allocations_) {
    if (CheckAllocation(address, allocation) == CUDA_SUCCESS) continue;
    Fail(CUDA_ERROR_ILLEGAL_ADDRESS, "the device's memory");
    return error_;
  }
  return error_;
}

EmulatedStream* EmulatedDevice::AddStream() {
  streams_.push_back(std::make_unique<EmulatedStream>());
  streams_.back()->device = this;
  return streams_.back().get();
}

CUresult EmulatedDevice::Enqueue(EmulatedStream* stream, std::string name,
                                 std::function<Progress(bool, CUresult&)> run) {
  if (error_ != CUDA_SUCCESS) return EmulatorFails(error_, error_text_);
  Operation operation{std::move(name), std::move(run)};
  if (stream->capture == nullptr) {
    stream->queue.push_back(std::move(operation));
    return CUDA_SUCCESS;
  }
  Capture& capture = *stream->capture;
  std::vector<int>& after = capture.streams[stream];
  capture.graph.nodes.push_back({std::move(operation), after});
  after = {static_cast<int>(capture.graph.nodes.size()) - 1};
  return CUDA_SUCCESS;
}

bool EmulatedDevice::IsIdle() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return stream->queue.empty(); });
}

Progress EmulatedDevice::RunFront(EmulatedStream& stream) {
  if (stream.queue.empty()) return Progress::kBlocked;
  Operation& operation = stream.queue.front();
  const bool first = !operation.begun;
  operation.begun = true;
  CUresult error = CUDA_SUCCESS;
  last_error.clear();
  const Progress progress = operation.run(first, error);
  if (error != CUDA_SUCCESS) {
    Fail(error, operation.name);
    return Progress::kDone;
  }
  if (progress == Progress::kDone) stream.queue.pop_front();
  return progress;
}

Progress EmulatedDevice::RunAny(const EmulatedStream* except) {
  std::vector<EmulatedStream*> streams;
  for (const auto& stream : streams_) {
    if (stream.get() != except && !stream->queue.empty()) streams.push_back(stream.get());
  }
  std::shuffle(streams.begin(), streams.end(), random_);
  for (EmulatedStream* stream : streams) {
    const Progress progress = RunFront(*stream);
    if (progress != Progress::kBlocked) return progress;
  }
  return Progress::kBlocked;
}

CUresult EmulatedDevice::RunUntil(EmulatedStream* preferred, const std::function<bool()>& done) {
  // Who is favoured: the stream that is waited for, so that the others come as late as they may;
  // the others, so that they come early; or nobody.
  const uint64_t favour = random_() % 3;
  while (error_ == CUDA_SUCCESS && !done()) {
    Progress progress = Progress::kBlocked;
    if (preferred != nullptr && favour == 0) progress = RunFront(*preferred);
    if (progress == Progress::kBlocked) progress = RunAny(favour == 2 ? nullptr : preferred);
    if (progress == Progress::kBlocked && preferred != nullptr) progress = RunFront(*preferred);
    if (progress != Progress::kBlocked) continue;
    mutex_.unlock();
    std::this_thread::sleep_for(kPoll);
    mutex_.lock();
  }
  DropDestroyed();
  return error_ == CUDA_SUCCESS ? CUDA_SUCCESS : EmulatorFails(error_, error_text_);
}

CUresult EmulatedDevice::RunSome() {
  for (uint64_t i = random_() % 4; i > 0 && error_ == CUDA_SUCCESS; --i) RunAny(nullptr);
  return error_ == CUDA_SUCCESS ? CUDA_SUCCESS : EmulatorFails(error_, error_text_);
}

void EmulatedDevice::Fail(CUresult error, const std::string& operation) {
  error_ = error;
  error_text_ = last_error.empty() ? operation : absl::StrCat(operation, ": ", last_error);
  for (const auto& stream : streams_) stream->queue.clear();
}

void EmulatedDevice::DropDestroyed() {
  streams_.erase(std::remove_if(streams_.begin(), streams_.end(),
                                [](const std::unique_ptr<EmulatedStream>& stream) {
                                  return stream->destroyed && stream->queue.empty();
                                }),
                 streams_.end());
}

}  // namespace oriel::kernels::cuda
