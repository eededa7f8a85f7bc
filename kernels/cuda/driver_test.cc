#include "kernels/cuda/driver.h"

#include <dlfcn.h>

#include <algorithm>

#include "kernels/cuda/copy_rows.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/emulator/emulated_kernel.h"
#include "runtime/base/status_testing.h"

namespace oriel::kernels::cuda {
namespace {

using ::oriel::runtime::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A table like the emulator's, for tests to break.
Driver Copy() { return EmulatedDriver(); }

// On a machine without a driver the error says what to install and what to do without.
TEST(SystemDriver, SaysWhatIsMissing) {
  const absl::StatusOr<const Driver*> driver = SystemDriver();
  if (driver.ok()) {
    int devices = 0;
    ORIEL_ASSERT_OK(ORIEL_CUDA(**driver, cuDeviceGetCount, &devices));
    EXPECT_GT(devices, 0);
    return;
  }
  EXPECT_THAT(driver, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("no CUDA device: "), HasSubstr("--device host"))));
  if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
    EXPECT_THAT(driver.status().message(), HasSubstr("install NVIDIA's driver for CUDA 13.0"));
  }
  EXPECT_EQ(SystemDriver().status(), driver.status());
}

TEST(CheckDriver, RefusesAnOldDriver) {
  Driver driver = Copy();
  driver.cuDriverGetVersion = [](int* version) {
    *version = 12080;
    return CUDA_SUCCESS;
  };
  EXPECT_THAT(CheckDriver(driver),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("the driver is for CUDA 12.8; install one for CUDA 13.0")));
}

TEST(CheckDriver, RefusesAMachineWithoutDevices) {
  Driver driver = Copy();
  driver.cuDeviceGetCount = [](int* count) {
    *count = 0;
    return CUDA_SUCCESS;
  };
  EXPECT_THAT(CheckDriver(driver),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST(CheckDriver, SaysWhyTheDriverDoesNotStart) {
  Driver driver = Copy();
  driver.cuInit = [](unsigned) { return CUDA_ERROR_NO_DEVICE; };
  EXPECT_THAT(CheckDriver(driver),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cuInit: CUDA_ERROR_NO_DEVICE")));
}

TEST(DriverStatus, HasACodeThatFits) {
  const Driver driver = Copy();
  const auto code = [&](CUresult result) { return DriverStatus(driver, result, "call").code(); };
  EXPECT_EQ(code(CUDA_SUCCESS), absl::StatusCode::kOk);
  EXPECT_EQ(code(CUDA_ERROR_OUT_OF_MEMORY), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(code(CUDA_ERROR_ECC_UNCORRECTABLE), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code(CUDA_ERROR_INVALID_VALUE), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(CUDA_ERROR_ILLEGAL_ADDRESS), absl::StatusCode::kInternal);
  EXPECT_EQ(code(CUDA_ERROR_NOT_FOUND), absl::StatusCode::kNotFound);
}

TEST(DriverStatus, NamesCallAndError) {
  EXPECT_THAT(DriverStatus(Copy(), CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): ")));
}

TEST(Device, IsOneOfTheMachine) {
  EmulatorOptions options;
  options.devices = 2;
  const Driver& driver = EmulatedDriver(options);
  EXPECT_THAT(Device::Open(driver, 2),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("there is no CUDA device 2: the machine has 2")));
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, Device::Open(driver, 1));
  EXPECT_EQ(device->properties().name, "emulated device");
  EXPECT_EQ(device->properties().major, 9);
}

TEST(Device, NamesTheArchitecturesWhereNoneFits) {
  Driver driver = Copy();
  driver.architectures = "sm_80, sm_90";
  driver.cuModuleLoadData = [](CUmodule*, const void*) { return CUDA_ERROR_NO_BINARY_FOR_GPU; };
  EXPECT_THAT(Device::Open(driver, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is of sm_90, but this Oriel's kernels are for sm_80, sm_90")));
}

TEST(Device, HasNoKernelOfAnUnknownName) {
  const Driver& driver = EmulatedDriver();
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, Device::Open(driver, 0));
  EXPECT_THAT(device->Find("oriel_none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("have no oriel_none")));
}

// One scratch memory for all, as large as the largest wish.
TEST(Device, SharesScratch) {
  const Driver& driver = EmulatedDriver();
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, Device::Open(driver, 0));
  ORIEL_ASSERT_OK(device->AddScratch(100));
  ORIEL_ASSERT_OK(device->AddScratch(5000));
  const CUdeviceptr scratch = device->scratch();
  ORIEL_ASSERT_OK(device->AddScratch(200));
  EXPECT_EQ(device->scratch(), scratch);
  EXPECT_EQ(device->scratch_bytes(), 5000);
  EXPECT_TRUE(IsEmulatedMemory(reinterpret_cast<void*>(scratch), 5000));
  EXPECT_FALSE(IsEmulatedMemory(reinterpret_cast<void*>(scratch), 5001));
}

// What a graph may hold stays.
TEST(Device, KeepsScratchThatIsHeld) {
  const Driver& driver = EmulatedDriver();
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, Device::Open(driver, 0));
  ORIEL_ASSERT_OK(device->AddScratch(100));
  const CUdeviceptr first = device->scratch();
  device->HoldScratch();
  ORIEL_ASSERT_OK(device->AddScratch(5000));
  EXPECT_NE(device->scratch(), first);
  EXPECT_TRUE(IsEmulatedMemory(reinterpret_cast<void*>(first), 100));
}

int loads = 0;

// No kernel is loaded by its first launch, which another rank's recording may not bear.
TEST(Device, LoadsWhatItFinds) {
  Driver driver = Copy();
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, Device::Open(driver, 0));
  driver.cuModuleGetFunction = [](CUfunction*, CUmodule, const char*) { return CUDA_SUCCESS; };
  driver.cuFuncLoad = [](CUfunction) {
    ++loads;
    return CUDA_SUCCESS;
  };
  loads = 0;
  ORIEL_EXPECT_OK(device->Find("kernel").status());
  EXPECT_EQ(loads, 1);
  driver.cuFuncLoad = [](CUfunction) { return CUDA_ERROR_OUT_OF_MEMORY; };
  EXPECT_THAT(device->Find("kernel").status(), StatusIs(absl::StatusCode::kResourceExhausted,
                                                        HasSubstr("loading the kernel kernel")));
}

TEST(Device, LoadsAnImageOnce) {
  Driver driver = Copy();
  driver.cuModuleLoadData = [](CUmodule* module, const void* image) {
    *module = reinterpret_cast<CUmodule>(const_cast<void*>(image));
    ++loads;
    return CUDA_SUCCESS;
  };
  driver.cuModuleGetFunction = [](CUfunction*, CUmodule, const char*) { return CUDA_SUCCESS; };
  driver.cuModuleUnload = [](CUmodule) {
    --loads;
    return CUDA_SUCCESS;
  };
  {
    ORIEL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, Device::Open(driver, 0));
    loads = 0;
    for (const char* image : {"one", "two", "one", "one"}) {
      ORIEL_EXPECT_OK(device->Load(image, "kernel").status());
    }
    EXPECT_EQ(loads, 2);
  }
}

struct Copied {
  CUdeviceptr target, source;
  size_t bytes;
};
std::vector<Copied> copied;

// The driver's 2-D copy takes no stride from 2 GiB on.
TEST(CopyRows, OfAnyStride) {
  Driver driver = Copy();
  driver.cuMemcpyAsync = [](CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream) {
    copied.push_back({target, source, bytes});
    return CUDA_SUCCESS;
  };
  driver.cuMemcpy2DAsync = [](const CUDA_MEMCPY2D* copy, CUstream) {
    if (std::max(copy->srcPitch, copy->dstPitch) > 0x7fffffff) return CUDA_ERROR_INVALID_VALUE;
    copied.push_back({copy->dstDevice, copy->srcDevice, copy->WidthInBytes * copy->Height});
    return CUDA_SUCCESS;
  };
  constexpr int64_t kStride = int64_t{3} << 30;
  copied.clear();
  ORIEL_EXPECT_OK(CopyRows(driver, 1000, 8, 2000, kStride, 8, 3, nullptr));
  ASSERT_EQ(copied.size(), 3u);
  EXPECT_EQ(copied[2].target, 1016u);
  EXPECT_EQ(copied[2].source, 2000u + 2 * kStride);
  EXPECT_EQ(copied[2].bytes, 8u);
  ORIEL_EXPECT_OK(CopyRows(driver, 1000, 8, 2000, 16, 8, 3, nullptr));
  ORIEL_EXPECT_OK(CopyRows(driver, 1000, kStride, 2000, 8, 8, 1, nullptr));
  ASSERT_EQ(copied.size(), 5u);
  EXPECT_EQ(copied[3].bytes, 24u);
}

struct Handle {
  explicit Handle(int* live) : live(live) { ++*live; }
  ~Handle() { --*live; }
  int* live;
};
int live_handles = 0;

// A library's handle is made once, and goes with the device.
TEST(Device, OwnsWhatIsAttached) {
  const Driver& driver = EmulatedDriver();
  ORIEL_ASSERT_OK_AND_ASSIGN(std::unique_ptr<Device> device, Device::Open(driver, 0));
  const auto make = +[](Device&) -> absl::StatusOr<std::unique_ptr<Handle>> {
    return std::make_unique<Handle>(&live_handles);
  };
  ORIEL_ASSERT_OK_AND_ASSIGN(const Handle* first, device->Attached<Handle>(make));
  ORIEL_ASSERT_OK_AND_ASSIGN(const Handle* second, device->Attached<Handle>(make));
  EXPECT_EQ(first, second);
  EXPECT_EQ(live_handles, 1);
  device = nullptr;
  EXPECT_EQ(live_handles, 0);
}

// A kernel that writes the fault word, as ReportFault does.
absl::Status RunReport(const EmulatedLaunch&, void** args) {
  auto* fault = *static_cast<Fault**>(args[0]);
  *fault = {kIndexOutOfRange, *static_cast<int32_t*>(args[1]), 9, 4, 2};
  return absl::OkStatus();
}
const EmulatedKernelRegistrar report({"test_report", 32, {8, 4}, &RunReport});

TEST(Device, TakesAFaultOnce) {
  const Driver& driver = EmulatedDriver();
  ORIEL_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Device> device, Device::Open(driver, 0));
  ORIEL_ASSERT_OK_AND_ASSIGN(const Function kernel, device->Find("test_report"));
  device->NextLaunch("another");
  const int32_t launch = device->NextLaunch("index {value} at {position} is not in [0, {limit})");
  ORIEL_ASSERT_OK_AND_ASSIGN(Fault fault, device->TakeFault(nullptr));
  EXPECT_EQ(fault.kind, 0);
  ORIEL_EXPECT_OK(device->FaultStatus(fault));
  ORIEL_ASSERT_OK(kernel.Launch({}, {}, nullptr, device->fault(), launch));
  ORIEL_ASSERT_OK_AND_ASSIGN(fault, device->TakeFault(nullptr));
  EXPECT_EQ(fault.launch, launch);
  EXPECT_THAT(device->FaultStatus(fault),
              StatusIs(absl::StatusCode::kInvalidArgument, "index 9 at 2 is not in [0, 4)"));
  ORIEL_ASSERT_OK_AND_ASSIGN(fault, device->TakeFault(nullptr));
  EXPECT_EQ(fault.kind, 0);
}

}  // namespace
}  // namespace oriel::kernels::cuda
