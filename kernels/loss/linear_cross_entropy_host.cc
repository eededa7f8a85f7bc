// linear_cross_entropy and its family on the host; see linear_cross_entropy.h.
#include <memory>
#include <utility>

#include "kernels/common/checks.h"
#include "kernels/common/scratch.h"
#include "kernels/loss/cross_entropy.h"
#include "kernels/loss/linear_cross_entropy.h"

namespace oriel::kernels {
namespace {

template <typename Gemm>
absl::StatusOr<LossParts::Product> ProductBy(const GemmShape& shape, int num_threads) {
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<Gemm> gemm, Gemm::Create(shape, num_threads));
  return LossParts::Product([gemm](void*, const void* a, const void* b, void* c) {
    return gemm->Run(a, b, /*bias=*/nullptr, c);
  });
}

class HostParts : public LossParts {
 public:
  absl::StatusOr<KernelFn> Prepare(const KernelSpec& spec) override {
    return KernelRegistry::Host().Prepare(spec);
  }

  absl::StatusOr<Product> PrepareProduct(const GemmShape& shape, int num_threads) override {
    if (shape.factors == DType::kF64) return ProductBy<LoopGemm<double>>(shape, num_threads);
    absl::StatusOr<Product> product = ProductBy<OneDnnGemm>(shape, num_threads);
    if (product.ok() || shape.factors != DType::kF32) return product;
    return ProductBy<LoopGemm<float>>(shape, num_threads);
  }

  absl::StatusOr<KernelFn> PrepareLabelCheck(const KernelSpec& spec, const TensorSpec& labels,
                                             int64_t classes, int64_t ignore_index) override {
    const int64_t rows = labels.num_elements();
    const bool wide = labels.dtype == DType::kI64;
    return KernelFn([=, kernel = spec.kernel](const KernelArgs& args) {
      return wide ? CheckLabels(kernel, args.operand<int64_t>(0), rows, classes, ignore_index)
                  : CheckLabels(kernel, args.operand<int32_t>(0), rows, classes, ignore_index);
    });
  }

  absl::StatusOr<std::function<char*()>> Reserve(int64_t bytes) override {
    return std::function<char*()>([bytes] {
      return static_cast<char*>(
          ThreadScratch<ScratchUse::kAroundProducts>(static_cast<size_t>(bytes)));
    });
  }
};

template <absl::StatusOr<KernelFn> (*kMake)(const KernelSpec&, LossParts&, int64_t)>
absl::StatusOr<KernelFn> OnHost(const KernelSpec& spec) {
  HostParts parts;
  return kMake(spec, parts, kHostLogits);
}

ORIEL_REGISTER_HOST_KERNEL("linear_cross_entropy", 0, OnHost<MakeLinearCrossEntropy>);
ORIEL_REGISTER_HOST_KERNEL("linear_logsumexp", 0, OnHost<MakeLinearLogsumexp>);
ORIEL_REGISTER_HOST_KERNEL("linear_token_losses", 0, OnHost<MakeLinearTokenLosses>);
ORIEL_REGISTER_HOST_KERNEL("linear_cross_entropy_grad", 0, OnHost<MakeLinearCrossEntropyGrad>);

}  // namespace
}  // namespace oriel::kernels
