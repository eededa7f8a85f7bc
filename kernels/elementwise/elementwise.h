// Elementwise kernels: every op of ir/oriel/elementwise.td.
//
// Dense row-major buffers. Each result element is assigned, computed in its own
// type, and depends on one element of each operand only; binary kernels and
// `select` broadcast as NumPy does (broadcast.h). A result may be the same
// buffer as an operand of the same type and shape.
//
// Floats are f32, f64 and bf16, which is computed in f32 and rounded; add .. mod, comparisons and
// abs, neg, relu, sign also take i64 and i32; and, or, xor, not, equal take bool. Integer sums,
// differences and products wrap. `div` and `mod` of integers by zero are InvalidArgument. max and
// min give NaN if an operand is NaN. `cast` takes any pair of types. A float outside an integer's
// range saturates, NaN gives 0; narrowing to f16 and bf16 rounds to nearest, ties to even.
#ifndef ORIEL_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
#define ORIEL_KERNELS_ELEMENTWISE_ELEMENTWISE_H_

#include "kernels/common/bfloat16.h"
#include "kernels/common/checks.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// Launch of result[i] = op(operand[i]) on elements of S.
template <typename Op, typename S>
absl::StatusOr<KernelFn> MakeUnary(const KernelSpec& spec) {
  using T = Compute<S>;
  const int64_t count = spec.results[0].num_elements();
  const int threads = spec.num_threads;
  return KernelFn([count, threads](const KernelArgs& args) {
    const S* x = args.operand<S>(0);
    S* y = args.result<S>(0);
    ParallelForElements(threads, count, 4, [x, y](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) Assign(y + i, Op::Apply(static_cast<T>(x[i])));
    });
    return absl::OkStatus();
  });
}

// One piece of result[i] = op(lhs[i], rhs[i]) where each operand is contiguous or constant.
template <typename Op, typename S, typename R>
void BinaryPiece(const S* a, bool a_varies, const S* b, bool b_varies, R* y, int64_t count) {
  using T = Compute<S>;
  if (a_varies && b_varies) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      Assign(y + i, Op::Apply(static_cast<T>(a[i]), static_cast<T>(b[i])));
    }
  } else if (a_varies) {
    const T right = b[0];
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) Assign(y + i, Op::Apply(static_cast<T>(a[i]), right));
  } else if (b_varies) {
    const T left = a[0];
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) Assign(y + i, Op::Apply(left, static_cast<T>(b[i])));
  } else {
    const R value = Op::Apply(static_cast<T>(a[0]), static_cast<T>(b[0]));
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) y[i] = value;
  }
}

// Launch of result = op(lhs, rhs) with broadcast, on elements of S to those of R.
template <typename Op, typename S, typename R>
absl::StatusOr<KernelFn> MakeBinary(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const BroadcastPlan plan,
                         BroadcastPlan::Make(spec, {spec.operands[0].shape, spec.operands[1].shape},
                                             spec.results[0].shape));
  const int threads = spec.num_threads;
  return KernelFn([plan, threads](const KernelArgs& args) {
    const S* a = args.operand<S>(0);
    const S* b = args.operand<S>(1);
    R* y = args.result<R>(0);
    ForEachPiece(plan, threads,
                 [&](const BroadcastPlan::Offsets& offsets, int64_t out, int64_t count) {
                   BinaryPiece<Op>(a + offsets[0], plan.varies[0], b + offsets[1], plan.varies[1],
                                   y + out, count);
                 });
    return absl::OkStatus();
  });
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_ELEMENTWISE_ELEMENTWISE_H_
