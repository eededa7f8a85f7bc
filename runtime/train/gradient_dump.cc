#include "runtime/train/gradient_dump.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/plan/access.h"
#include "runtime/plan/plan_types.h"
#include "runtime/train/checkpoint/safetensors.h"
#include "runtime/train/convert.h"
#include "runtime/train/piece_gatherer.h"
#include "runtime/train/step_buffers.h"

namespace oriel::runtime {
namespace {

// A sum over samples that the ranks of a grid have.
struct PendingSum {
  TensorLayout layout;
  double scale;       // what its values are multiplied by (plan::Buffer.scale)
  HostAccess buffer;  // of this rank, if it is one of them
};

// Of a parameter, or of a number. Nothing if the program has no such buffer.
absl::StatusOr<std::optional<PendingSum>> FindSum(const plan::Plan& plan,
                                                  const plan::Program& program, Executor& executor,
                                                  int64_t rank, plan::BufferKind kind,
                                                  const std::string& ref,
                                                  const plan::Parameter* parameter) {
  for (const plan::Buffer& buffer : program.buffers()) {
    const bool is_kind = IsGradient(kind) ? IsGradient(buffer.kind()) : buffer.kind() == kind;
    if (!is_kind || buffer.ref() != ref) continue;
    const plan::Grid* grid = GridOfRank(plan, program.first_rank());
    if (grid == nullptr) return absl::InvalidArgumentError("a program runs on no grid");
    const plan::Buffer& held = BeforeUpdate(program, buffer);
    absl::StatusOr<TensorLayout> layout = parameter == nullptr
                                              ? TensorLayout::Create(*grid, held.sharding(), {})
                                              : LayoutInFiles(*grid, *parameter, held.sharding());
    if (!layout.ok()) return Annotate(layout.status(), ref);
    const double scale = held.scale() != 0 ? held.scale() : 1;
    PendingSum sum{*std::move(layout), scale, {}};
    if (sum.layout.Contains(rank)) {
      ORIEL_ASSIGN_OR_RETURN(const BufferView view, executor.Find(buffer.kind(), ref));
      sum.buffer = HostAccess(executor, view);
      if (view.spec.shape != sum.layout.piece()) {
        return absl::InvalidArgumentError(absl::StrCat(ref, ": the rank's sum is ",
                                                       view.spec.ToString(), ", its part is ",
                                                       ShapeToString(sum.layout.piece())));
      }
    }
    return std::optional(std::move(sum));
  }
  return std::optional<PendingSum>();
}

// The program with the loss counts the tokens; all ranks get the count.
absl::StatusOr<double> TokenCount(const plan::Plan& plan, Executor& executor, Communicator* world,
                                  PieceGatherer& gatherer) {
  for (const plan::Program& program : plan.programs()) {
    ORIEL_ASSIGN_OR_RETURN(std::optional<PendingSum> sum,
                           FindSum(plan, program, executor, gatherer.rank(), plan::ACCUMULATOR,
                                   "token_count", nullptr));
    if (!sum) continue;
    double count = 0;
    if (sum->layout.Contains(gatherer.rank())) {
      ORIEL_ASSIGN_OR_RETURN(count, ReadNumber(sum->buffer));
    }
    ORIEL_RETURN_IF_ERROR(gatherer.Sum(sum->layout, DType::kF64, 1, &count));
    if (world != nullptr) {
      ORIEL_RETURN_IF_ERROR(world->Broadcast(sum->layout.Owners().front(), &count, sizeof count));
    }
    // As in the update, which divides by 1 where no label counts.
    return std::max(count, 1.0);
  }
  return absl::NotFoundError("the plan does not count tokens");
}

// A parameter's gradient is the sum of what the grids that keep it have accumulated, of all its
// parts.
struct Gradient {
  NamedSpec named;  // f32
  std::vector<PendingSum> sums;
};

// Of all trainable parameters but those without influence on the loss.
absl::StatusOr<std::vector<Gradient>> FindGradients(const plan::Plan& plan, Executor& executor,
                                                    int64_t rank) {
  std::vector<Gradient> gradients;
  std::map<std::string, size_t> places;
  for (const plan::Parameter& parameter : plan.parameters()) {
    for (const plan::Program& program : plan.programs()) {
      ORIEL_ASSIGN_OR_RETURN(
          std::optional<PendingSum> sum,
          FindSum(plan, program, executor, rank, plan::GRADIENT, parameter.name(), &parameter));
      if (!sum) continue;
      const std::string& name = NameInFiles(parameter);
      const auto [place, is_new] = places.try_emplace(name, gradients.size());
      if (is_new) gradients.push_back({{name, {DType::kF32, ShapeInFiles(parameter)}}, {}});
      gradients[place->second].sums.push_back(*std::move(sum));
    }
  }
  return gradients;
}

// Adds a box of a tensor to the whole one.
void AddBox(const Box& box, const float* values, const Shape& shape, float* whole) {
  const BoxRuns runs(WholeBox(shape), box);
  for (int64_t i = 0; i < runs.count(); ++i) {
    const auto [to, from] = runs[i];
    for (int64_t j = 0; j < runs.length(); ++j) whole[to + j] += values[from + j];
  }
}

}  // namespace

absl::Status DumpGradients(const plan::Plan& plan, Executor& executor, Communicator* world,
                           const std::string& path) {
  ORIEL_ASSIGN_OR_RETURN(PieceGatherer gatherer, PieceGatherer::Create(plan, world));
  ORIEL_ASSIGN_OR_RETURN(const double count, TokenCount(plan, executor, world, gatherer));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<Gradient> gradients,
                         FindGradients(plan, executor, gatherer.rank()));
  std::optional<SafetensorsWriter> writer;
  if (gatherer.rank() == 0) {
    std::vector<NamedSpec> specs;
    for (const Gradient& gradient : gradients) specs.push_back(gradient.named);
    ORIEL_ASSIGN_OR_RETURN(writer, SafetensorsWriter::Create(path, specs));
  }
  std::vector<float> values, whole;
  std::vector<char> copy;
  for (const auto& [named, sums] : gradients) {
    const TensorSpec& spec = named.spec;
    if (writer) whole.assign(spec.num_elements(), 0);
    for (const auto& [layout, scale, buffer] : sums) {
      if (layout.Contains(gatherer.rank())) {
        const int64_t elements = buffer.spec().num_elements();
        values.resize(elements);
        ORIEL_ASSIGN_OR_RETURN(const void* held, buffer.Map(copy));
        ORIEL_RETURN_IF_ERROR(
            ConvertElements(buffer.spec().dtype, held, DType::kF32, values.data(), elements));
        ORIEL_RETURN_IF_ERROR(gatherer.Sum(layout, DType::kF32, elements, values.data()));
        for (float& value : values) value = static_cast<float>(value / (count * scale));
      }
      ORIEL_RETURN_IF_ERROR(gatherer.Gather(
          layout, DType::kF32, values.data(), [&](const Box& box, const void* data) {
            AddBox(box, static_cast<const float*>(data), spec.shape, whole.data());
          }));
    }
    if (writer) ORIEL_RETURN_IF_ERROR(writer->Append(whole.data(), spec.bytes()));
  }
  return writer ? writer->Finish() : absl::OkStatus();
}

}  // namespace oriel::runtime
