// TryKernel for CUDA kernels: on the emulator, or on a GPU with ORIEL_CUDA_TEST_DEVICE=gpu.
//
// Each buffer lies between guard bytes, at an address that is aligned to 64 bytes and no more, as
// in a plan's arena; scratch memory is poisoned. A launch is run on two devices, on the emulator in
// two orders of blocks and threads, and on the second one as a graph that is captured of it: the
// two must agree in every bit.
#include "kernels/testing.h"

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/emulator/block.h"
#include "kernels/cuda/emulator/emulated_driver.h"
#include "kernels/cuda/registry.h"
#include "runtime/base/status.h"

namespace oriel::kernels::testing {

// Sums in f32 over 3000 rows, whose terms cancel.
const double kRowSumSlack = 8;

namespace {

using cuda::Device;
using cuda::Driver;

constexpr size_t kGuard = 320;  // 64 more than a multiple of an allocation's alignment
constexpr unsigned char kGuardByte = 0xff;

// On the emulator a device for each run: an error of a kernel stays with its device. Of a GPU one
// for all of them, because opening it takes a good part of a second.
absl::StatusOr<std::shared_ptr<Device>> OpenDevice() {
  const char* device = std::getenv("ORIEL_CUDA_TEST_DEVICE");
  if (device == nullptr || std::string(device) == "emulator") {
    return Device::Open(cuda::EmulatedDriver(), 0);
  }
  if (std::string(device) != "gpu") {
    return absl::InvalidArgumentError("ORIEL_CUDA_TEST_DEVICE is neither 'emulator' nor 'gpu'");
  }
  // Not destroyed: the driver may be gone by then.
  static const auto* const gpu =
      new absl::StatusOr<std::shared_ptr<Device>>([]() -> absl::StatusOr<std::shared_ptr<Device>> {
        ORIEL_ASSIGN_OR_RETURN(const Driver* driver, cuda::SystemDriver());
        return Device::Open(*driver, 0);
      }());
  return *gpu;
}

// Memory of the device for one operand or result.
class Buffer {
 public:
  Buffer(const Driver& driver, size_t bytes) : driver_(driver), bytes_(bytes) {}
  ~Buffer() {
    if (memory_ != 0) driver_.cuMemFree(memory_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Guards it, and fills it with what is at `data`, or poison.
  absl::Status Init(const void* data, CUstream stream) {
    const size_t total = bytes_ + 2 * kGuard;
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemAlloc, &memory_, total));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemsetD8Async, memory_, kGuardByte, total, stream));
    if (data == nullptr || bytes_ == 0) return absl::OkStatus();
    return ORIEL_CUDA(driver_, cuMemcpyAsync, memory_ + kGuard, reinterpret_cast<CUdeviceptr>(data),
                      bytes_, stream);
  }
  // Internal, if the kernel has written beside it.
  absl::Status Read(void* data, CUstream stream) const {
    std::vector<unsigned char> all(bytes_ + 2 * kGuard);
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuMemcpyAsync,
                                     reinterpret_cast<CUdeviceptr>(all.data()), memory_, all.size(),
                                     stream));
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver_, cuStreamSynchronize, stream));
    for (size_t i = 0; i < all.size(); ++i) {
      const bool inside = i >= kGuard && i < kGuard + bytes_;
      if (!inside && all[i] != kGuardByte) {
        return absl::InternalError(absl::StrCat("byte ", static_cast<int64_t>(i - kGuard),
                                                " of a buffer of ", bytes_, " is written"));
      }
    }
    if (bytes_ > 0) std::memcpy(data, all.data() + kGuard, bytes_);
    return absl::OkStatus();
  }
  void* data() const { return reinterpret_cast<void*>(memory_ + kGuard); }

 private:
  const Driver& driver_;
  const size_t bytes_;
  CUdeviceptr memory_ = 0;
};

struct Stream {
  const Driver& driver;
  CUstream handle = nullptr;
  ~Stream() {
    if (handle != nullptr) driver.cuStreamDestroy(handle);
  }
};

// Captures what `launch` puts on the stream, and runs it `repeats` times.
template <typename Launch>
absl::Status RunAsGraph(const Driver& driver, CUstream stream, int repeats, const Launch& launch) {
  ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuStreamSynchronize, stream));
  ORIEL_RETURN_IF_ERROR(
      ORIEL_CUDA(driver, cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  const absl::Status launched = launch();
  CUgraph graph = nullptr;
  const absl::Status captured = ORIEL_CUDA(driver, cuStreamEndCapture, stream, &graph);
  ORIEL_RETURN_IF_ERROR(launched);
  ORIEL_RETURN_IF_ERROR(captured);
  CUgraphExec executable = nullptr;
  absl::Status status = ORIEL_CUDA(driver, cuGraphInstantiate, &executable, graph, 0);
  for (int repeat = 0; repeat < repeats && status.ok(); ++repeat) {
    status = ORIEL_CUDA(driver, cuGraphLaunch, executable, stream);
  }
  status.Update(ORIEL_CUDA(driver, cuStreamSynchronize, stream));
  if (executable != nullptr) driver.cuGraphExecDestroy(executable);
  driver.cuGraphDestroy(graph);
  return status;
}

absl::StatusOr<std::vector<Tensor>> RunOn(Device& device, const KernelSpec& spec,
                                          const std::vector<Tensor>& operands, int in_place,
                                          bool as_graph) {
  const Driver& driver = device.driver();
  ORIEL_RETURN_IF_ERROR(device.MakeCurrent());
  ORIEL_ASSIGN_OR_RETURN(const KernelFn function, cuda::Registry::Get().Prepare(spec, device));
  Stream stream{driver};
  ORIEL_RETURN_IF_ERROR(
      ORIEL_CUDA(driver, cuStreamCreateWithPriority, &stream.handle, CU_STREAM_NON_BLOCKING, 0));
  std::vector<std::unique_ptr<Buffer>> inputs, outputs;
  std::vector<const void*> operand_addresses;
  for (const Tensor& operand : operands) {
    inputs.push_back(std::make_unique<Buffer>(driver, operand.spec().bytes()));
    ORIEL_RETURN_IF_ERROR(inputs.back()->Init(operand.data(), stream.handle));
    operand_addresses.push_back(inputs.back()->data());
  }
  std::vector<void*> result_addresses;
  for (const TensorSpec& result : spec.results) {
    outputs.push_back(std::make_unique<Buffer>(driver, result.bytes()));
    ORIEL_RETURN_IF_ERROR(outputs.back()->Init(nullptr, stream.handle));
    result_addresses.push_back(outputs.back()->data());
  }
  if (in_place >= 0) result_addresses[0] = inputs[in_place]->data();
  if (device.scratch_bytes() > 0) {
    ORIEL_RETURN_IF_ERROR(ORIEL_CUDA(driver, cuMemsetD8Async, device.scratch(), 0xff,
                                     device.scratch_bytes(), stream.handle));
  }
  // Twice, because scratch memory must not carry anything over.
  const int repeats = in_place >= 0 ? 1 : 2;
  const auto launch = [&] {
    return function({operand_addresses.data(), result_addresses.data(), stream.handle});
  };
  if (as_graph) {
    ORIEL_RETURN_IF_ERROR(RunAsGraph(driver, stream.handle, repeats, launch));
  } else {
    for (int repeat = 0; repeat < repeats; ++repeat) ORIEL_RETURN_IF_ERROR(launch());
  }
  ORIEL_ASSIGN_OR_RETURN(const cuda::Fault fault, device.TakeFault(stream.handle));
  ORIEL_RETURN_IF_ERROR(device.FaultStatus(fault));
  for (size_t i = 0; i < operands.size(); ++i) {
    Tensor after(operands[i].spec());
    ORIEL_RETURN_IF_ERROR(inputs[i]->Read(after.data(), stream.handle));
    if (static_cast<int>(i) == in_place || operands[i].spec().bytes() == 0) continue;
    EXPECT_EQ(std::memcmp(after.data(), operands[i].data(), operands[i].spec().bytes()), 0)
        << spec.kernel << " wrote to operand " << i;
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < spec.results.size(); ++i) {
    results.emplace_back(spec.results[i]);
    const Buffer& buffer = in_place >= 0 && i == 0 ? *inputs[in_place] : *outputs[i];
    ORIEL_RETURN_IF_ERROR(buffer.Read(results.back().data(), stream.handle));
  }
  return results;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> TryKernel(const std::string& kernel,
                                              const std::vector<Tensor>& operands,
                                              const std::vector<TensorSpec>& results,
                                              const Attributes& attributes, int in_place) {
  KernelSpec spec{kernel, {}, results, attributes};
  for (const Tensor& operand : operands) spec.operands.push_back(operand.spec());
  std::vector<std::vector<Tensor>> runs;
  for (int run = 0; run < 2; ++run) {
    cuda::emulator::SetSeed(run);
    ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<Device> device, OpenDevice());
    ORIEL_ASSIGN_OR_RETURN(std::vector<Tensor> outputs,
                           RunOn(*device, spec, operands, in_place, run == 1));
    runs.push_back(std::move(outputs));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].bytes() == 0) continue;
    EXPECT_EQ(std::memcmp(runs[0][i].data(), runs[1][i].data(), results[i].bytes()), 0)
        << kernel << ": result " << i << " differs between two runs";
  }
  return std::move(runs[0]);
}

}  // namespace oriel::kernels::testing
