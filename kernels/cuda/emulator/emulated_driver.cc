// Devices, memory, modules and launches of the emulated driver, and its table.
#include "kernels/cuda/emulator/emulated_driver.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/emulator/emulated_device.h"
#include "kernels/cuda/emulator/emulated_kernel.h"
#include "kernels/cuda/emulator/ptx.h"

namespace oriel::kernels::cuda {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

constexpr int kDefaultSharedBytes = 48 << 10;
constexpr int kMaxSharedBytes = 227 << 10;
constexpr unsigned kMaxBlockThreads = 1024;

struct EmulatedFunction {
  const EmulatedKernel* kernel;
  int shared_bytes = kDefaultSharedBytes;  // dynamic, allowed
};

// In place of an image: what stands for all kernels that are compiled for the emulator.
constexpr char kCompiled[] = "those that are compiled for the emulator";

struct EmulatedModule {
  std::unique_ptr<emulator::PtxModule> ptx;  // null for kCompiled
  std::map<std::string, EmulatedFunction> functions;
};

// Everything but the threads' own.
struct Machine {
  std::mutex mutex;
  EmulatorOptions options;
  std::vector<std::unique_ptr<EmulatedDevice>> devices;
  std::vector<int> retained;
  std::map<uintptr_t, size_t> pinned;  // host memory
  std::map<void*, std::unique_ptr<char[]>> host_memory;
};

Machine& TheMachine() {
  static auto* machine = new Machine;
  return *machine;
}

CUresult NoContext() {
  return EmulatorFails(CUDA_ERROR_INVALID_CONTEXT, "no device is current in this thread");
}

// Devices.

CUresult Init(unsigned) { return CUDA_SUCCESS; }

CUresult DriverVersion(int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult ErrorName(CUresult error, const char** name) {
#define ORIEL_CUDA_NAME(value) \
  case value:                  \
    *name = #value;            \
    return CUDA_SUCCESS;
  switch (error) {
    ORIEL_CUDA_NAME(CUDA_SUCCESS)
    ORIEL_CUDA_NAME(CUDA_ERROR_INVALID_VALUE)
    ORIEL_CUDA_NAME(CUDA_ERROR_OUT_OF_MEMORY)
    ORIEL_CUDA_NAME(CUDA_ERROR_NO_DEVICE)
    ORIEL_CUDA_NAME(CUDA_ERROR_INVALID_DEVICE)
    ORIEL_CUDA_NAME(CUDA_ERROR_INVALID_CONTEXT)
    ORIEL_CUDA_NAME(CUDA_ERROR_INVALID_HANDLE)
    ORIEL_CUDA_NAME(CUDA_ERROR_INVALID_PTX)
    ORIEL_CUDA_NAME(CUDA_ERROR_ILLEGAL_STATE)
    ORIEL_CUDA_NAME(CUDA_ERROR_NOT_FOUND)
    ORIEL_CUDA_NAME(CUDA_ERROR_NOT_READY)
    ORIEL_CUDA_NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
    ORIEL_CUDA_NAME(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    ORIEL_CUDA_NAME(CUDA_ERROR_LAUNCH_FAILED)
    ORIEL_CUDA_NAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    ORIEL_CUDA_NAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    ORIEL_CUDA_NAME(CUDA_ERROR_STREAM_CAPTURE_MERGE)
    ORIEL_CUDA_NAME(CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    ORIEL_CUDA_NAME(CUDA_ERROR_STREAM_CAPTURE_ISOLATION)
    ORIEL_CUDA_NAME(CUDA_ERROR_CAPTURED_EVENT)
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
#undef ORIEL_CUDA_NAME
}

// The words of what has gone wrong, not of the code.
CUresult ErrorString(CUresult, const char** text) {
  static thread_local std::string words;
  words = EmulatorError();
  *text = words.empty() ? "the emulator has no text for it" : words.c_str();
  return CUDA_SUCCESS;
}

CUresult DeviceCount(int* count) {
  *count = TheMachine().options.devices;
  return CUDA_SUCCESS;
}

CUresult GetDevice(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= TheMachine().options.devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult DeviceName(char* name, int length, CUdevice) {
  std::strncpy(name, "emulated device", length - 1);
  name[length - 1] = '\0';
  return CUDA_SUCCESS;
}

CUresult DeviceAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = TheMachine().options.major;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = TheMachine().options.minor;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 2;  // few, so that loops over blocks are taken
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = kMaxBlockThreads;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = kDefaultSharedBytes;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = kMaxSharedBytes;
      return CUDA_SUCCESS;
    default:
      return EmulatorFails(CUDA_ERROR_INVALID_VALUE,
                           absl::StrCat("the device attribute ", attribute, " is not emulated"));
  }
}

CUresult DeviceTotalMemory(size_t* bytes, CUdevice) {
  *bytes = TheMachine().options.memory_bytes;
  return CUDA_SUCCESS;
}

CUresult RetainContext(CUcontext* context, CUdevice ordinal) {
  Machine& machine = TheMachine();
  const std::lock_guard<std::mutex> lock(machine.mutex);
  std::unique_ptr<EmulatedDevice>& device = machine.devices.at(ordinal);
  if (device == nullptr) device = std::make_unique<EmulatedDevice>(ordinal, machine.options);
  ++machine.retained[ordinal];
  *context = reinterpret_cast<CUcontext>(device.get());
  return CUDA_SUCCESS;
}

CUresult ReleaseContext(CUdevice ordinal) {
  Machine& machine = TheMachine();
  const std::lock_guard<std::mutex> lock(machine.mutex);
  if (machine.retained.at(ordinal) == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--machine.retained[ordinal] > 0) return CUDA_SUCCESS;
  if (CurrentDevice() == machine.devices[ordinal].get()) SetCurrentDevice(nullptr);
  machine.devices[ordinal] = nullptr;
  return CUDA_SUCCESS;
}

CUresult SetCurrent(CUcontext context) {
  SetCurrentDevice(reinterpret_cast<EmulatedDevice*>(context));
  return CUDA_SUCCESS;
}

// Memory.

CUresult MemoryInfo(size_t* free, size_t* total) {
  EmulatedDevice* device = CurrentDevice();
  if (device == nullptr) return NoContext();
  const Lock lock(device->mutex());
  *free = device->free_bytes();
  *total = device->options().memory_bytes;
  return CUDA_SUCCESS;
}

CUresult Allocate(CUdeviceptr* address, size_t bytes) {
  EmulatedDevice* device = CurrentDevice();
  if (device == nullptr) return NoContext();
  if (const CUresult result = CheckNoCapture("cuMemAlloc"); result != CUDA_SUCCESS) return result;
  const Lock lock(device->mutex());
  return device->Allocate(bytes, address);
}

CUresult Free(CUdeviceptr address) {
  EmulatedDevice* device = CurrentDevice();
  if (device == nullptr) return NoContext();
  if (const CUresult result = CheckNoCapture("cuMemFree"); result != CUDA_SUCCESS) return result;
  const Lock lock(device->mutex());
  return device->Free(address);
}

CUresult AllocateHost(void** address, size_t bytes) {
  if (const CUresult result = CheckNoCapture("cuMemAllocHost"); result != CUDA_SUCCESS) {
    return result;
  }
  Machine& machine = TheMachine();
  const std::lock_guard<std::mutex> lock(machine.mutex);
  auto memory = std::make_unique<char[]>(std::max<size_t>(bytes, 1) + 64);
  char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory.get()) + 63) & ~63ul);
  std::memset(aligned, 0xff, bytes);
  *address = aligned;
  machine.pinned[reinterpret_cast<uintptr_t>(aligned)] = bytes;
  machine.host_memory[aligned] = std::move(memory);
  return CUDA_SUCCESS;
}

CUresult FreeHost(void* address) {
  if (const CUresult result = CheckNoCapture("cuMemFreeHost"); result != CUDA_SUCCESS) {
    return result;
  }
  Machine& machine = TheMachine();
  if (EmulatedDevice* device = CurrentDevice()) {  // whatever still uses it, runs first
    const Lock lock(device->mutex());
    device->RunUntil(nullptr, [device] { return device->IsIdle(); });
  }
  const std::lock_guard<std::mutex> lock(machine.mutex);
  if (machine.host_memory.erase(address) == 0) {
    return EmulatorFails(CUDA_ERROR_INVALID_VALUE, "frees memory that was not allocated");
  }
  machine.pinned.erase(reinterpret_cast<uintptr_t>(address));
  return CUDA_SUCCESS;
}

enum class Place : uint8_t { kDevice, kPinned, kPageable };

// Where it lies, and whether it lies there whole.
CUresult Locate(EmulatedDevice& device, const void* address, size_t bytes, const char* what,
                Place& place) {
  place = Place::kDevice;
  if (device.Has(address)) return device.CheckRange(address, bytes, what);
  Machine& machine = TheMachine();
  const std::lock_guard<std::mutex> lock(machine.mutex);
  const auto value = reinterpret_cast<uintptr_t>(address);
  auto next = machine.pinned.upper_bound(value);
  place = Place::kPageable;
  if (next == machine.pinned.begin()) return CUDA_SUCCESS;
  --next;
  if (value >= next->first + next->second) return CUDA_SUCCESS;
  place = Place::kPinned;
  if (value + bytes <= next->first + next->second) return CUDA_SUCCESS;
  return EmulatorFails(CUDA_ERROR_INVALID_VALUE,
                       absl::StrCat(what, " of ", bytes, " bytes goes beyond pinned memory"));
}

struct Rows {
  size_t width, height, source_pitch, target_pitch;

  size_t source_bytes() const { return height == 0 ? 0 : (height - 1) * source_pitch + width; }
  size_t target_bytes() const { return height == 0 ? 0 : (height - 1) * target_pitch + width; }
};

void CopyRows(void* target, const void* source, const Rows& rows) {
  for (size_t i = 0; i < rows.height; ++i) {
    std::memcpy(static_cast<char*>(target) + i * rows.target_pitch,
                static_cast<const char*>(source) + i * rows.source_pitch, rows.width);
  }
}

CUresult CopyOnStream(void* target, const void* source, const Rows& rows, CUstream handle) {
  EmulatedStream* stream = StreamFrom(handle);
  if (stream == nullptr) return NoContext();
  EmulatedDevice& device = *stream->device;
  const Lock lock(device.mutex());
  if (rows.width == 0 || rows.height == 0) return device.error();
  Place from, to;
  CUresult result = Locate(device, source, rows.source_bytes(), "the source of a copy", from);
  if (result != CUDA_SUCCESS) return result;
  result = Locate(device, target, rows.target_bytes(), "the target of a copy", to);
  if (result != CUDA_SUCCESS) return result;
  const bool pageable = from == Place::kPageable || to == Place::kPageable;
  if (pageable && stream->capture != nullptr) {
    return CheckNoCapture("a copy with host memory that is not pinned");
  }
  if (from == Place::kPageable) {  // the driver has taken the bytes when it returns
    std::string bytes(static_cast<const char*>(source), rows.source_bytes());
    result = device.Enqueue(stream, "a copy", [=, bytes = std::move(bytes)](bool, CUresult&) {
      CopyRows(target, bytes.data(), rows);
      return Progress::kDone;
    });
  } else {
    result = device.Enqueue(stream, "a copy", [=](bool, CUresult&) {
      CopyRows(target, source, rows);
      return Progress::kDone;
    });
  }
  if (result != CUDA_SUCCESS || to != Place::kPageable) return result;
  return device.RunUntil(stream, [stream] { return stream->queue.empty(); });
}

CUresult Copy(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  return CopyOnStream(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source),
                      {bytes, 1, bytes, bytes}, stream);
}

CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream) {
  const auto address = [](CUmemorytype type, CUdeviceptr device, const void* host) {
    return type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(host) : device;
  };
  if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY ||
      copy->WidthInBytes > copy->dstPitch || copy->WidthInBytes > copy->srcPitch) {
    return EmulatorFails(CUDA_ERROR_INVALID_VALUE, "rows of a copy overlap, or are arrays");
  }
  const CUdeviceptr source = address(copy->srcMemoryType, copy->srcDevice, copy->srcHost) +
                             copy->srcY * copy->srcPitch + copy->srcXInBytes;
  const CUdeviceptr target = address(copy->dstMemoryType, copy->dstDevice, copy->dstHost) +
                             copy->dstY * copy->dstPitch + copy->dstXInBytes;
  return CopyOnStream(reinterpret_cast<void*>(target), reinterpret_cast<const void*>(source),
                      {copy->WidthInBytes, copy->Height, copy->srcPitch, copy->dstPitch}, stream);
}

CUresult Fill(CUdeviceptr target, unsigned char value, size_t bytes, CUstream handle) {
  EmulatedStream* stream = StreamFrom(handle);
  if (stream == nullptr) return NoContext();
  EmulatedDevice& device = *stream->device;
  const Lock lock(device.mutex());
  if (bytes == 0) return device.error();
  void* const address = reinterpret_cast<void*>(target);
  if (const CUresult result = device.CheckRange(address, bytes, "a fill"); result != CUDA_SUCCESS) {
    return result;
  }
  return device.Enqueue(stream, "a fill", [=](bool, CUresult&) {
    std::memset(address, value, bytes);
    return Progress::kDone;
  });
}

// Modules and launches.

CUresult LoadModule(CUmodule* module, const void* image) {
  auto made = std::make_unique<EmulatedModule>();
  if (image != kCompiled) {
    auto ptx = emulator::PtxModule::Load(static_cast<const char*>(image));
    if (!ptx.ok()) {
      return EmulatorFails(CUDA_ERROR_INVALID_PTX, std::string(ptx.status().message()));
    }
    made->ptx = *std::move(ptx);
  }
  *module = reinterpret_cast<CUmodule>(made.release());
  return CUDA_SUCCESS;
}

CUresult UnloadModule(CUmodule module) {
  delete reinterpret_cast<EmulatedModule*>(module);
  return CUDA_SUCCESS;
}

CUresult GetFunction(CUfunction* function, CUmodule handle, const char* name) {
  auto& module = *reinterpret_cast<EmulatedModule*>(handle);
  const EmulatedKernel* kernel = module.ptx ? module.ptx->Find(name) : FindEmulated(name);
  if (kernel == nullptr) {
    return EmulatorFails(CUDA_ERROR_NOT_FOUND,
                         module.ptx
                             ? absl::StrCat("the PTX has no entry ", name)
                             : absl::StrCat("no function ", name, " is compiled for the emulator"));
  }
  *function = reinterpret_cast<CUfunction>(
      &module.functions.emplace(name, EmulatedFunction{kernel}).first->second);
  return CUDA_SUCCESS;
}

CUresult SetFunctionAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > kMaxSharedBytes) {
    return EmulatorFails(CUDA_ERROR_INVALID_VALUE,
                         absl::StrCat("a function's attribute ", attribute, " of ", value));
  }
  reinterpret_cast<EmulatedFunction*>(function)->shared_bytes = value;
  return CUDA_SUCCESS;
}

CUresult GetFunctionAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  const auto& function = *reinterpret_cast<EmulatedFunction*>(handle);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(function.kernel->max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function.shared_bytes;
      return CUDA_SUCCESS;
    default:
      return EmulatorFails(CUDA_ERROR_INVALID_VALUE,
                           absl::StrCat("the function attribute ", attribute, " is not emulated"));
  }
}

CUresult CheckLaunch(const EmulatedFunction& function, const EmulatedLaunch& launch) {
  const EmulatedKernel& kernel = *function.kernel;
  const Grid& blocks = launch.blocks;
  const Grid& threads = launch.threads;
  const uint64_t block = uint64_t{threads.x} * threads.y * threads.z;
  if (blocks.x == 0 || blocks.y == 0 || blocks.z == 0 || block == 0 || blocks.x > 2147483647u ||
      blocks.y > 65535 || blocks.z > 65535 || threads.z > 64 || block > kMaxBlockThreads) {
    return EmulatorFails(
        CUDA_ERROR_INVALID_VALUE,
        absl::StrCat("a grid of ", blocks.x, "x", blocks.y, "x", blocks.z, " blocks of ", threads.x,
                     "x", threads.y, "x", threads.z, " threads"));
  }
  if (block > kernel.max_threads) {
    return EmulatorFails(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                         absl::StrCat(block, " threads in a block, of ", kernel.max_threads));
  }
  if (launch.shared_bytes > static_cast<unsigned>(function.shared_bytes)) {
    return EmulatorFails(
        CUDA_ERROR_INVALID_VALUE,
        absl::StrCat(launch.shared_bytes, " bytes of shared memory, of ", function.shared_bytes));
  }
  return CUDA_SUCCESS;
}

CUresult LaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      CUstream stream_handle, void** args, void** extra) {
  EmulatedStream* stream = StreamFrom(stream_handle);
  if (stream == nullptr) return NoContext();
  const auto& function = *reinterpret_cast<const EmulatedFunction*>(handle);
  const EmulatedLaunch launch{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes};
  if (extra != nullptr) return EmulatorFails(CUDA_ERROR_INVALID_VALUE, "packed arguments");
  if (const CUresult result = CheckLaunch(function, launch); result != CUDA_SUCCESS) return result;
  const EmulatedKernel* kernel = function.kernel;
  // Each argument at a multiple of the largest alignment.
  using Unit = std::max_align_t;
  std::vector<size_t> offsets;
  size_t units = 0;
  for (const size_t bytes : kernel->parameter_bytes) {
    offsets.push_back(units);
    units += (bytes + sizeof(Unit) - 1) / sizeof(Unit);
  }
  auto values = std::make_shared<std::vector<Unit>>(units);
  auto addresses = std::make_shared<std::vector<void*>>();
  for (size_t i = 0; i < offsets.size(); ++i) {
    addresses->push_back(values->data() + offsets[i]);
    std::memcpy(addresses->back(), args[i], kernel->parameter_bytes[i]);
  }
  const Lock lock(stream->device->mutex());
  return stream->device->Enqueue(
      stream, kernel->name, [kernel, launch, values, addresses](bool, CUresult& error) {
        const absl::Status status = kernel->run(launch, addresses->data());
        if (!status.ok()) {
          error = EmulatorFails(CUDA_ERROR_LAUNCH_FAILED, std::string(status.message()));
        }
        return Progress::kDone;
      });
}

Driver MakeTable() {
  Driver driver;
  driver.cuInit = &Init;
  driver.cuDriverGetVersion = &DriverVersion;
  driver.cuGetErrorName = &ErrorName;
  driver.cuGetErrorString = &ErrorString;
  driver.cuDeviceGetCount = &DeviceCount;
  driver.cuDeviceGet = &GetDevice;
  driver.cuDeviceGetName = &DeviceName;
  driver.cuDeviceGetAttribute = &DeviceAttribute;
  driver.cuDeviceTotalMem = &DeviceTotalMemory;
  driver.cuDevicePrimaryCtxRetain = &RetainContext;
  driver.cuDevicePrimaryCtxRelease = &ReleaseContext;
  driver.cuCtxSetCurrent = &SetCurrent;
  driver.cuMemGetInfo = &MemoryInfo;
  driver.cuMemAlloc = &Allocate;
  driver.cuMemFree = &Free;
  driver.cuMemAllocHost = &AllocateHost;
  driver.cuMemFreeHost = &FreeHost;
  driver.cuMemcpyAsync = &Copy;
  driver.cuMemcpy2DAsync = &Copy2D;
  driver.cuMemsetD8Async = &Fill;
  driver.cuModuleLoadData = &LoadModule;
  driver.cuModuleUnload = &UnloadModule;
  driver.cuModuleGetFunction = &GetFunction;
  driver.cuFuncLoad = [](CUfunction) { return CUDA_SUCCESS; };
  driver.cuFuncSetAttribute = &SetFunctionAttribute;
  driver.cuFuncGetAttribute = &GetFunctionAttribute;
  driver.cuLaunchKernel = &LaunchKernel;
  FillStreamFunctions(driver);
  driver.kernels = {kCompiled};
  driver.architectures = "the emulator";
  return driver;
}

}  // namespace

const Driver& EmulatedDriver(const EmulatorOptions& options) {
  static const auto* const table = new Driver(MakeTable());
  Machine& machine = TheMachine();
  const std::lock_guard<std::mutex> lock(machine.mutex);
  machine.options = options;
  machine.devices.resize(std::max<size_t>(machine.devices.size(), options.devices));
  machine.retained.resize(machine.devices.size());
  return *table;
}

bool IsEmulatedMemory(const void* address, int64_t bytes) {
  EmulatedDevice* device = CurrentDevice();
  if (device == nullptr) return false;
  const Lock lock(device->mutex());
  return device->Has(address) &&
         device->CheckRange(address, static_cast<size_t>(bytes), "a range") == CUDA_SUCCESS;
}

}  // namespace oriel::kernels::cuda
