// One CUDA device of a rank: what kernels are launched with.
//
//   ORIEL_ASSIGN_OR_RETURN(const Driver* driver, SystemDriver());
//   ORIEL_ASSIGN_OR_RETURN(std::unique_ptr<Device> device, Device::Open(*driver, /*ordinal=*/0));
//   ORIEL_ASSIGN_OR_RETURN(Function scale, device->Find("oriel_scale_f32"));
//   ORIEL_RETURN_IF_ERROR(scale.Launch({blocks, 1, 1}, {256, 1, 1}, stream, x, y, count));
#ifndef ORIEL_KERNELS_CUDA_DEVICE_H_
#define ORIEL_KERNELS_CUDA_DEVICE_H_

#include <cuda.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/driver.h"
#include "kernels/cuda/fault.h"

namespace oriel::kernels::cuda {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

// A __global__ function of a loaded module. Valid as long as its device.
class Function {
 public:
  Function() = default;
  Function(const Driver* driver, CUfunction function, std::string name)
      : driver_(driver), function_(function), name_(std::move(name)) {}

  // Puts a launch on the stream. The arguments are those of the kernel, in its parameters' very
  // types: nothing checks them.
  template <typename... Args>
  absl::Status Launch(Grid blocks, Grid threads, CUstream stream, const Args&... args) const {
    std::array<void*, sizeof...(Args)> addresses{
        const_cast<void*>(static_cast<const void*>(&args))...};
    return LaunchArray(blocks, threads, /*shared_bytes=*/0, stream, addresses.data());
  }
  // The same with dynamic shared memory, of which the function has asked for as much before
  // (AllowShared) where it is above 48 KiB.
  absl::Status LaunchArray(Grid blocks, Grid threads, unsigned shared_bytes, CUstream stream,
                           void** args) const;
  absl::Status AllowShared(int bytes) const;

  const std::string& name() const { return name_; }

 private:
  const Driver* driver_ = nullptr;
  CUfunction function_ = nullptr;
  std::string name_;
};

struct DeviceProperties {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int max_shared_bytes = 0;  // of a block, opted in
  int64_t memory_bytes = 0;
};

// Opened by one thread; that thread, and those that call MakeCurrent, use it.
class Device {
 public:
  // Retains the primary context of device `ordinal`, and loads Oriel's kernels (Driver::kernels).
  // InvalidArgument if there is no such device; FailedPrecondition, naming both, if the kernels are
  // for no architecture that it runs.
  static absl::StatusOr<std::unique_ptr<Device>> Open(const Driver& driver, int ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  const DeviceProperties& properties() const { return properties_; }
  // To be called in each further thread before anything else.
  absl::Status MakeCurrent() const;

  // Oriel's kernel of the name; NotFound if there is none.
  absl::StatusOr<Function> Find(const std::string& name) const;
  // A function of a module that the plan brings; it is loaded once, and kept as long as the device.
  absl::StatusOr<Function> Load(const std::string& image, const std::string& name);

  // Scratch and workspaces of prepared kernels, which run one after the other on the computing
  // stream: all that ask for scratch share one memory, as large as the largest of them. It is of
  // any content, at least 256-byte aligned, and its address changes while kernels are prepared:
  // scratch() is for the function that launches. Frees the former memory, so nothing may be on a
  // stream; but not behind HoldScratch.
  absl::Status AddScratch(int64_t bytes);
  // From here on graphs may hold the memory's address: what there is stays as long as the device.
  void HoldScratch() { scratch_held_ = true; }
  CUdeviceptr scratch() const { return scratch_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }
  // The most that AddScratch was asked for since the last call of this. For a launch around another
  // one, whose own scratch begins behind that.
  int64_t TakeScratchAsked() { return std::exchange(scratch_asked_, 0); }

  // The one object of a type, e.g. a library's handle, that lives as long as the device: made by
  // `make` when it is first asked for, with the device current.
  template <typename T>
  absl::StatusOr<T*> Attached(absl::StatusOr<std::unique_ptr<T>> (*make)(Device&)) {
    std::shared_ptr<void>& slot = attached_[std::type_index(typeid(T))];
    if (slot == nullptr) {
      absl::StatusOr<std::unique_ptr<T>> made = make(*this);
      if (!made.ok()) return made.status();
      slot = std::move(*made);
    }
    return static_cast<T*>(slot.get());
  }

  // The device's fault word, an argument of kernels that check their data.
  CUdeviceptr fault() const { return fault_; }
  // Registers a launch; its number goes to the kernel. `what` is what FaultStatus says, with
  // {value}, {limit} and {position} replaced by the fault's: "index {value} is not in [0,
  // {limit})".
  int32_t NextLaunch(std::string what);
  int32_t launches() const { return static_cast<int32_t>(launches_.size()); }
  // The first fault that a kernel has reported since the last call, of kind 0 if none has. Waits
  // for `stream`.
  absl::StatusOr<Fault> TakeFault(CUstream stream);
  // OK for kind 0; else InvalidArgument.
  absl::Status FaultStatus(const Fault& fault) const;

 private:
  Device(const Driver& driver, CUdevice device) : driver_(driver), device_(device) {}
  absl::Status Init();
  absl::StatusOr<int> Attribute(CUdevice_attribute attribute) const;

  const Driver& driver_;
  const CUdevice device_;
  CUcontext context_ = nullptr;
  DeviceProperties properties_;
  std::vector<CUmodule> kernels_;            // Oriel's own
  std::map<std::string, CUmodule> modules_;  // the plan's, by image
  bool retained_ = false;
  CUdeviceptr scratch_ = 0, fault_ = 0;
  Fault* host_fault_ = nullptr;  // pinned
  int64_t scratch_bytes_ = 0, scratch_asked_ = 0;
  bool scratch_held_ = false;
  std::vector<CUdeviceptr> former_scratch_;
  std::vector<std::string> launches_;
  std::map<std::type_index, std::shared_ptr<void>> attached_;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_DEVICE_H_
