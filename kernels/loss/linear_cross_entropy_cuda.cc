// linear_cross_entropy and its family on a device; see linear_cross_entropy.h.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/factory.h"
#include "kernels/cuda/piece.h"
#include "kernels/cuda/registry.h"
#include "kernels/linear/gemm_cuda.h"
#include "kernels/loss/linear_cross_entropy.h"
#include "kernels/loss/loss_args.h"
#include "runtime/base/status.h"

namespace oriel::kernels::cuda {
namespace {

// Parts have their scratch memory at its beginning, in turn; what lies between parts is behind it.
class DeviceParts : public LossParts {
 public:
  explicit DeviceParts(Device& device) : device_(device) { device_.TakeScratchAsked(); }

  absl::StatusOr<KernelFn> Prepare(const KernelSpec& spec) override {
    ORIEL_ASSIGN_OR_RETURN(KernelFn launch, Registry::Get().Prepare(spec, device_));
    asked_ = std::max(asked_, device_.TakeScratchAsked());
    return launch;
  }

  absl::StatusOr<Product> PrepareProduct(const GemmShape& shape, int) override {
    ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<DeviceGemm> gemm,
                           MakeDeviceGemm(DeviceGemmShape(shape), device_));
    asked_ = std::max(asked_, gemm->workspace_bytes());
    return Product([gemm, &device = device_](void* stream, const void* a, const void* b, void* c) {
      return gemm->Run(static_cast<CUstream>(stream), a, b, /*bias=*/nullptr, c, device.scratch());
    });
  }

  absl::StatusOr<KernelFn> PrepareLabelCheck(const KernelSpec& spec, const TensorSpec& labels,
                                             int64_t classes, int64_t ignore_index) override {
    ORIEL_ASSIGN_OR_RETURN(const Function function,
                           FindTyped(spec, device_, "oriel_check_labels", {labels.dtype}));
    LossArgs check = {};
    check.rows = labels.num_elements();
    check.ignore_index = ignore_index;
    check.classes.whole = classes;
    check.labels = FaultsOf(
        device_, absl::StrCat(spec.kernel, ": label {value} of row {position} is outside [0, ",
                              classes, ") and is not ignore_index ", ignore_index));
    const Grid blocks = BlocksFor(device_, check.rows, 256);
    return KernelFn([=](const KernelArgs& args) {
      if (check.rows == 0) return absl::OkStatus();
      return function.Launch(blocks, {256}, StreamOf(args), check, args.operands[0]);
    });
  }

  absl::StatusOr<std::function<char*()>> Reserve(int64_t bytes) override {
    constexpr int64_t kAlignment = 256;
    const int64_t behind = (asked_ + kAlignment - 1) / kAlignment * kAlignment;
    ORIEL_RETURN_IF_ERROR(device_.AddScratch(behind + bytes));
    return std::function<char*()>([behind, &device = device_] {
      return reinterpret_cast<char*>(device.scratch() + static_cast<CUdeviceptr>(behind));
    });
  }

 private:
  Device& device_;
  int64_t asked_ = 0;
};

template <absl::StatusOr<KernelFn> (*kMake)(const KernelSpec&, LossParts&, int64_t)>
absl::StatusOr<KernelFn> OnDevice(const KernelSpec& spec, Device& device) {
  DeviceParts parts(device);
  return kMake(spec, parts, kDeviceLogits);
}

ORIEL_REGISTER_CUDA_KERNEL("linear_cross_entropy", 0, OnDevice<MakeLinearCrossEntropy>);
ORIEL_REGISTER_CUDA_KERNEL("linear_logsumexp", 0, OnDevice<MakeLinearLogsumexp>);
ORIEL_REGISTER_CUDA_KERNEL("linear_token_losses", 0, OnDevice<MakeLinearTokenLosses>);
ORIEL_REGISTER_CUDA_KERNEL("linear_cross_entropy_grad", 0, OnDevice<MakeLinearCrossEntropyGrad>);

}  // namespace
}  // namespace oriel::kernels::cuda
