#include "kernels/cuda/device.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {

absl::Status Function::LaunchArray(Grid blocks, Grid threads, unsigned shared_bytes,
                                   CUstream stream, void** args) const {
  const CUresult result =
      driver_->cuLaunchKernel(function_, blocks.x, blocks.y, blocks.z, threads.x, threads.y,
                              threads.z, shared_bytes, stream, args, nullptr);
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  return DriverStatus(*driver_, result, absl::StrCat("launch of ", name_).c_str());
}

absl::Status Function::AllowShared(int bytes) const {
  return DriverStatus(*driver_,
                      driver_->cuFuncSetAttribute(
                          function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes),
                      absl::StrCat(bytes, " bytes of shared memory for ", name_).c_str());
}

absl::StatusOr<std::unique_ptr<Device>> Device::Open(const Driver& driver, int ordinal) {
  int count = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDeviceGetCount, &count));
  if (ordinal < 0 || ordinal >= count) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no CUDA device ", ordinal, ": the machine has ", count));
  }
  CUdevice handle = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuDeviceGet, &handle, ordinal));
  std::unique_ptr<Device> device(new Device(driver, handle));
  if (absl::Status status = device->Init(); !status.ok()) {
    return runtime::Annotate(status, absl::StrCat("CUDA device ", ordinal));
  }
  return device;
}

absl::Status Device::Init() {
  char name[256] = {};
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuDeviceGetName, name, sizeof name, device_));
  properties_.name = name;
  ORIEL_ASSIGN_OR_RETURN(properties_.major,
                         Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  ORIEL_ASSIGN_OR_RETURN(properties_.minor,
                         Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  ORIEL_ASSIGN_OR_RETURN(properties_.multiprocessors,
                         Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  ORIEL_ASSIGN_OR_RETURN(properties_.max_shared_bytes,
                         Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  size_t bytes = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuDeviceTotalMem, &bytes, device_));
  properties_.memory_bytes = static_cast<int64_t>(bytes);

  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuDevicePrimaryCtxRetain, &context_, device_));
  retained_ = true;
  ORIEL_RETURN_IF_ERROR(MakeCurrent());
  for (const void* image : driver_.kernels) {
    CUmodule module = nullptr;
    const CUresult result = driver_.cuModuleLoadData(&module, image);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
      return absl::FailedPreconditionError(
          absl::StrCat(properties_.name, " is of sm_", properties_.major, properties_.minor,
                       ", but this Oriel's kernels are for ", driver_.architectures,
                       "; build Oriel with it in ORIEL_CUDA_ARCHITECTURES"));
    }
    ORIEL_RETURN_IF_ERROR(DriverStatus(driver_, result, "loading Oriel's kernels"));
    kernels_.push_back(module);
  }
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemAlloc, &fault_, sizeof(Fault)));
  void* host_fault = nullptr;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemAllocHost, &host_fault, sizeof(Fault)));
  host_fault_ = static_cast<Fault*>(host_fault);
  *host_fault_ = Fault{};
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemsetD8Async, fault_, 0, sizeof(Fault), nullptr));
  return ORIEL_CUDA(driver_, cuStreamSynchronize, nullptr);
}

Device::~Device() {
  if (!retained_) return;
  // Nothing can be done about errors here, and after one of a kernel all of these fail. Streams are
  // those of others, who have waited for them.
  (void)MakeCurrent();
  attached_.clear();
  for (const CUdeviceptr former : former_scratch_) driver_.cuMemFree(former);
  if (scratch_ != 0) driver_.cuMemFree(scratch_);
  if (fault_ != 0) driver_.cuMemFree(fault_);
  if (host_fault_ != nullptr) driver_.cuMemFreeHost(host_fault_);
  for (const auto& [image, module] : modules_) driver_.cuModuleUnload(module);
  for (const CUmodule module : kernels_) driver_.cuModuleUnload(module);
  driver_.cuDevicePrimaryCtxRelease(device_);
}

absl::Status Device::MakeCurrent() const { return ORIEL_CUDA(driver_, cuCtxSetCurrent, context_); }

absl::StatusOr<int> Device::Attribute(CUdevice_attribute attribute) const {
  int value = 0;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuDeviceGetAttribute, &value, attribute, device_));
  return value;
}

namespace {

// The driver loads a function's code when it is launched first, and may wait for the whole device
// then (CUDA C++ Programming Guide, "Lazy Loading"): not while a rank of this process records.
absl::StatusOr<Function> Loaded(const Driver& driver, CUfunction function,
                                const std::string& name) {
  ORIEL_RETURN_IF_ERROR(DriverStatus(driver, driver.cuFuncLoad(function),
                                     absl::StrCat("loading the kernel ", name).c_str()));
  return Function(&driver, function, name);
}

}  // namespace

absl::StatusOr<Function> Device::Find(const std::string& name) const {
  for (const CUmodule module : kernels_) {
    CUfunction function = nullptr;
    const CUresult result = driver_.cuModuleGetFunction(&function, module, name.c_str());
    if (result == CUDA_SUCCESS) return Loaded(driver_, function, name);
    if (result != CUDA_ERROR_NOT_FOUND) return DriverStatus(driver_, result, name.c_str());
  }
  return absl::NotFoundError(absl::StrCat("Oriel's kernels for CUDA devices have no ", name));
}

absl::StatusOr<Function> Device::Load(const std::string& image, const std::string& name) {
  auto found = modules_.find(image);
  if (found == modules_.end()) {
    CUmodule loaded = nullptr;
    ORIEL_RETURN_IF_ERROR(DriverStatus(driver_, driver_.cuModuleLoadData(&loaded, image.c_str()),
                                       absl::StrCat("loading ", name).c_str()));
    found = modules_.emplace(image, loaded).first;
  }
  CUfunction function = nullptr;
  ORIEL_RETURN_IF_ERROR(
      DriverStatus(driver_, driver_.cuModuleGetFunction(&function, found->second, name.c_str()),
                   absl::StrCat("the kernel ", name).c_str()));
  return Loaded(driver_, function, name);
}

absl::Status Device::AddScratch(int64_t bytes) {
  scratch_asked_ = std::max(scratch_asked_, bytes);
  if (bytes <= scratch_bytes_) return absl::OkStatus();
  if (scratch_held_ && scratch_ != 0) {
    former_scratch_.push_back(scratch_);
  } else if (scratch_ != 0) {
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemFree, scratch_));
  }
  scratch_ = 0;
  scratch_bytes_ = 0;
  ORIEL_RETURN_IF_ERROR(
      DriverStatus(driver_, driver_.cuMemAlloc(&scratch_, static_cast<size_t>(bytes)),
                   absl::StrCat(bytes, " bytes of scratch memory for kernels").c_str()));
  scratch_bytes_ = bytes;
  return absl::OkStatus();
}

int32_t Device::NextLaunch(std::string what) {
  launches_.push_back(std::move(what));
  return static_cast<int32_t>(launches_.size() - 1);
}

absl::StatusOr<Fault> Device::TakeFault(CUstream stream) {
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemcpyAsync,
                                   reinterpret_cast<CUdeviceptr>(host_fault_), fault_,
                                   sizeof(Fault), stream));
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuStreamSynchronize, stream));
  const Fault fault = *host_fault_;
  if (fault.kind == 0) return fault;
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemsetD8Async, fault_, 0, sizeof(Fault), stream));
  return fault;
}

absl::Status Device::FaultStatus(const Fault& fault) const {
  if (fault.kind == 0) return absl::OkStatus();
  if (fault.launch < 0 || fault.launch >= launches()) {
    return absl::InternalError(absl::StrCat("a kernel has reported a fault of launch ",
                                            fault.launch, ", which there is not"));
  }
  return absl::InvalidArgumentError(
      absl::StrReplaceAll(launches_[fault.launch], {{"{value}", absl::StrCat(fault.value)},
                                                    {"{limit}", absl::StrCat(fault.limit)},
                                                    {"{position}", absl::StrCat(fault.position)}}));
}

}  // namespace oriel::kernels::cuda
