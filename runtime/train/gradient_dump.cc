#include "runtime/train/gradient_dump.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/convert.h"
#include "runtime/train/piece_gatherer.h"
#include "runtime/train/safetensors.h"
#include "runtime/train/step_buffers.h"

namespace oriel::runtime {
namespace {

// A sum over samples, as this rank has it.
struct PendingSum {
  std::string name;
  TensorLayout layout;
  double scale;  // what its values are multiplied by (plan::Buffer.scale)
  BufferView view;
};

// Nothing if the program has no such buffer.
absl::StatusOr<std::optional<PendingSum>> FindSum(const plan::Plan& plan, const Executor& executor,
                                                  plan::BufferKind kind, const std::string& ref,
                                                  const Shape& global, const Shape& padded) {
  for (const plan::Buffer& buffer : executor.program().buffers()) {
    if (buffer.kind() != kind || buffer.ref() != ref) continue;
    absl::StatusOr<TensorLayout> layout =
        TensorLayout::CreatePadded(plan.grids(0), buffer.sharding(), global, padded);
    if (!layout.ok()) return Annotate(layout.status(), ref);
    ORIEL_ASSIGN_OR_RETURN(BufferView view, executor.Find(kind, ref));
    if (view.spec.shape != layout->piece()) {
      return absl::InvalidArgumentError(absl::StrCat(ref, ": the rank's sum is ",
                                                     view.spec.ToString(), ", its part is ",
                                                     ShapeToString(layout->piece())));
    }
    const double scale = buffer.scale() != 0 ? buffer.scale() : 1;
    return std::optional(PendingSum{ref, *std::move(layout), scale, view});
  }
  return std::optional<PendingSum>();
}

absl::StatusOr<double> TokenCount(const plan::Plan& plan, const Executor& executor,
                                  PieceGatherer& gatherer) {
  ORIEL_ASSIGN_OR_RETURN(std::optional<PendingSum> sum,
                         FindSum(plan, executor, plan::ACCUMULATOR, "token_count", {}, {}));
  if (!sum) return absl::NotFoundError("the plan does not count tokens");
  ORIEL_ASSIGN_OR_RETURN(double count, ReadNumber(sum->view));
  ORIEL_RETURN_IF_ERROR(gatherer.Sum(sum->layout, DType::kF64, 1, &count));
  return count;
}

}  // namespace

absl::Status DumpGradients(const plan::Plan& plan, const Executor& executor, Communicator* world,
                           const std::string& path) {
  ORIEL_ASSIGN_OR_RETURN(PieceGatherer gatherer, PieceGatherer::Create(plan, world));
  ORIEL_ASSIGN_OR_RETURN(const double count, TokenCount(plan, executor, gatherer));
  std::vector<PendingSum> gradients;
  std::vector<NamedSpec> specs;
  for (const plan::Parameter& parameter : plan.parameters()) {
    const Shape shape = FromPlan(parameter.global()).shape;
    ORIEL_ASSIGN_OR_RETURN(
        std::optional<PendingSum> gradient,
        FindSum(plan, executor, plan::GRADIENT, parameter.name(), shape, PaddedShape(parameter)));
    if (!gradient) continue;  // frozen, or without influence on the loss
    gradients.push_back(*std::move(gradient));
    specs.push_back({parameter.name(), {DType::kF32, shape}});
  }
  std::optional<SafetensorsWriter> writer;
  if (gatherer.rank() == 0) {
    ORIEL_ASSIGN_OR_RETURN(writer, SafetensorsWriter::Create(path, specs));
  }
  std::vector<float> values, whole;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const auto& [name, layout, scale, view] = gradients[i];
    values.resize(view.spec.num_elements());
    const auto elements = static_cast<int64_t>(values.size());
    ORIEL_RETURN_IF_ERROR(
        ConvertElements(view.spec.dtype, view.data, DType::kF32, values.data(), elements));
    ORIEL_RETURN_IF_ERROR(gatherer.Sum(layout, DType::kF32, elements, values.data()));
    const double divisor = count * scale;
    for (float& value : values) value = static_cast<float>(value / divisor);
    if (layout.is_whole()) {
      if (writer) ORIEL_RETURN_IF_ERROR(writer->Append(values.data(), specs[i].spec.bytes()));
      continue;
    }
    if (writer) whole.resize(specs[i].spec.num_elements());
    ORIEL_RETURN_IF_ERROR(gatherer.Gather(layout, DType::kF32, values.data(), whole.data()));
    if (writer) ORIEL_RETURN_IF_ERROR(writer->Append(whole.data(), specs[i].spec.bytes()));
  }
  return writer ? writer->Finish() : absl::OkStatus();
}

}  // namespace oriel::runtime
