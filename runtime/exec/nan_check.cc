#include "runtime/exec/nan_check.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

// Of numbers with these bits of the exponent, all of them set, those with a fraction are NaN.
template <typename Bits>
std::optional<int64_t> FindAbove(const void* data, int64_t count, Bits infinity) {
  const Bits magnitude = static_cast<Bits>(~(Bits{1} << (8 * sizeof(Bits) - 1)));
  for (int64_t i = 0; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, static_cast<const char*>(data) + i * sizeof bits, sizeof bits);
    if ((bits & magnitude) > infinity) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> FindNan(DType dtype, const void* data, int64_t count) {
  switch (dtype) {
    case DType::kF32:
      return FindAbove<uint32_t>(data, count, 0x7f800000);
    case DType::kF64:
      return FindAbove<uint64_t>(data, count, 0x7ff0000000000000);
    case DType::kF16:
      return FindAbove<uint16_t>(data, count, 0x7c00);
    case DType::kBF16:
      return FindAbove<uint16_t>(data, count, 0x7f80);
    default:
      return std::nullopt;
  }
}

absl::Status NanCheck::After(const plan::Instruction& instruction, int64_t microbatch) {
  for (const int result : instruction.launch().results()) {
    ORIEL_RETURN_IF_ERROR(Check(program_.buffers(result), microbatch));
  }
  for (const int result : instruction.collective().results()) {
    ORIEL_RETURN_IF_ERROR(Check(program_.buffers(result), microbatch));
  }
  return absl::OkStatus();
}

absl::Status NanCheck::Check(const plan::Buffer& buffer, int64_t microbatch) {
  const TensorSpec spec = FromPlan(buffer.local());
  const char* data = arena_ + OffsetOf(buffer, microbatch);
  if (backend_.name() != "host") {
    copy_.resize(static_cast<size_t>(spec.bytes()));
    ORIEL_RETURN_IF_ERROR(backend_.Download(copy_.data(), data, spec.bytes()));
    data = copy_.data();
  }
  const std::optional<int64_t> found = FindNan(spec.dtype, data, spec.num_elements());
  if (!found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the result is the first with a NaN: element ",
                                                 *found, " of ", spec.ToString()));
}

}  // namespace oriel::runtime
