// Prepared batched matrix products, the work of linear/ and conv/.
//
// For each of `batch` dense row-major matrices, one behind the other:
//
//   c[m, n] = Σ_k a[m, k] b[k, n] + bias[n]        (+ what c held, if `accumulate`)
//
// With `transpose_a`, `a` is stored as [k, m]; with `transpose_b`, `b` as [n, k].
// Sums are in the operands' type, those of bf16 in f32 and rounded once. The product is cut into
// panels by its shape
// alone, each computed by one thread: the bits don't depend on the thread count
// (with several threads, oneDNN itself would cut k differently).
#ifndef ORIEL_KERNELS_LINEAR_GEMM_H_
#define ORIEL_KERNELS_LINEAR_GEMM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/common/checks.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

struct GemmShape {
  int64_t batch = 1;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;
  bool accumulate = false;
  // Element types: of a and b, of the bias, of c. For factors of bf16 the others are bf16 or f32.
  DType factors = DType::kF32;
  DType added = DType::kF32;
  DType result = DType::kF32;
};

// A product of f32 or bf16 by oneDNN. Not thread-safe: it holds the operands' addresses.
class OneDnnGemm {
 public:
  // Unimplemented, with oneDNN's reason, where it has no implementation. A product of bf16 is
  // accumulated in f32 only.
  static absl::StatusOr<std::shared_ptr<OneDnnGemm>> Create(const GemmShape& shape,
                                                            int num_threads);
  virtual ~OneDnnGemm() = default;
  // `bias` is ignored unless the shape has one.
  virtual absl::Status Run(const void* a, const void* b, const void* bias, void* c) = 0;
};

// The same by the loops of small_gemm.h, for f32 and f64: one type for all.
template <typename T>
class LoopGemm {
 public:
  static absl::StatusOr<std::shared_ptr<LoopGemm>> Create(const GemmShape& shape, int num_threads);
  absl::Status Run(const void* a, const void* b, const void* bias, void* c);

 private:
  GemmShape shape_;
  int num_threads_ = 1;
};

// True if any extent is 0: nothing to sum, or nothing to write.
inline bool IsEmpty(const GemmShape& shape) {
  return shape.batch == 0 || shape.m == 0 || shape.n == 0 || shape.k == 0;
}

// The type that a bias of a product of `factors` has, or a result: theirs, or f32 where `given` is
// f32 and they are bf16.
inline DType SumType(DType factors, DType given) {
  return factors == DType::kBF16 && given == DType::kF32 ? given : factors;
}

// Factories of a kernel that is made of products, for the registry: `kMake` and `kMakeBF16` by
// OneDnnGemm, which is preferred, and `kSingle`, `kDouble` by LoopGemm of either type.
template <KernelFactory kMake, KernelFactory kMakeBF16 = kMake>
absl::StatusOr<KernelFn> ByOneDnn(const KernelSpec& spec) {
  if (!spec.operands.empty() && spec.operands[0].dtype == DType::kF32) return kMake(spec);
  if (!spec.operands.empty() && spec.operands[0].dtype == DType::kBF16) return kMakeBF16(spec);
  return Unsupported(spec, "oneDNN: takes f32 and bf16");
}

template <KernelFactory kSingle, KernelFactory kDouble>
absl::StatusOr<KernelFn> ByLoops(const KernelSpec& spec) {
  if (!spec.operands.empty() && spec.operands[0].dtype == DType::kF32) return kSingle(spec);
  if (!spec.operands.empty() && spec.operands[0].dtype == DType::kF64) return kDouble(spec);
  return Unsupported(spec, "loops: take f32 and f64");
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_LINEAR_GEMM_H_
