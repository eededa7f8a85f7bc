// Buffers and instructions of a program, each for itself.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "absl/strings/str_join.h"
#include "runtime/plan/access.h"
#include "runtime/plan/data_axes.h"
#include "runtime/plan/plan_types.h"
#include "runtime/plan/tensor_layout.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

constexpr int64_t kMaxArenaBytes = int64_t{1} << 46;
constexpr int64_t kAlignment = 64;

std::vector<int64_t> ShapeOf(const plan::Tensor& tensor) {
  return {tensor.shape().begin(), tensor.shape().end()};
}

// Of the tensor that a rank has a piece of.
std::vector<int64_t> GlobalShape(const plan::Buffer& buffer) {
  if (buffer.global_shape().empty()) return ShapeOf(buffer.local());
  return {buffer.global_shape().begin(), buffer.global_shape().end()};
}

class ProgramVerifier {
 public:
  ProgramVerifier(const plan::Plan& plan, int index, Problems& problems)
      : plan_(plan),
        index_(index),
        program_(plan.programs(index)),
        grid_index_(GridIndexOf(plan, program_.first_rank())),
        grid_(plan.grids(grid_index_)),
        problems_(problems) {
    for (const auto& parameter : plan.parameters()) parameters_[parameter.name()] = &parameter;
    for (const auto& input : plan.inputs()) inputs_[input.name()] = &input;
    for (const auto& state : plan.optimizer_states()) {
      states_[{state.parameter(), state.slot()}] = &state;
    }
  }

  void Verify() {
    if (program_.arena_bytes() < 0 || program_.arena_bytes() > kMaxArenaBytes) {
      problems_.Add(Here(), " has an arena of ", program_.arena_bytes(), " bytes");
      return;
    }
    for (int i = 0; i < program_.buffers_size(); ++i) VerifyBuffer(i);
    VerifySamples();
    std::set<std::string> names;
    for (int i = 0; i < program_.segments_size(); ++i) {
      const auto& segment = program_.segments(i);
      if (segment.name().empty() || !names.insert(segment.name()).second) {
        problems_.Add(Here(), ", segment '", segment.name(), "': not a name of its own");
      }
      for (int j = 0; j < segment.instructions_size(); ++j) VerifyInstruction(i, j);
      VerifyWaits(i);
    }
    VerifyEnds();
  }

 private:
  std::string Here() const { return absl::StrCat("program ", index_); }

  void VerifyBuffer(int i) {
    const auto& buffer = program_.buffers(i);
    const std::string name = absl::StrCat(Here(), ", buffer ", i, " (", BufferName(buffer), ")");
    const auto bytes = CheckedBytes(buffer.local());
    if (!bytes) {
      return problems_.Add(name, " has an unknown type or an impossible shape");
    }
    if (VerifyOffset(buffer.offset(), *bytes, name)) VerifyCopies(buffer, *bytes, name);
    if (buffer.kind() == plan::CONSTANT) {
      if (static_cast<int64_t>(buffer.data().size()) != *bytes) {
        problems_.Add(name, " has ", buffer.data().size(), " bytes of data for a tensor of ",
                      *bytes);
      }
    } else if (!buffer.data().empty()) {
      problems_.Add(name, " has data, but is not a constant");
    }
    // What says nothing of its global shape is not cut.
    const bool cut = buffer.global_shape_size() > 0 || buffer.sharding().dims_size() > 0;
    const bool of_parameter = buffer.kind() == plan::PARAMETER ||
                              buffer.kind() == plan::OPTIMIZER_STATE ||
                              IsGradient(buffer.kind());  // the tables know its shape
    if (!of_parameter) {
      VerifyLocal(
          buffer,
          cut ? std::vector<int64_t>(buffer.global_shape().begin(), buffer.global_shape().end())
              : ShapeOf(buffer.local()),
          buffer.sharding(), name);
    }
    VerifyRole(buffer, name);
  }

  // False if a problem was found.
  bool VerifyOffset(int64_t offset, int64_t bytes, const std::string& name) {
    if (offset < 0 || offset % kAlignment != 0) {
      problems_.Add(name, " is at the offset ", offset, ", not a multiple of ", kAlignment);
    } else if (offset > program_.arena_bytes() || bytes > program_.arena_bytes() - offset) {
      problems_.Add(name, " ends beyond the arena: ", bytes, " bytes at ", offset, " of ",
                    program_.arena_bytes());
    } else {
      return true;
    }
    return false;
  }

  // Those behind the first.
  void VerifyCopies(const plan::Buffer& buffer, int64_t bytes, const std::string& name) {
    const int64_t copies = CopiesOf(buffer);
    if (copies > 1 && buffer.kind() != plan::STASH && buffer.kind() != plan::TEMPORARY &&
        buffer.kind() != plan::TRANSFER) {
      return problems_.Add(name, " has ", copies, " copies");
    }
    for (int64_t copy = 1; copy < copies; ++copy) {
      const std::string which = absl::StrCat("copy ", copy, " of ", name);
      if (!VerifyOffset(OffsetOf(buffer, copy), bytes, which)) return;
    }
  }

  void VerifyLocal(const plan::Buffer& buffer, const std::vector<int64_t>& global,
                   const plan::Sharding& sharding, const std::string& name) {
    const auto layout = TensorLayout::Create(grid_, sharding, global);
    if (!layout.ok()) {
      problems_.Add(name, ": ", layout.status().message());
    } else if (layout->piece() != ShapeOf(buffer.local())) {
      problems_.Add(name, " has the shape ", ShapeToString(ShapeOf(buffer.local())),
                    "; its part of ", ShapeToString(global), " is ",
                    ShapeToString(layout->piece()));
    }
  }

  void VerifyTable(const plan::Buffer& buffer, plan::DType dtype, const plan::Parameter& parameter,
                   const plan::Sharding& storage, const std::string& name) {
    if (buffer.local().dtype() != dtype) {
      problems_.Add(name, " is not of the type in the plan's table");
    }
    VerifyLocal(buffer, PaddedShape(parameter), storage, name);
    VerifyGlobalShape(buffer, parameter, name);
    if (!SameSharding(buffer.sharding(), storage)) {
      problems_.Add(name, " is not sharded as the plan's table says");
    }
  }

  void VerifyGlobalShape(const plan::Buffer& buffer, const plan::Parameter& parameter,
                         const std::string& name) {
    const std::vector<int64_t> own(buffer.global_shape().begin(), buffer.global_shape().end());
    const Shape shape = PaddedShape(parameter);
    if (!own.empty() && own != shape) {
      problems_.Add(name, " is of the global shape ", ShapeToString(own), ", not ",
                    ShapeToString(shape));
    }
  }

  // The inputs are split over as many ranks as the batch.
  void VerifySamples() {
    const auto axes = DataAxes(program_);
    if (!axes.ok()) return problems_.Add(Here(), ": ", axes.status().message());
    const bool reads = std::any_of(program_.buffers().begin(), program_.buffers().end(),
                                   [](const auto& buffer) { return buffer.kind() == plan::INPUT; });
    int64_t shares = 1;
    for (const auto& axis : grid_.axes()) {
      if (std::find(axes->begin(), axes->end(), axis.name()) != axes->end()) shares *= axis.size();
    }
    if (reads && shares % plan_.training().data_parallel() != 0) {
      problems_.Add(Here(), ": its inputs are split over ", shares, " ranks, no multiple of the ",
                    plan_.training().data_parallel(), " data-parallel ones");
    }
  }

  void VerifyRole(const plan::Buffer& buffer, const std::string& name) {
    switch (buffer.kind()) {
      case plan::PARAMETER:
      case plan::GRADIENT:
      case plan::STEP_GRADIENT: {
        const auto found = parameters_.find(buffer.ref());
        if (found == parameters_.end()) {
          problems_.Add(name, ": there is no such parameter");
          break;
        }
        const plan::Placement* placement = PlacementOn(*found->second, grid_index_);
        if (placement == nullptr) {
          problems_.Add(name, ": the parameter has no placement on the program's grid");
        } else if (buffer.kind() == plan::PARAMETER) {
          VerifyTable(buffer, found->second->global().dtype(), *found->second, placement->storage(),
                      name);
        } else if (!found->second->trainable()) {
          problems_.Add(name, ": the parameter is frozen");
        } else {
          VerifyLocal(buffer, PaddedShape(*found->second), buffer.sharding(), name);
          VerifyGlobalShape(buffer, *found->second, name);
        }
        break;
      }
      case plan::OPTIMIZER_STATE: {
        const auto found = states_.find({buffer.ref(), buffer.slot()});
        if (found == states_.end()) {
          problems_.Add(name, ": there is no such optimizer state");
        } else {
          // The tables are verified: the parameter is there.
          const plan::Parameter& parameter = *parameters_.at(buffer.ref());
          if (!IsHome(parameter, grid_index_)) {
            problems_.Add(name, ": the ranks of grid ", parameter.placements(0).grid(),
                          " step the parameter, not these");
            break;
          }
          VerifyTable(buffer, found->second->global().dtype(), parameter, found->second->storage(),
                      name);
        }
        break;
      }
      case plan::INPUT: {
        const auto found = inputs_.find(buffer.ref());
        if (found == inputs_.end()) {
          problems_.Add(name, ": there is no such input");
        } else if (buffer.local().dtype() != found->second->microbatch().dtype() ||
                   GlobalShape(buffer) != ShapeOf(found->second->microbatch())) {
          problems_.Add(name, " is not of the type and shape in the table of inputs");
        }
        break;
      }
      case plan::SCALAR:
        if (buffer.local().dtype() != plan::F32 || buffer.local().shape_size() != 0) {
          problems_.Add(name, " is not f32 of rank 0");
        }
        if (buffer.ref() != "learning_rate" && buffer.ref() != "step") {
          problems_.Add(name, " is neither learning_rate nor step");
        }
        break;
      case plan::ACCUMULATOR:
      case plan::OUTPUT:
        if (buffer.ref().empty()) problems_.Add(name, " has no name");
        break;
      case plan::CONSTANT:
      case plan::STASH:
      case plan::TEMPORARY:
      case plan::TRANSFER:
        return;  // nobody looks these up
      default:
        return problems_.Add(name, " is of an unknown kind");
    }
    if (!roles_.insert({buffer.kind(), buffer.ref(), buffer.slot()}).second) {
      problems_.Add(name, " is there twice");
    }
  }

  bool VerifyIndices(const std::string& path, const std::vector<int>& indices) {
    for (const int index : indices) {
      if (index < 0 || index >= program_.buffers_size()) {
        problems_.Add(path, " names the buffer ", index, " of ", program_.buffers_size());
        return false;
      }
    }
    return true;
  }

  // Code is made for the types of its operands and results, and for no others.
  void VerifyGenerated(const plan::Launch& launch, const std::string& path) {
    if ((launch.kernel() == kGeneratedKernel) != launch.has_generated()) {
      return problems_.Add(path, " of the kernel 'generated', and no other, names generated code");
    }
    if (!launch.has_generated()) return;
    if (launch.generated() < 0 || launch.generated() >= plan_.generated_size()) {
      return problems_.Add(path, " names the generated kernel ", launch.generated(), " of ",
                           plan_.generated_size());
    }
    const auto& kernel = plan_.generated(launch.generated());
    const auto fits = [&](const auto& buffers, const auto& tensors) {
      if (buffers.size() != tensors.size()) return false;
      for (int i = 0; i < buffers.size(); ++i) {
        const auto& local = program_.buffers(buffers[i]).local();
        if (local.dtype() != tensors[i].dtype() ||
            !std::equal(local.shape().begin(), local.shape().end(), tensors[i].shape().begin(),
                        tensors[i].shape().end())) {
          return false;
        }
      }
      return true;
    };
    if (!fits(launch.operands(), kernel.operands()) || !fits(launch.results(), kernel.results())) {
      problems_.Add(path, " has other operands or results than the code of '", kernel.name(),
                    "' is made for");
    }
    if (!launch.attributes().empty()) problems_.Add(path, " gives attributes to generated code");
  }

  void VerifyInstruction(int segment, int index) {
    const auto& instruction = program_.segments(segment).instructions(index);
    const std::string path = InstructionPath(plan_, index_, segment, index);
    const Access access = AccessOf(instruction);
    if (!VerifyIndices(path, access.reads) || !VerifyIndices(path, access.writes)) return;
    switch (instruction.kind_case()) {
      case plan::Instruction::kLaunch:
        if (instruction.launch().kernel().empty()) problems_.Add(path, " names no kernel");
        VerifyGenerated(instruction.launch(), path);
        for (const auto& [name, attribute] : instruction.launch().attributes()) {
          if (attribute.value_case() == plan::Attribute::VALUE_NOT_SET) {
            problems_.Add(path, ": the attribute '", name, "' has no value");
          }
        }
        break;
      case plan::Instruction::kCollective:
        VerifyCollective(instruction.collective(), path);
        break;
      case plan::Instruction::kCopy: {
        const auto& source = program_.buffers(instruction.copy().source()).local();
        const auto& target = program_.buffers(instruction.copy().target()).local();
        if (source.dtype() != target.dtype() || CheckedBytes(source) != CheckedBytes(target)) {
          problems_.Add(path, " copies between tensors of different type or size");
        }
        break;
      }
      case plan::Instruction::kSlice: {
        const auto& slice = instruction.slice();
        if (VerifyAxes(slice.axes(), path)) {
          VerifyPieces(program_.buffers(slice.source()), program_.buffers(slice.target()),
                       slice.axes(), slice.dim(), std::nullopt, path);
        }
        break;
      }
      case plan::Instruction::kSend:
        VerifyEnd(instruction.send().channel(), instruction.send().buffer(), /*sends=*/true,
                  program_.segments(segment).name(), path);
        break;
      case plan::Instruction::kReceive:
        VerifyEnd(instruction.receive().channel(), instruction.receive().buffer(),
                  /*sends=*/false, program_.segments(segment).name(), path);
        break;
      case plan::Instruction::kWait:
        break;  // with the others of its segment
      case plan::Instruction::KIND_NOT_SET:
        problems_.Add(path, " is not known to this version");
        break;
    }
  }

  // One end of a channel. Its sharding is checked with those of the others.
  void VerifyEnd(int index, int buffer_index, bool sends, const std::string& segment,
                 const std::string& path) {
    if (index < 0 || index >= plan_.channels_size()) {
      return problems_.Add(path, " names the channel ", index, " of ", plan_.channels_size());
    }
    const plan::Channel& channel = plan_.channels(index);
    const int grid = sends ? channel.source_grid() : channel.target_grid();
    if (grid != grid_index_) {
      return problems_.Add(path, ": the channel '", channel.name(), "' is ",
                           sends ? "sent" : "received", " by grid ", grid, ", not by grid ",
                           grid_index_);
    }
    // What runs for the last microbatch sends and receives as what it takes the place of.
    std::set<std::string>& places = (sends ? sent_ : received_)[index];
    const bool again = !places.insert(segment).second;
    if (again || PlainSegment(*places.begin()) != PlainSegment(*places.rbegin())) {
      problems_.Add(path, ": the channel '", channel.name(), "' is ", sends ? "sent" : "received",
                    " elsewhere too");
    }
    const plan::Buffer& buffer = program_.buffers(buffer_index);
    if (buffer.kind() != plan::TRANSFER) {
      problems_.Add(path, ": ", BufferName(buffer), " is not a transfer buffer");
    }
    if (buffer.local().dtype() != channel.global().dtype() ||
        GlobalShape(buffer) != ShapeOf(channel.global())) {
      problems_.Add(path, ": ", BufferName(buffer),
                    " is not of the type and shape of the channel '", channel.name(), "', ",
                    FromPlan(channel.global()).ToString());
    }
  }

  // Every channel of the grid has both its ends.
  void VerifyEnds() {
    for (int i = 0; i < plan_.channels_size(); ++i) {
      const plan::Channel& channel = plan_.channels(i);
      if (channel.source_grid() == grid_index_ && sent_.count(i) == 0) {
        problems_.Add(Here(), ": nothing sends the channel '", channel.name(), "'");
      }
      if (channel.target_grid() == grid_index_ && received_.count(i) == 0) {
        problems_.Add(Here(), ": nothing receives the channel '", channel.name(), "'");
      }
    }
  }

  void VerifyCollective(const plan::Collective& collective, const std::string& path) {
    const plan::Collective::Kind kind = collective.kind();
    if (!Reduces(kind) && !Cuts(kind) && !Joins(kind)) {
      return problems_.Add(path, " is a collective that this version does not know");
    }
    if (!Reduces(kind)) {
      if (collective.reduction() != plan::Collective::REDUCTION_UNSPECIFIED) {
        problems_.Add(path, " has a reduction, but reduces nothing");
      }
    } else if (collective.reduction() != plan::Collective::SUM &&
               collective.reduction() != plan::Collective::MAX) {
      problems_.Add(path, " has a reduction that this version does not know");
    }
    const bool axes_known = VerifyAxes(collective.axes(), path);
    if (collective.operands_size() != collective.results_size() || collective.operands().empty()) {
      problems_.Add(path, " has ", collective.operands_size(), " operands and ",
                    collective.results_size(), " results");
      return;
    }
    if (collective.split_dims_size() != (Cuts(kind) ? collective.operands_size() : 0) ||
        collective.concat_dims_size() != (Joins(kind) ? collective.operands_size() : 0)) {
      return problems_.Add(path, " has ", collective.operands_size(), " operands, but cuts along ",
                           collective.split_dims_size(), " dimensions and joins along ",
                           collective.concat_dims_size());
    }
    if (collective.stream() < 0) {
      problems_.Add(path, " is on the stream ", collective.stream());
    }
    for (int i = 0; i < collective.operands_size(); ++i) {
      const auto& operand = program_.buffers(collective.operands(i)).local();
      const auto& result = program_.buffers(collective.results(i)).local();
      if (kind != plan::Collective::ALL_REDUCE) {
        if (!axes_known) continue;
        VerifyPieces(program_.buffers(collective.operands(i)),
                     program_.buffers(collective.results(i)), collective.axes(),
                     Cuts(kind) ? std::optional(collective.split_dims(i)) : std::nullopt,
                     Joins(kind) ? std::optional(collective.concat_dims(i)) : std::nullopt, path);
      } else if (operand.dtype() != result.dtype() ||
                 CheckedBytes(operand) != CheckedBytes(result)) {
        problems_.Add(path, ": operand and result ", i, " differ in type or size");
      }
      if (!Reduces(kind)) continue;
      switch (operand.dtype()) {
        case plan::F32:
        case plan::F64:
        case plan::F16:
        case plan::BF16:
        case plan::I64:
        case plan::I32:
          break;
        default:
          problems_.Add(path, ": operand ", i, " is of a type that cannot be reduced");
      }
    }
  }

  // What a segment starts it waits for, once, before it ends. Collectives of one group follow each
  // other: those that are started are on one stream, and of others none runs while one is on its
  // way.
  void VerifyWaits(int segment_index) {
    const auto& segment = program_.segments(segment_index);
    std::set<int> started;
    std::map<std::vector<std::string>, std::set<int>> by_axes;  // the same
    for (int i = 0; i < segment.instructions_size(); ++i) {
      const auto& instruction = segment.instructions(i);
      const auto path = [&] { return InstructionPath(plan_, index_, segment_index, i); };
      if (instruction.has_wait()) {
        const int index = instruction.wait().collective();
        if (started.erase(index) > 0) {
          by_axes[SortedAxes(segment.instructions(index).collective())].erase(index);
        } else {
          problems_.Add(path(), " waits for instruction ", index,
                        ", which is no collective on its way");
        }
      }
      if (!instruction.has_collective()) continue;
      const std::vector<std::string> axes = SortedAxes(instruction.collective());
      const int stream = instruction.collective().stream();
      if (stream <= 0) {
        for (const int other : by_axes[axes]) {
          problems_.Add(path(), " runs while instruction ", other, ", which is over {",
                        absl::StrJoin(axes, ", "), "} too, is on its way");
        }
        continue;
      }
      started.insert(i);
      by_axes[axes].insert(i);
      const int own = streams_.emplace(axes, stream).first->second;
      if (own != stream) {
        problems_.Add(path(), " is on the stream ", stream, ", but others over {",
                      absl::StrJoin(axes, ", "), "} are on the stream ", own);
      }
    }
    for (const int index : started) {
      problems_.Add(InstructionPath(plan_, index_, segment_index, index),
                    " is started, but the segment does not wait for it");
    }
  }

  static std::vector<std::string> SortedAxes(const plan::Collective& collective) {
    std::vector<std::string> axes(collective.axes().begin(), collective.axes().end());
    std::sort(axes.begin(), axes.end());
    return axes;
  }

  using Axes = google::protobuf::RepeatedPtrField<std::string>;

  // Axes of the grid, each once, in its order: so the ranks of a group, which ascend, have the
  // pieces in their order.
  bool VerifyAxes(const Axes& axes, const std::string& path) {
    const auto refuse = [&](const std::string& name, const char* why) {
      problems_.Add(path, " is over the axis '", name, "', ", why);
      return false;
    };
    std::set<std::string> seen;
    int last = -1;
    for (const std::string& name : axes) {
      const auto found = std::find_if(grid_.axes().begin(), grid_.axes().end(),
                                      [&](const auto& axis) { return axis.name() == name; });
      const int place = static_cast<int>(found - grid_.axes().begin());
      if (found == grid_.axes().end()) return refuse(name, "which the grid does not have");
      if (!seen.insert(name).second) return refuse(name, "and that twice");
      if (place < last) return refuse(name, "which is not in the grid's order");
      last = place;
    }
    return true;
  }

  // `result` is `operand` cut along one dimension, or joined along one, into as many pieces as
  // the axes have ranks.
  void VerifyPieces(const plan::Buffer& operand, const plan::Buffer& result, const Axes& axes,
                    std::optional<int> cut, std::optional<int> joined, const std::string& path) {
    const std::vector<int64_t> from = ShapeOf(operand.local());
    const std::vector<int64_t> to = ShapeOf(result.local());
    for (const std::optional<int>& dim : {cut, joined}) {
      if (!dim || (*dim >= 0 && *dim < static_cast<int>(from.size()))) continue;
      return problems_.Add(path, " is along dimension ", *dim, " of ", from.size());
    }
    if (cut && joined && *cut == *joined) {
      return problems_.Add(path, " cuts and joins the same dimension ", *cut);
    }
    const int64_t pieces =
        GridLayout(grid_).PieceOf(grid_.first_rank(), {axes.begin(), axes.end()}).count;
    bool fits = operand.local().dtype() == result.local().dtype() && from.size() == to.size();
    for (int dim = 0; fits && dim < static_cast<int>(from.size()); ++dim) {
      const bool cut_here = cut && *cut == dim;
      const int64_t whole = cut_here ? from[dim] : to[dim];
      const int64_t piece = cut_here ? to[dim] : from[dim];
      const int64_t parts = cut_here || (joined && *joined == dim) ? pieces : 1;
      fits = whole % parts == 0 && whole / parts == piece;
    }
    if (!fits) {
      problems_.Add(path, " makes ", FromPlan(result.local()).ToString(), " of ",
                    FromPlan(operand.local()).ToString(), " on ", pieces, " ranks");
    }
  }

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  const int grid_index_;
  const plan::Grid& grid_;
  Problems& problems_;
  std::map<std::string, const plan::Parameter*> parameters_;
  std::map<std::string, const plan::Input*> inputs_;
  std::map<std::pair<std::string, std::string>, const plan::OptimizerState*> states_;
  std::set<std::tuple<plan::BufferKind, std::string, std::string>> roles_;
  std::map<int, std::set<std::string>> sent_, received_;  // segments, by channel
  std::map<std::vector<std::string>, int> streams_;       // of what is started, by axes
};

}  // namespace

void VerifyPrograms(const plan::Plan& plan, Problems& problems) {
  for (int i = 0; i < plan.programs_size(); ++i) ProgramVerifier(plan, i, problems).Verify();
  VerifySchedules(plan, problems);
}

}  // namespace oriel::runtime
