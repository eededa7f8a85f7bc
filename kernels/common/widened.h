// Launches with f16 and bf16 tensors for kernels that are written for f32.
//
// Tensors are widened to f32 in scratch memory before the kernel runs; results are rounded from
// there, to nearest, ties to even. Everything is read before anything is rounded, so that a result
// may be the buffer of an operand wherever the kernel allows it. A kernel that takes bf16 itself
// for its large tensors need not do so for its small ones: as few as it takes are widened.
#ifndef ORIEL_KERNELS_COMMON_WIDENED_H_
#define ORIEL_KERNELS_COMMON_WIDENED_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// Elements of the largest tensor that is widened before larger ones are. Tests change it.
inline int64_t small_tensor = 64 * 1024;

// Whether an operand or result is f16 or bf16.
bool HasNarrowFloats(const KernelSpec& spec);

// Bytes of scratch memory, of the thread that runs it, in which a launch that the registry prepared
// keeps widened tensors; 0 if its kernel takes them all.
int64_t WidenedBytes(const KernelFn& launch);

// A launch in which narrow tensors are f32, in scratch memory.
struct WidenedPlan {
  struct Copy {
    size_t index;  // among operands or results
    DType dtype;   // what it is
    int64_t count;
    int64_t offset;  // bytes from the scratch memory's start
  };
  KernelSpec wide;
  std::vector<Copy> operands, results;
  int64_t bytes = 0;
};
// In the order in which they are to be tried: of small tensors, then of results too, then of all.
std::vector<WidenedPlan> WidenedPlans(const KernelSpec& spec);

// A launch of `spec` by what `prepare` gives for the first of WidenedPlans that it takes. The
// status of the last, if it takes none.
absl::StatusOr<KernelFn> PrepareWidened(
    const KernelSpec& spec,
    const std::function<absl::StatusOr<KernelFn>(const KernelSpec&)>& prepare);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_WIDENED_H_
