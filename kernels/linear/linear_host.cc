#include "kernels/common/checks.h"
#include "kernels/linear/linear.h"

namespace oriel::kernels {
namespace {

// Which operand of the launch is `a` and which `b`.
template <typename Gemm>
absl::StatusOr<KernelFn> MakeGemmLaunch(const KernelSpec& spec, const GemmShape& shape, int a = 0,
                                        int b = 1) {
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<Gemm> gemm, Gemm::Create(shape, spec.num_threads));
  const bool bias = shape.bias;
  return KernelFn([gemm, a, b, bias](const KernelArgs& args) {
    return gemm->Run(args.operands[a], args.operands[b], bias ? args.operands[2] : nullptr,
                     args.results[0]);
  });
}

template <typename Gemm>
struct Products {
  static absl::StatusOr<KernelFn> Matmul(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const GemmShape shape, MatmulShape(spec));
    return MakeGemmLaunch<Gemm>(spec, shape);
  }
  static absl::StatusOr<KernelFn> Linear(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const GemmShape shape, LinearShape(spec));
    return MakeGemmLaunch<Gemm>(spec, shape);
  }
  static absl::StatusOr<KernelFn> LinearWeightGrad(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const GemmShape shape, LinearWeightGradShape(spec));
    ORIEL_ASSIGN_OR_RETURN(const bool transposed, FlagOr(spec, "transpose_weight", false));
    return MakeGemmLaunch<Gemm>(spec, shape, transposed ? 1 : 0, transposed ? 0 : 1);
  }
};

using Fast = Products<OneDnnGemm>;
using Single = Products<LoopGemm<float>>;
using Double = Products<LoopGemm<double>>;

ORIEL_REGISTER_HOST_KERNEL("matmul", 10, ByOneDnn<Fast::Matmul>);
ORIEL_REGISTER_HOST_KERNEL("linear", 10, ByOneDnn<Fast::Linear>);
ORIEL_REGISTER_HOST_KERNEL("linear_weight_grad", 10, ByOneDnn<Fast::LinearWeightGrad>);
constexpr KernelFactory kMatmulLoops = ByLoops<Single::Matmul, Double::Matmul>;
constexpr KernelFactory kLinearLoops = ByLoops<Single::Linear, Double::Linear>;
constexpr KernelFactory kWeightGradLoops =
    ByLoops<Single::LinearWeightGrad, Double::LinearWeightGrad>;
ORIEL_REGISTER_HOST_KERNEL("matmul", 0, kMatmulLoops);
ORIEL_REGISTER_HOST_KERNEL("linear", 0, kLinearLoops);
ORIEL_REGISTER_HOST_KERNEL("linear_weight_grad", 0, kWeightGradLoops);

}  // namespace
}  // namespace oriel::kernels
