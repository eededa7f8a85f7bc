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

// A tensor of the launch that has an f32 copy in scratch memory.
struct Copy {
  size_t index;  // among operands or results
  DType dtype;
  int64_t count;
  size_t offset;  // bytes from the scratch memory's start
};

class WidenedLaunch {
 public:
  // Takes narrow tensors of `spec` that `widens(tensor, is_result)` names.
  template <typename F>
  WidenedLaunch(const KernelSpec& spec, const F& widens) : wide_(spec) {
    for (size_t i = 0; i < spec.operands.size(); ++i) {
      if (IsNarrow(spec.operands[i]) && widens(spec.operands[i], false)) {
        operands_.push_back(Add(i, &wide_.operands[i]));
      }
    }
    for (size_t i = 0; i < spec.results.size(); ++i) {
      if (IsNarrow(spec.results[i]) && widens(spec.results[i], true)) {
        results_.push_back(Add(i, &wide_.results[i]));
      }
    }
  }

  const KernelSpec& wide() const { return wide_; }
  int64_t bytes() const { return static_cast<int64_t>(bytes_); }
  size_t copies() const { return operands_.size() + results_.size(); }
  void set_kernel(KernelFn kernel) { kernel_ = std::move(kernel); }

  absl::Status operator()(const KernelArgs& args) const {
    absl::InlinedVector<const void*, 8> operands(args.operands,
                                                 args.operands + wide_.operands.size());
    absl::InlinedVector<void*, 4> results(args.results, args.results + wide_.results.size());
    char* scratch = static_cast<char*>(ThreadScratch<ScratchUse::kWidened>(bytes_));
    for (const Copy& copy : operands_) {
      float* wide = reinterpret_cast<float*>(scratch + copy.offset);
      Widen(copy, args.operands[copy.index], wide);
      operands[copy.index] = wide;
    }
    for (const Copy& copy : results_) results[copy.index] = scratch + copy.offset;
    absl::Status status = kernel_({operands.data(), results.data()});
    if (!status.ok()) return status;
    for (const Copy& copy : results_) {
      Round(copy, reinterpret_cast<const float*>(scratch + copy.offset), args.results[copy.index]);
    }
    return status;
  }

 private:
  Copy Add(size_t index, TensorSpec* tensor) {
    const Copy copy{index, tensor->dtype, tensor->num_elements(), bytes_};
    tensor->dtype = DType::kF32;
    bytes_ += (static_cast<size_t>(tensor->bytes()) + 63) / 64 * 64;
    return copy;
  }

  void Widen(const Copy& copy, const void* narrow, float* wide) const {
    ParallelForElements(wide_.num_threads, copy.count, 1, [=](int64_t begin, int64_t end) {
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
    ParallelForElements(wide_.num_threads, copy.count, 1, [=](int64_t begin, int64_t end) {
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

  KernelSpec wide_;
  std::vector<Copy> operands_, results_;
  size_t bytes_ = 0;
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

absl::StatusOr<KernelFn> PrepareWidened(
    const KernelSpec& spec,
    const std::function<absl::StatusOr<KernelFn>(const KernelSpec&)>& prepare) {
  const auto is_small = [](const TensorSpec& tensor) {
    return tensor.num_elements() <= small_tensor;
  };
  WidenedLaunch choices[] = {
      {spec, [&](const TensorSpec& tensor, bool) { return is_small(tensor); }},
      {spec, [&](const TensorSpec& tensor, bool result) { return result || is_small(tensor); }},
      {spec, [](const TensorSpec&, bool) { return true; }}};
  absl::StatusOr<KernelFn> kernel = absl::UnimplementedError("nothing to widen");
  size_t tried = 0;
  for (WidenedLaunch& choice : choices) {
    if (choice.copies() == tried) continue;  // the same tensors as before
    tried = choice.copies();
    kernel = prepare(choice.wide());
    if (!kernel.ok()) continue;
    choice.set_kernel(*std::move(kernel));
    return KernelFn(std::move(choice));
  }
  return kernel;
}

}  // namespace oriel::kernels
