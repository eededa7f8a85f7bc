#include "kernels/common/widened.h"

#include <utility>

#include "absl/container/inlined_vector.h"
#include "kernels/common/bfloat16.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "runtime/base/float16.h"

namespace oriel::kernels {
namespace {

bool IsNarrow(const TensorSpec& tensor) {
  return tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
}

using Copy = WidenedPlan::Copy;

Copy AddCopy(size_t index, TensorSpec* tensor, int64_t* bytes) {
  const Copy copy{index, tensor->dtype, tensor->num_elements(), *bytes};
  tensor->dtype = DType::kF32;
  *bytes += (tensor->bytes() + 63) / 64 * 64;
  return copy;
}

// Takes narrow tensors of `spec` that `widens(tensor, is_result)` names.
template <typename F>
WidenedPlan PlanOf(const KernelSpec& spec, const F& widens) {
  WidenedPlan plan{spec, {}, {}};
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    if (IsNarrow(spec.operands[i]) && widens(spec.operands[i], false)) {
      plan.operands.push_back(AddCopy(i, &plan.wide.operands[i], &plan.bytes));
    }
  }
  for (size_t i = 0; i < spec.results.size(); ++i) {
    if (IsNarrow(spec.results[i]) && widens(spec.results[i], true)) {
      plan.results.push_back(AddCopy(i, &plan.wide.results[i], &plan.bytes));
    }
  }
  return plan;
}

class WidenedLaunch {
 public:
  WidenedLaunch(WidenedPlan plan, KernelFn kernel)
      : plan_(std::move(plan)), kernel_(std::move(kernel)) {}

  int64_t bytes() const { return plan_.bytes; }

  absl::Status operator()(const KernelArgs& args) const {
    absl::InlinedVector<const void*, 8> operands(args.operands,
                                                 args.operands + plan_.wide.operands.size());
    absl::InlinedVector<void*, 4> results(args.results, args.results + plan_.wide.results.size());
    char* scratch = static_cast<char*>(ThreadScratch<ScratchUse::kWidened>(plan_.bytes));
    for (const Copy& copy : plan_.operands) {
      float* wide = reinterpret_cast<float*>(scratch + copy.offset);
      Widen(copy, args.operands[copy.index], wide);
      operands[copy.index] = wide;
    }
    for (const Copy& copy : plan_.results) results[copy.index] = scratch + copy.offset;
    absl::Status status = kernel_({operands.data(), results.data()});
    if (!status.ok()) return status;
    for (const Copy& copy : plan_.results) {
      Round(copy, reinterpret_cast<const float*>(scratch + copy.offset), args.results[copy.index]);
    }
    return status;
  }

 private:
  void Widen(const Copy& copy, const void* narrow, float* wide) const {
    ParallelForElements(plan_.wide.num_threads, copy.count, 1, [=](int64_t begin, int64_t end) {
      const auto* from = static_cast<const uint16_t*>(narrow);
      if (copy.dtype == DType::kBF16) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) wide[i] = runtime::BFloat16ToFloat(from[i]);
      } else {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) wide[i] = runtime::HalfToFloat(from[i]);
      }
    });
  }

  void Round(const Copy& copy, const float* wide, void* narrow) const {
    ParallelForElements(plan_.wide.num_threads, copy.count, 1, [=](int64_t begin, int64_t end) {
      auto* to = static_cast<uint16_t*>(narrow);
      if (copy.dtype == DType::kBF16) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) to[i] = runtime::FloatToBFloat16(wide[i]);
      } else {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) to[i] = runtime::FloatToHalf(wide[i]);
      }
    });
  }

  WidenedPlan plan_;
  KernelFn kernel_;
};

}  // namespace

bool HasNarrowFloats(const KernelSpec& spec) {
  for (const TensorSpec& tensor : spec.operands) {
    if (IsNarrow(tensor)) return true;
  }
  for (const TensorSpec& tensor : spec.results) {
    if (IsNarrow(tensor)) return true;
  }
  return false;
}

int64_t WidenedBytes(const KernelFn& launch) {
  const WidenedLaunch* widened = launch.target<WidenedLaunch>();
  return widened == nullptr ? 0 : widened->bytes();
}

std::vector<WidenedPlan> WidenedPlans(const KernelSpec& spec) {
  const auto is_small = [](const TensorSpec& tensor) {
    return tensor.num_elements() <= small_tensor;
  };
  WidenedPlan choices[] = {
      PlanOf(spec, [&](const TensorSpec& tensor, bool) { return is_small(tensor); }),
      PlanOf(spec,
             [&](const TensorSpec& tensor, bool result) { return result || is_small(tensor); }),
      PlanOf(spec, [](const TensorSpec&, bool) { return true; })};
  std::vector<WidenedPlan> plans;
  size_t tried = 0;
  for (WidenedPlan& choice : choices) {
    const size_t copies = choice.operands.size() + choice.results.size();
    if (copies == tried) continue;  // the same tensors as before
    tried = copies;
    plans.push_back(std::move(choice));
  }
  return plans;
}

absl::StatusOr<KernelFn> PrepareWidened(
    const KernelSpec& spec,
    const std::function<absl::StatusOr<KernelFn>(const KernelSpec&)>& prepare) {
  absl::StatusOr<KernelFn> kernel = absl::UnimplementedError("nothing to widen");
  for (WidenedPlan& plan : WidenedPlans(spec)) {
    kernel = prepare(plan.wide);
    if (kernel.ok()) return KernelFn(WidenedLaunch(std::move(plan), *std::move(kernel)));
  }
  return kernel;
}

}  // namespace oriel::kernels
