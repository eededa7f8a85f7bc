#include "runtime/train/step_buffers.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/train/convert.h"

namespace oriel::runtime {

absl::StatusOr<InputBuffers> InputBuffers::Bind(const BatchLayout& layout, Executor& executor) {
  InputBuffers buffers;
  for (size_t i = 0; i < layout.inputs.size(); ++i) {
    const BatchInput& input = layout.inputs[i];
    ORIEL_ASSIGN_OR_RETURN(const std::optional<HostAccess> buffer,
                           FindOptional(executor, plan::INPUT, input.name));
    if (!buffer) continue;
    if (buffer->spec() != input.microbatch) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan's buffer of input ", input.name, " is ", buffer->spec().ToString(),
                       ", its input table says ", input.microbatch.ToString()));
    }
    buffers.targets_.push_back({i, *buffer});
  }
  return buffers;
}

absl::Status InputBuffers::Fill(const Batch& batch, int64_t microbatch) const {
  for (const auto& [input, buffer] : targets_) {
    ORIEL_RETURN_IF_ERROR(buffer.Write(batch.data[microbatch][input].data()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<HostAccess>> FindOptional(Executor& executor, plan::BufferKind kind,
                                                       const std::string& ref,
                                                       const std::string& slot) {
  const absl::StatusOr<BufferView> view = executor.Find(kind, ref, slot);
  if (view.ok()) return std::optional<HostAccess>(HostAccess(executor, *view));
  if (absl::IsNotFound(view.status())) return std::optional<HostAccess>();
  return view.status();
}

absl::Status AppendSamples(const absl::Status& status, const std::string& samples) {
  return {status.code(),
          absl::StrCat(std::string(status.message()), "; the microbatch's samples: ", samples)};
}

absl::StatusOr<double> ReadNumber(const HostAccess& buffer) {
  const TensorSpec& spec = buffer.spec();
  if (spec.num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a single number was expected, not ", spec.ToString()));
  }
  char stored[sizeof(double)];
  ORIEL_RETURN_IF_ERROR(buffer.Read(stored));
  double value = 0;
  ORIEL_RETURN_IF_ERROR(ConvertElements(spec.dtype, stored, DType::kF64, &value, 1));
  return value;
}

absl::Status WriteNumber(const HostAccess& buffer, double value) {
  const TensorSpec& spec = buffer.spec();
  if (spec.num_elements() != 1 || spec.dtype != DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("an f32 scalar was expected, not ", spec.ToString()));
  }
  const float narrow = static_cast<float>(value);
  return buffer.Write(&narrow);
}

}  // namespace oriel::runtime
