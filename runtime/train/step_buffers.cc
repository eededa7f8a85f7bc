#include "runtime/train/step_buffers.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/train/convert.h"

namespace oriel::runtime {

absl::StatusOr<InputBuffers> InputBuffers::Bind(const BatchLayout& layout,
                                                const Executor& executor) {
  InputBuffers buffers;
  for (size_t i = 0; i < layout.inputs.size(); ++i) {
    const BatchInput& input = layout.inputs[i];
    ORIEL_ASSIGN_OR_RETURN(std::optional<BufferView> view,
                           FindOptional(executor, plan::INPUT, input.name));
    if (!view) continue;
    if (view->spec != input.microbatch) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan's buffer of input ", input.name, " is ", view->spec.ToString(),
                       ", its input table says ", input.microbatch.ToString()));
    }
    buffers.targets_.push_back({i, *view});
  }
  return buffers;
}

void InputBuffers::Fill(const Batch& batch, int64_t microbatch) const {
  for (const Target& target : targets_) {
    const std::vector<char>& data = batch.data[microbatch][target.input];
    std::memcpy(target.view.data, data.data(), data.size());
  }
}

absl::StatusOr<std::optional<BufferView>> FindOptional(const Executor& executor,
                                                       plan::BufferKind kind,
                                                       const std::string& ref,
                                                       const std::string& slot) {
  absl::StatusOr<BufferView> view = executor.Find(kind, ref, slot);
  if (view.ok()) return std::optional<BufferView>(*view);
  if (absl::IsNotFound(view.status())) return std::optional<BufferView>();
  return view.status();
}

absl::Status AppendSamples(const absl::Status& status, const std::string& samples) {
  return {status.code(),
          absl::StrCat(std::string(status.message()), "; the microbatch's samples: ", samples)};
}

absl::StatusOr<double> ReadNumber(const BufferView& view) {
  if (view.spec.num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a single number was expected, not ", view.spec.ToString()));
  }
  double value = 0;
  ORIEL_RETURN_IF_ERROR(ConvertElements(view.spec.dtype, view.data, DType::kF64, &value, 1));
  return value;
}

absl::Status WriteNumber(const BufferView& view, double value) {
  if (view.spec.num_elements() != 1 || view.spec.dtype != DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("an f32 scalar was expected, not ", view.spec.ToString()));
  }
  const float narrow = static_cast<float>(value);
  std::memcpy(view.data, &narrow, sizeof narrow);
  return absl::OkStatus();
}

}  // namespace oriel::runtime
