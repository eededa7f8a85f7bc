#include <cstring>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/linear/linear.h"

namespace oriel::kernels {
namespace {

// Puts what is added where the sum will be.
void Copy(const void* from, void* to, int64_t bytes, int num_threads) {
  if (from == to) return;
  constexpr int64_t kPiece = 1 << 16;
  ParallelFor(num_threads, (bytes + kPiece - 1) / kPiece, kPiece / 8,
              [=](int64_t begin, int64_t end) {
                const int64_t first = begin * kPiece, last = std::min(end * kPiece, bytes);
                std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
                            static_cast<size_t>(last - first));
              });
}

// Which operand of the launch is `a` and which `b`.
template <typename Gemm>
absl::StatusOr<KernelFn> MakeGemmLaunch(const KernelSpec& spec, const GemmShape& shape, int a = 0,
                                        int b = 1) {
  ORIEL_ASSIGN_OR_RETURN(const std::shared_ptr<Gemm> gemm, Gemm::Create(shape, spec.num_threads));
  const bool bias = shape.bias, adds = shape.accumulate;
  const size_t addend = spec.operands.size() - 1;
  const int64_t bytes = spec.results[0].bytes();
  return KernelFn([=, threads = spec.num_threads](const KernelArgs& args) {
    if (adds) Copy(args.operands[addend], args.results[0], bytes, threads);
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
  static absl::StatusOr<KernelFn> LinearAdd(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const GemmShape shape, LinearAddShape(spec));
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
ORIEL_REGISTER_HOST_KERNEL("linear_add", 10, ByOneDnn<Fast::LinearAdd>);
ORIEL_REGISTER_HOST_KERNEL("linear_weight_grad", 10, ByOneDnn<Fast::LinearWeightGrad>);
constexpr KernelFactory kMatmulLoops = ByLoops<Single::Matmul, Double::Matmul>;
constexpr KernelFactory kLinearLoops = ByLoops<Single::Linear, Double::Linear>;
constexpr KernelFactory kLinearAddLoops = ByLoops<Single::LinearAdd, Double::LinearAdd>;
constexpr KernelFactory kWeightGradLoops =
    ByLoops<Single::LinearWeightGrad, Double::LinearWeightGrad>;
ORIEL_REGISTER_HOST_KERNEL("matmul", 0, kMatmulLoops);
ORIEL_REGISTER_HOST_KERNEL("linear", 0, kLinearLoops);
ORIEL_REGISTER_HOST_KERNEL("linear_add", 0, kLinearAddLoops);
ORIEL_REGISTER_HOST_KERNEL("linear_weight_grad", 0, kWeightGradLoops);

}  // namespace
}  // namespace oriel::kernels
