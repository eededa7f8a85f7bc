#include "runtime/train/model_state.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"
#include "runtime/train/checkpoint/initial_weights.h"
#include "runtime/train/checkpoint/safetensors.h"
#include "runtime/train/convert.h"
#include "runtime/train/piece_gatherer.h"
#include "runtime/train/random_values.h"

namespace oriel::runtime {
namespace {

// "w", "exp_avg of w"
std::string NameOf(const std::string& parameter, const std::string& slot) {
  return absl::StrCat(slot, slot.empty() ? "" : " of ", parameter);
}

// A parameter (without a slot) or a state of it, as it lies on a grid.
absl::StatusOr<CheckpointSource> LayOut(const plan::Grid& grid, const plan::Parameter& parameter,
                                        const std::string& slot, DType dtype,
                                        const plan::Sharding& storage) {
  const std::string name = NameOf(parameter.name(), slot);
  absl::StatusOr<TensorLayout> layout = LayoutInFiles(grid, parameter, storage);
  if (!layout.ok()) return Annotate(layout.status(), name);
  if (layout->is_pending()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": its storage is a pending reduction"));
  }
  CheckpointSource source{NameInFiles(parameter), slot, dtype, *std::move(layout), {}, ""};
  if (parameter.has_part_of()) source.part = parameter.name();
  return source;
}

// Whether it is the value of a parameter, which initial values and checkpoints give.
bool IsValue(const CheckpointSource& source) {
  return source.slot.empty() || source.slot == kMasterSlot;
}

// The rank's buffer for a parameter (without a slot) or a state.
absl::StatusOr<BufferView> FindBuffer(Executor& executor, const CheckpointSource& source,
                                      const std::string& slot, DType dtype) {
  const plan::BufferKind kind = slot.empty() ? plan::PARAMETER : plan::OPTIMIZER_STATE;
  ORIEL_ASSIGN_OR_RETURN(BufferView view, executor.Find(kind, source.name(), slot));
  const TensorSpec piece{dtype, source.layout.piece()};
  if (view.spec != piece) {
    return absl::InvalidArgumentError(
        absl::StrCat(NameOf(source.name(), slot), ": the rank's buffer is ", view.spec.ToString(),
                     ", its part of ", source.spec().ToString(), " is ", piece.ToString()));
  }
  return view;
}

// Finds what the rank has of a parameter or a state.
absl::Status BindBuffer(Executor& executor, CheckpointSource* source) {
  ORIEL_ASSIGN_OR_RETURN(const BufferView view,
                         FindBuffer(executor, *source, source->slot, source->dtype));
  source->buffer = HostAccess(executor, view);
  return absl::OkStatus();
}

// .. of a parameter whose master is its remainder: in f32 the two together, of copies (not `home`),
// which have no state, what rounding leaves.
absl::Status BindJoined(Executor& executor, bool home, CheckpointSource* source) {
  ORIEL_ASSIGN_OR_RETURN(const BufferView rounded, FindBuffer(executor, *source, "", DType::kBF16));
  BufferView remainder;
  if (home) {
    ORIEL_ASSIGN_OR_RETURN(remainder, FindBuffer(executor, *source, kMasterSlot, DType::kI16));
  }
  source->buffer = HostAccess(executor, rounded, remainder);
  return absl::OkStatus();
}

// Calls `fill` with boxes of what the rank has, but for its padding, which stays zero.
absl::Status FillContent(const CheckpointSource& source, int64_t rank,
                         const HostAccess::Fill& fill) {
  constexpr int64_t kMostElements = int64_t{1} << 20;
  const Box content = source.layout.ContentOf(rank);
  const int64_t width = DTypeBytes(source.dtype);
  std::vector<char> copy;
  return source.buffer.WritePieces(
      source.layout.BoxOf(rank), [&](const Box& piece, void* data) -> absl::Status {
        const Box own = Intersect(piece, content);
        if (own == piece) return fill(piece, data);
        for (const Box& part : CutBox(own, kMostElements)) {
          copy.assign(static_cast<size_t>(part.num_elements() * width), 0);
          ORIEL_RETURN_IF_ERROR(fill(part, copy.data()));
          CopyBox(part, copy.data(), piece, data, width);
        }
        return absl::OkStatus();
      });
}

// Reads what the rank has of a parameter's value or of a state.
absl::Status Fill(const CheckpointSource& source, const CheckpointReader& checkpoint,
                  int64_t rank) {
  return FillContent(source, rank, [&](const Box& piece, void* data) {
    return IsValue(source)
               ? checkpoint.ReadParameter(source.parameter, source.spec(), piece, data)
               : checkpoint.ReadState(source.parameter, source.slot, source.spec(), piece, data);
  });
}

// False where the host has to make it, as beside padding.
absl::StatusOr<bool> FillOnDevice(const plan::InitialValue& initial, const CheckpointSource& source,
                                  int64_t rank) {
  const Box box = source.layout.BoxOf(rank);
  if (source.layout.ContentOf(rank) != box) return false;
  const std::optional<kernels::KernelSpec> launch =
      InitialValueOnDevice(initial, source.parameter, source.spec(), box);
  if (!launch) return false;
  const absl::Status status = source.buffer.FillBy(*launch);
  if (absl::IsUnimplemented(status) || absl::IsNotFound(status)) return false;
  ORIEL_RETURN_IF_ERROR(Annotate(status, source.parameter));
  return true;
}

}  // namespace

absl::StatusOr<ModelState> ModelState::Bind(const plan::Plan& plan, int64_t rank,
                                            Executor& executor) {
  const int own = GridIndexOf(plan, rank);
  if (own < 0) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has no grid with rank ", rank));
  }
  ModelState state(plan, rank);
  // Adds what a grid keeps: to what this rank holds if it is one of its ranks, and to the sources.
  const auto add = [&](int grid, const plan::Parameter& parameter, const std::string& slot,
                       const plan::Tensor& global, const plan::Sharding& storage) -> absl::Status {
    const bool home = IsHome(parameter, grid);
    const bool joined = slot.empty() && HasRemainder(plan, parameter);
    const DType dtype = joined ? DType::kF32 : FromPlan(global).dtype;
    ORIEL_ASSIGN_OR_RETURN(CheckpointSource source,
                           LayOut(plan.grids(grid), parameter, slot, dtype, storage));
    if (grid == own) {
      ORIEL_RETURN_IF_ERROR(joined ? BindJoined(executor, home, &source)
                                   : BindBuffer(executor, &source));
      state.held_.push_back({&parameter, source});
    }
    if (!home) return absl::OkStatus();
    if (slot.empty() && !joined && MasterOf(plan, parameter) != nullptr) return absl::OkStatus();
    if (slot == kMasterSlot) source.slot.clear();
    state.sources_.push_back(std::move(source));
    return absl::OkStatus();
  };
  std::map<std::string, const plan::Parameter*> parameters;
  for (const plan::Parameter& parameter : plan.parameters()) {
    if (parameter.placements().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(parameter.name(), " is kept on no grid"));
    }
    parameters[parameter.name()] = &parameter;
    for (const plan::Placement& placement : parameter.placements()) {
      if (placement.grid() != own && !IsHome(parameter, placement.grid())) continue;
      ORIEL_RETURN_IF_ERROR(
          add(placement.grid(), parameter, "", parameter.global(), placement.storage()));
    }
    const plan::OptimizerState* master = MasterOf(plan, parameter);
    if (master != nullptr && !HasRemainder(plan, parameter)) {
      ORIEL_RETURN_IF_ERROR(add(parameter.placements(0).grid(), parameter, kMasterSlot,
                                master->global(), master->storage()));
    }
  }
  for (const plan::OptimizerState& optimizer : plan.optimizer_states()) {
    if (optimizer.slot() == kMasterSlot) continue;
    const plan::Parameter* parameter = parameters[optimizer.parameter()];
    if (parameter == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the plan has an optimizer state of ", optimizer.parameter(), ", but no such parameter"));
    }
    ORIEL_RETURN_IF_ERROR(add(parameter->placements(0).grid(), *parameter, optimizer.slot(),
                              optimizer.global(), optimizer.storage()));
  }
  return state;
}

absl::Status ModelState::Initialize(const std::string& plan_folder, int num_threads) {
  std::map<std::string, SafetensorsFile> files;
  for (const auto& held : held_) {
    const CheckpointSource& source = held.source;
    if (!IsValue(source)) continue;
    const plan::InitialValue& initial = held.parameter->initial();
    if (IsMade(initial)) {
      ORIEL_ASSIGN_OR_RETURN(const bool filled, FillOnDevice(initial, source, rank_));
      if (filled) continue;
      const auto fill = [&](const Box& piece, void* data) {
        return FillInitialValue(initial, source.parameter, source.spec(), piece, num_threads, data);
      };
      ORIEL_RETURN_IF_ERROR(FillContent(source, rank_, fill));
      continue;
    }
    if (initial.file().empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan has no initial value for ", source.parameter));
    }
    auto it = files.find(initial.file());
    if (it == files.end()) {
      absl::StatusOr<SafetensorsFile> file =
          OpenInitialWeights(*plan_, plan_folder, initial.file());
      if (!file.ok()) return Annotate(file.status(), "initial weights");
      it = files.emplace(initial.file(), *std::move(file)).first;
    }
    const absl::Status read = FillContent(source, rank_, [&](const Box& piece, void* data) {
      return it->second.ReadBox(initial.tensor(), source.spec(), piece, data);
    });
    if (!read.ok()) return Annotate(read, "initial weights");
  }
  return absl::OkStatus();
}

std::vector<std::vector<const CheckpointSource*>> ModelState::WholeParameters() const {
  std::vector<std::vector<const CheckpointSource*>> parameters;
  std::map<std::string, size_t> places;
  for (const CheckpointSource& source : sources_) {
    if (!source.slot.empty()) continue;
    const auto [place, is_new] = places.try_emplace(source.parameter, parameters.size());
    if (is_new) parameters.emplace_back();
    parameters[place->second].push_back(&source);
  }
  return parameters;
}

absl::Status ModelState::Restore(const CheckpointReader& checkpoint, bool with_optimizer) {
  std::vector<NamedSpec> parameters;
  for (const auto& parts : WholeParameters()) {
    parameters.push_back({parts.front()->parameter, parts.front()->spec()});
  }
  ORIEL_RETURN_IF_ERROR(checkpoint.CheckModel(plan_->model_name(), parameters));
  for (const Held& held : held_) {
    if (!IsValue(held.source) && !with_optimizer) continue;
    ORIEL_RETURN_IF_ERROR(Fill(held.source, checkpoint, rank_));
  }
  return absl::OkStatus();
}

absl::StatusOr<WeightsTaken> ModelState::TakeWeights(const CheckpointReader& checkpoint) {
  const std::map<std::string, CheckpointTensor>& saved = checkpoint.index().parameters;
  WeightsTaken found;
  std::set<std::string> unused;
  for (const auto& [name, tensor] : saved) unused.insert(name);
  for (const auto& parts : WholeParameters()) {
    const CheckpointSource& whole = *parts.front();
    auto tensor = saved.find(whole.parameter);
    if (tensor == saved.end()) {
      found.missing.push_back(whole.parameter);
      continue;
    }
    if (!CanRead(tensor->second.spec, whole.spec())) {
      return absl::FailedPreconditionError(absl::StrCat(
          checkpoint.path(), ": ", whole.parameter, " is ", tensor->second.spec.ToString(),
          " there, in the plan ", whole.spec().ToString()));
    }
    unused.erase(whole.parameter);
    ++found.taken;
    if (DTypeBytes(tensor->second.spec.dtype) < DTypeBytes(whole.spec().dtype)) {
      found.rounded.push_back(whole.parameter);
    }
  }
  found.unused = {unused.begin(), unused.end()};
  if (found.taken == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(checkpoint.path(), ": has none of the plan's parameters: it has ",
                     SomeOf(found.unused), ", the plan ", SomeOf(found.missing)));
  }
  for (const Held& held : held_) {
    if (!IsValue(held.source) || saved.count(held.source.parameter) == 0) continue;
    ORIEL_RETURN_IF_ERROR(Fill(held.source, checkpoint, rank_));
  }
  return found;
}

absl::Status ModelState::DumpParameters(const std::string& path, Communicator* world) const {
  ORIEL_ASSIGN_OR_RETURN(PieceGatherer gatherer, PieceGatherer::Create(*plan_, world));
  const std::vector<std::vector<const CheckpointSource*>> parameters = WholeParameters();
  std::vector<NamedSpec> specs;
  for (const auto& parts : parameters) {
    specs.push_back({parts.front()->parameter, parts.front()->spec()});
  }
  std::optional<SafetensorsWriter> writer;
  if (rank_ == 0) {
    ORIEL_ASSIGN_OR_RETURN(writer, SafetensorsWriter::Create(path, specs));
  }
  std::vector<char> whole, copy;
  for (const auto& parts : parameters) {
    const int64_t bytes = parts.front()->spec().bytes();
    const void* data = nullptr;
    for (const CheckpointSource* part : parts) {
      data = nullptr;
      if (part->buffer.exists() && part->layout.Owns(rank_)) {
        ORIEL_ASSIGN_OR_RETURN(data, part->buffer.Map(copy));
      }
      if (part->layout.is_whole() && part->layout.Owns(0)) continue;
      if (writer) whole.resize(bytes);
      ORIEL_RETURN_IF_ERROR(gatherer.Gather(part->layout, part->dtype, data, whole.data()));
      data = whole.data();
    }
    if (writer) ORIEL_RETURN_IF_ERROR(writer->Append(data, bytes));
  }
  return writer ? writer->Finish() : absl::OkStatus();
}

}  // namespace oriel::runtime
