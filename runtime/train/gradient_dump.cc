#include "runtime/train/gradient_dump.h"

#include <cstring>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/convert.h"
#include "runtime/train/safetensors.h"
#include "runtime/train/step_buffers.h"

namespace oriel::runtime {
namespace {

struct Gradient {
  std::string name;
  TensorSpec spec;  // f32, whatever the accumulator's type
  std::vector<float> values;
};

// What the accumulator's values are multiplied by (plan::Buffer.scale).
double ScaleOf(const Executor& executor, const std::string& parameter) {
  for (const plan::Buffer& buffer : executor.program().buffers()) {
    if (buffer.kind() == plan::GRADIENT && buffer.ref() == parameter && buffer.scale() != 0) {
      return buffer.scale();
    }
  }
  return 1;
}

absl::StatusOr<std::vector<Gradient>> CopyGradients(const plan::Plan& plan,
                                                    const Executor& executor) {
  std::vector<Gradient> gradients;
  for (const plan::Parameter& parameter : plan.parameters()) {
    ORIEL_ASSIGN_OR_RETURN(std::optional<BufferView> view,
                           FindOptional(executor, plan::GRADIENT, parameter.name()));
    if (!view) continue;  // frozen, or without influence on the loss
    if (view->spec.shape != FromPlan(parameter.global()).shape) {
      return absl::UnimplementedError(absl::StrCat("--dump-gradients: the gradient of ",
                                                   parameter.name(), " is stored in parts"));
    }
    Gradient gradient{parameter.name(), {DType::kF32, view->spec.shape}, {}};
    gradient.values.resize(view->spec.num_elements());
    ORIEL_RETURN_IF_ERROR(ConvertElements(view->spec.dtype, view->data, DType::kF32,
                                          gradient.values.data(), view->spec.num_elements()));
    gradients.push_back(std::move(gradient));
  }
  return gradients;
}

}  // namespace

absl::Status DumpGradients(const plan::Plan& plan, const Executor& executor, Communicator* world,
                           const std::string& path) {
  const int64_t ranks = world == nullptr ? 1 : world->size();
  // A sum over all ranks is a sum over data only if they all are data-parallel.
  if (plan.training().data_parallel() != ranks) {
    return absl::UnimplementedError("--dump-gradients works for plain data parallelism only");
  }
  ORIEL_ASSIGN_OR_RETURN(BufferView count_view, executor.Find(plan::ACCUMULATOR, "token_count"));
  ORIEL_ASSIGN_OR_RETURN(double count, ReadNumber(count_view));
  ORIEL_ASSIGN_OR_RETURN(std::vector<Gradient> gradients, CopyGradients(plan, executor));
  if (world != nullptr) {
    std::vector<ReduceBuffer> buffers = {{&count, &count, 1, DType::kF64}};
    for (Gradient& gradient : gradients) {
      buffers.push_back({gradient.values.data(), gradient.values.data(),
                         static_cast<int64_t>(gradient.values.size()), DType::kF32});
    }
    ORIEL_RETURN_IF_ERROR(world->AllReduce(Reduction::kSum, buffers));
    if (world->rank() != 0) return absl::OkStatus();
  }
  std::vector<NamedTensor> tensors;
  for (Gradient& gradient : gradients) {
    const double divisor = count * ScaleOf(executor, gradient.name);
    for (float& value : gradient.values) value = static_cast<float>(value / divisor);
    tensors.push_back({gradient.name, gradient.spec, gradient.values.data()});
  }
  return WriteSafetensors(path, tensors);
}

}  // namespace oriel::runtime
