#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "kernels/multimodal/multimodal.h"

namespace oriel::kernels {
namespace {

template <typename T>
absl::StatusOr<KernelFn> MakeScatterSized(const KernelSpec& spec) {
  const int64_t count = spec.operands[0].num_elements();
  const int64_t available = spec.operands[2].num_elements();
  return KernelFn([count, available](const KernelArgs& args) {
    const T* input = args.operand<T>(0);
    const uint8_t* mask = args.operand<uint8_t>(1);
    const T* source = args.operand<T>(2);
    T* result = args.result<T>(0);
    int64_t selected = 0;
    for (int64_t i = 0; i < count; ++i) selected += mask[i] != 0;
    if (selected > available) {
      return absl::InvalidArgumentError(absl::StrCat("masked_scatter: the mask selects ", selected,
                                                     " elements, but the source has ", available));
    }
    for (int64_t i = 0; i < count; ++i) result[i] = mask[i] ? *source++ : input[i];
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeMaskedScatter(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckMaskedScatter(spec));
  switch (runtime::DTypeBytes(spec.operands[0].dtype)) {
    case 8:
      return MakeScatterSized<uint64_t>(spec);
    case 4:
      return MakeScatterSized<uint32_t>(spec);
    case 2:
      return MakeScatterSized<uint16_t>(spec);
    default:
      return MakeScatterSized<uint8_t>(spec);
  }
}

struct MaskedScatterGrad {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    const TensorSpec& cotangent = spec.operands[0];
    const int64_t count = cotangent.num_elements();
    const int64_t available = spec.results[1].num_elements();
    return KernelFn([count, available](const KernelArgs& args) {
      const T* dy = args.operand<T>(0);
      const uint8_t* mask = args.operand<uint8_t>(1);
      T* input_grad = args.result<T>(0);
      T* source_grad = args.result<T>(1);
      int64_t taken = 0;
      for (int64_t i = 0; i < count; ++i) {
        input_grad[i] = mask[i] ? T(0) : dy[i];
        // A mask that selects too much was refused by masked_scatter.
        if (mask[i] && taken < available) source_grad[taken++] = dy[i];
      }
      std::fill(source_grad + taken, source_grad + available, T(0));
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeMaskedScatterGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckMaskedScatterGrad(spec));
  return DispatchStored<MaskedScatterGrad>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("masked_scatter", 0, MakeMaskedScatter);
ORIEL_REGISTER_HOST_KERNEL("masked_scatter_grad", 0, MakeMaskedScatterGrad);

}  // namespace
}  // namespace oriel::kernels
