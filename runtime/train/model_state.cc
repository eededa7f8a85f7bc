#include "runtime/train/model_state.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"
#include "runtime/train/piece_gatherer.h"
#include "runtime/train/random_values.h"
#include "runtime/train/safetensors.h"

namespace oriel::runtime {
namespace {

absl::StatusOr<CheckpointSource> BindTensor(const Executor& executor, const plan::Grid& grid,
                                            plan::BufferKind kind, const std::string& parameter,
                                            const std::string& slot, const plan::Tensor& global,
                                            const Shape& padded, const plan::Sharding& storage) {
  const std::string name = absl::StrCat(slot, slot.empty() ? "" : " of ", parameter);
  const TensorSpec spec = FromPlan(global);
  absl::StatusOr<TensorLayout> layout =
      TensorLayout::CreatePadded(grid, storage, spec.shape, padded);
  if (!layout.ok()) return Annotate(layout.status(), name);
  if (layout->is_pending()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": its storage is a pending reduction"));
  }
  ORIEL_ASSIGN_OR_RETURN(BufferView view, executor.Find(kind, parameter, slot));
  const TensorSpec piece{spec.dtype, layout->piece()};
  if (view.spec != piece) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": the rank's buffer is ",
                                                   view.spec.ToString(), ", its part of ",
                                                   spec.ToString(), " is ", piece.ToString()));
  }
  return CheckpointSource{parameter, slot, spec.dtype, *std::move(layout), view.data};
}

}  // namespace

absl::StatusOr<ModelState> ModelState::Bind(const plan::Plan& plan, int64_t rank,
                                            const Executor& executor) {
  const int grid = GridIndexOf(plan, rank);
  if (grid < 0) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has no grid with rank ", rank));
  }
  ModelState state(plan, rank);
  std::map<std::string, Shape> padded;
  for (const plan::Parameter& parameter : plan.parameters()) {
    const plan::Placement* placement = PlacementOn(parameter, grid);
    if (placement == nullptr) continue;
    ORIEL_ASSIGN_OR_RETURN(
        CheckpointSource source,
        BindTensor(executor, plan.grids(grid), plan::PARAMETER, parameter.name(), "",
                   parameter.global(), PaddedShape(parameter), placement->storage()));
    padded[parameter.name()] = PaddedShape(parameter);
    state.sources_.push_back(std::move(source));
  }
  for (const plan::OptimizerState& optimizer : plan.optimizer_states()) {
    ORIEL_ASSIGN_OR_RETURN(CheckpointSource source,
                           BindTensor(executor, plan.grids(grid), plan::OPTIMIZER_STATE,
                                      optimizer.parameter(), optimizer.slot(), optimizer.global(),
                                      padded[optimizer.parameter()], optimizer.storage()));
    state.sources_.push_back(std::move(source));
  }
  return state;
}

absl::Status ModelState::Initialize(const std::string& plan_folder, int num_threads) {
  std::map<std::string, SafetensorsFile> files;
  for (int i = 0; i < plan_->parameters_size(); ++i) {
    const plan::InitialValue& initial = plan_->parameters(i).initial();
    const CheckpointSource& source = sources_[i];
    const Box box = source.layout.BoxOf(rank_);
    if (IsMade(initial)) {
      ORIEL_RETURN_IF_ERROR(FillInitialValue(initial, source.parameter, source.spec(), box,
                                             num_threads, source.data));
      continue;
    }
    if (initial.file().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan has no initial value for ", plan_->parameters(i).name()));
    }
    auto it = files.find(initial.file());
    if (it == files.end()) {
      absl::StatusOr<SafetensorsFile> file =
          SafetensorsFile::Open(JoinPath(plan_folder, initial.file()));
      if (!file.ok()) return Annotate(file.status(), "initial weights");
      it = files.emplace(initial.file(), *std::move(file)).first;
    }
    absl::Status read = it->second.ReadBox(initial.tensor(), source.spec(), box, source.data);
    if (!read.ok()) return Annotate(read, "initial weights");
  }
  return absl::OkStatus();
}

absl::Status ModelState::Restore(const CheckpointReader& checkpoint, bool with_optimizer) {
  std::vector<NamedSpec> parameters;
  for (const CheckpointSource& source : sources_) {
    if (source.slot.empty()) parameters.push_back({source.parameter, source.spec()});
  }
  ORIEL_RETURN_IF_ERROR(checkpoint.CheckModel(plan_->model_name(), parameters));
  for (const CheckpointSource& source : sources_) {
    const Box box = source.layout.BoxOf(rank_);
    if (source.slot.empty()) {
      ORIEL_RETURN_IF_ERROR(
          checkpoint.ReadParameter(source.parameter, source.spec(), box, source.data));
    } else if (with_optimizer) {
      ORIEL_RETURN_IF_ERROR(
          checkpoint.ReadState(source.parameter, source.slot, source.spec(), box, source.data));
    }
  }
  return absl::OkStatus();
}

absl::Status ModelState::DumpParameters(const std::string& path, Communicator* world) const {
  ORIEL_ASSIGN_OR_RETURN(PieceGatherer gatherer, PieceGatherer::Create(*plan_, world));
  std::vector<NamedSpec> specs;
  for (const CheckpointSource& source : sources_) {
    if (source.slot.empty()) specs.push_back({source.parameter, source.spec()});
  }
  std::optional<SafetensorsWriter> writer;
  if (rank_ == 0) {
    ORIEL_ASSIGN_OR_RETURN(writer, SafetensorsWriter::Create(path, specs));
  }
  std::vector<char> whole;
  for (const CheckpointSource& source : sources_) {
    if (!source.slot.empty()) continue;
    const int64_t bytes = source.spec().bytes();
    const void* data = source.data;
    if (!source.layout.is_whole()) {
      if (writer) whole.resize(bytes);
      ORIEL_RETURN_IF_ERROR(
          gatherer.Gather(source.layout, source.dtype, source.data, whole.data()));
      data = whole.data();
    }
    if (writer) ORIEL_RETURN_IF_ERROR(writer->Append(data, bytes));
  }
  return writer ? writer->Finish() : absl::OkStatus();
}

}  // namespace oriel::runtime
