#include "passes/emit/emit.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "ir/exec/exec.h"
#include "ir/oriel/location.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/emit/translate.h"
#include "passes/generate/code.h"
#include "passes/generate/linalg_form.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/padding.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/placement_attribute.h"
#include "passes/strategize/programs.h"
#include "runtime/plan/device.h"
#include "runtime/plan/plan_types.h"

namespace oriel {

namespace {

using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::success;

plan::BufferKind bufferKind(llvm::StringRef kind) {
  return llvm::StringSwitch<plan::BufferKind>(kind)
      .Case("parameter", plan::PARAMETER)
      .Case("optimizer_state", plan::OPTIMIZER_STATE)
      .Case("gradient", plan::GRADIENT)
      .Case("step_gradient", plan::STEP_GRADIENT)
      .Case("accumulator", plan::ACCUMULATOR)
      .Case("input", plan::INPUT)
      .Case("scalar", plan::SCALAR)
      .Case("constant", plan::CONSTANT)
      .Case("stash", plan::STASH)
      .Case("temporary", plan::TEMPORARY)
      .Case("output", plan::OUTPUT)
      .Case("transfer", plan::TRANSFER)
      .Default(plan::BUFFER_UNSPECIFIED);
}

plan::Collective::Kind collectiveKind(llvm::StringRef name) {
  return llvm::StringSwitch<plan::Collective::Kind>(name)
      .Case("all_reduce", plan::Collective::ALL_REDUCE)
      .Case("all_gather", plan::Collective::ALL_GATHER)
      .Case("reduce_scatter", plan::Collective::REDUCE_SCATTER)
      .Case("all_to_all", plan::Collective::ALL_TO_ALL)
      .Default(plan::Collective::KIND_UNSPECIFIED);
}

// What PTX is made for: PTX for an architecture runs on all behind it, too. Plans that name none
// run from sm_80 on.
std::vector<std::string> generatedArchitectures(const plan::Device& device) {
  std::vector<std::string> result(device.architectures().begin(), device.architectures().end());
  // What only one architecture has ("sm_90a") is not used.
  for (std::string& name : result) name.erase(name.find_last_of("0123456789") + 1);
  llvm::sort(result);
  result.erase(std::unique(result.begin(), result.end()), result.end());
  if (result.empty()) result.emplace_back("sm_80");
  return result;
}

class Emitter {
 public:
  Emitter(mlir::ModuleOp module, const Recipe& recipe, const EmitOptions& options,
          std::vector<Grid> grids)
      : module_(module), recipe_(recipe), options_(options), grids_(std::move(grids)) {}

  FailureOr<plan::Plan> run() {
    plan_.set_model_name(options_.modelName);
    *plan_.mutable_provenance() = options_.provenance;
    if (runtime::DeviceText(options_.device) != runtime::kHostDevice) {
      *plan_.mutable_device() = options_.device;
    }
    emitTraining();
    llvm::SmallVector<mlir::ModuleOp> programs = ir::programsOf(module_);
    // Each program has the grid of its number.
    for (auto [program, grid] : llvm::zip_equal(programs, grids_)) {
      emitGrid(grid);
      gridIndex_ = plan_.grids_size() - 1;
      for (auto parameter : program.getOps<ir::ParameterOp>()) {
        if (failed(emitParameter(parameter))) return failure();
      }
      auto lowered = program.getOps<exec::ProgramOp>();
      if (lowered.empty()) return program.emitError("has no exec.program: lower it first");
      if (failed(emitProgram(*lowered.begin()))) return failure();
      if (auto stages = program->getAttrOfType<mlir::ArrayAttr>(kStagesAttr)) {
        auto* names = plan_.mutable_programs(gridIndex_)->mutable_stages();
        for (auto stage : stages.getAsRange<mlir::StringAttr>()) names->Add(stage.str());
      }
    }
    const RankPlaces places = rankPlacesOf(module_);
    if (!places.areRanks()) plan_.set_placement_block(places.block);
    return std::move(plan_);
  }

 private:
  const Grid& grid() const { return grids_[gridIndex_]; }

  // Its ranks follow those of the grid before.
  void emitGrid(const Grid& source) {
    plan::Grid* grid = plan_.add_grids();
    grid->set_first_rank(plan_.world_size());
    plan_.set_world_size(plan_.world_size() + source.worldSize());
    for (const AtomicAxis& axis : source.axes) {
      plan::AtomicAxis* result = grid->add_axes();
      result->set_name(axis.name);
      result->set_size(axis.size);
    }
    emitMesh("", source.mesh, grid);
    for (const ModuleMesh& module : source.modules) emitMesh(module.module, module.mesh, grid);
  }

  void emitMesh(const std::string& module, const std::vector<MeshAxis>& mesh, plan::Grid* grid) {
    for (const MeshAxis& axis : mesh) {
      plan::MeshAxis* result = grid->add_mesh();
      result->set_module(module);
      result->set_name(axis.name);
      for (const std::string& name : axis.axes) result->add_axes(name);
    }
  }

  LogicalResult emitParameter(ir::ParameterOp op) {
    std::string name = uniqueName(op);
    names_[op.getSymName()] = name;
    auto [index, isNew] = parameterIndex_.try_emplace(name, plan_.parameters_size());
    if (!isNew) {
      addPlacement(op, plan_.mutable_parameters(index->second));
      return success();
    }
    plan::Parameter* parameter = plan_.add_parameters();
    parameter->set_name(name);
    parameter->set_trainable(op.getTrainable());
    parameter->set_module(op.getModule().str());
    addPlacement(op, parameter);
    emitInitialValue(op.getOnnxName().str(), parameter->mutable_initial());
    if (failed(toPlanTensor(op.getType(), op, parameter->mutable_global()))) return failure();
    if (std::optional<llvm::ArrayRef<int64_t>> shape = unpaddedShape(op)) {
      parameter->mutable_padded_shape()->Swap(parameter->mutable_global()->mutable_shape());
      parameter->mutable_global()->mutable_shape()->Assign(shape->begin(), shape->end());
      unpadded_[name] = *shape;
      if (std::optional<llvm::ArrayRef<int64_t>> groups = paddedGroups(op)) {
        parameter->mutable_padded_groups()->Assign(groups->begin(), groups->end());
      }
    }
    if (std::optional<ParameterPart> part = partOf(op)) {
      plan::PartOf* whole = parameter->mutable_part_of();
      whole->set_tensor(op.getOnnxName().str());
      whole->mutable_shape()->Assign(part->whole.begin(), part->whole.end());
      whole->mutable_start()->Assign(part->start.begin(), part->start.end());
    }
    return success();
  }

  // The home is the first one.
  void addPlacement(ir::ParameterOp op, plan::Parameter* parameter) {
    plan::Placement* placement = parameter->add_placements();
    placement->set_grid(gridIndex_);
    if (op.getStorage()) toPlanSharding(*op.getStorage(), placement->mutable_storage());
    if (!op->hasAttr(kCopyAttr)) {
      parameter->mutable_placements()->SwapElements(0, parameter->placements_size() - 1);
    }
  }

  void emitInitialValue(const std::string& name, plan::InitialValue* initial) {
    const Recipe::Distribution* made = recipe_.initialValueOf(name);
    if (!made) {
      initial->set_file(options_.weightsFile);
      initial->set_tensor(name);
      return;
    }
    switch (made->kind) {
      case Recipe::Distribution::Kind::kConstant:
        initial->set_constant(made->first);
        return;
      case Recipe::Distribution::Kind::kNormal:
        initial->set_seed(recipe_.init.seed);
        initial->mutable_normal()->set_mean(made->first);
        initial->mutable_normal()->set_deviation(made->second);
        return;
      case Recipe::Distribution::Kind::kUniform:
        initial->set_seed(recipe_.init.seed);
        initial->mutable_uniform()->set_low(made->first);
        initial->mutable_uniform()->set_high(made->second);
        return;
    }
  }

  void emitTraining() {
    plan::Training* training = plan_.mutable_training();
    int64_t dataParallel = std::numeric_limits<int64_t>::max();
    for (const Grid& grid : grids_) {
      dataParallel = std::min(dataParallel, grid.sizeOf(grid.commonDataAxes()));
    }
    training->set_global_batch(recipe_.globalBatch);
    training->set_micro_batch(recipe_.microBatch);
    training->set_data_parallel(dataParallel);
    training->set_steps(recipe_.steps);
    training->set_seed(recipe_.seed);
    training->set_ignore_index(recipe_.loss.ignoreIndex);
    training->set_label_shift(recipe_.loss.shift ? 1 : 0);
    plan::LearningRate* rate = training->mutable_learning_rate();
    switch (recipe_.schedule.kind) {
      case Recipe::ScheduleKind::kConstant:
        rate->set_kind(plan::LearningRate::CONSTANT);
        break;
      case Recipe::ScheduleKind::kLinear:
        rate->set_kind(plan::LearningRate::LINEAR);
        break;
      case Recipe::ScheduleKind::kCosine:
        rate->set_kind(plan::LearningRate::COSINE);
        break;
    }
    rate->set_peak(recipe_.optimizer.lr);
    rate->set_warmup_steps(recipe_.schedule.warmupSteps);
    rate->set_total_steps(recipe_.schedule.totalSteps);
    rate->set_final_ratio(recipe_.schedule.finalRatio);
    rate->set_hold_steps(recipe_.schedule.holdSteps);
  }

  LogicalResult emitProgram(exec::ProgramOp op) {
    plan::Program* program = plan_.add_programs();
    program->set_first_rank(op.getFirstRank());
    program->set_rank_count(op.getRankCount());
    program->set_arena_bytes(op.getArenaBytes());
    bufferIndex_.clear();
    generatedIndex_.clear();
    for (auto kernel : op.getOps<exec::KernelOp>()) {
      if (failed(emitKernel(kernel))) return failure();
    }
    for (auto buffer : op.getOps<exec::BufferOp>()) {
      bufferIndex_[buffer.getSymName()] = program->buffers_size();
      if (failed(emitBuffer(buffer, program->add_buffers()))) return failure();
    }
    for (auto segment : op.getOps<exec::SegmentOp>()) {
      if (failed(emitSegment(segment, program->add_segments()))) return failure();
    }
    int64_t microbatches = 0;
    for (auto run : op.getOps<exec::RunOp>()) {
      plan::ScheduleEntry* entry = program->add_schedule();
      entry->set_segment(run.getSegment().str());
      entry->set_microbatch(run.getMicrobatch());
      microbatches = std::max<int64_t>(microbatches, run.getMicrobatch() + 1);
    }
    plan::Training* training = plan_.mutable_training();
    training->set_microbatches(std::max(microbatches, training->microbatches()));
    return success();
  }

  // Programs share what is equal.
  LogicalResult emitKernel(exec::KernelOp op) {
    plan::GeneratedKernel kernel;
    mlir::Block& block = op.getBody().front();
    for (mlir::Type type : block.getArgumentTypes()) {
      if (failed(toPlanTensor(type, op, kernel.add_operands()))) return failure();
    }
    for (mlir::Type type : block.getTerminator()->getOperandTypes()) {
      if (failed(toPlanTensor(type, op, kernel.add_results()))) return failure();
    }
    for (mlir::Operation& member : block.without_terminator()) {
      kernel.add_ops(member.getName().getStringRef().str());
    }
    const LaunchUnits units = unitsOf(op);
    kernel.set_units(units.units);
    kernel.set_unit_elements(units.elements);
    kernel.set_block_units(units.blockUnits);
    kernel.set_thread_elements(units.threadElements);
    std::string text;
    llvm::raw_string_ostream stream(text);
    op.getBody().front().print(stream);
    auto [index, isNew] = generatedByText_.try_emplace(text, plan_.generated_size());
    generatedIndex_[op.getSymName()] = index->second;
    if (!isNew) return success();
    kernel.set_name("generated" + std::to_string(plan_.generated_size()));
    const std::vector<std::string> targets = options_.device.kind() == runtime::kCudaDevice
                                                 ? generatedArchitectures(options_.device)
                                                 : hostTargets();
    for (const std::string& target : targets) {
      FailureOr<Image> image = compileKernel(op, kernel.name(), target);
      if (failed(image)) return failure();
      plan::GeneratedKernel::Image* made = kernel.add_images();
      made->set_target(image->target);
      made->set_code(std::move(image->code));
      made->set_entry(image->entry);
    }
    *plan_.add_generated() = std::move(kernel);
    return success();
  }

  LogicalResult emitBuffer(exec::BufferOp op, plan::Buffer* buffer) {
    buffer->set_name(op.getSymName().str());
    buffer->set_kind(bufferKind(op.getKind()));
    if (buffer->kind() == plan::BUFFER_UNSPECIFIED) {
      return op.emitOpError("has the unknown kind ") << op.getKind();
    }
    buffer->set_offset(op.getOffset());
    buffer->set_slot(op.getSlot().str());
    buffer->set_scale(1.0);
    for (int64_t offset : op.getCopyOffsets()) buffer->add_copy_offsets(offset);
    if (failed(toPlanTensor(op.getType(), op, buffer->mutable_local()))) return failure();
    emitSharding(op.getSharding(), buffer);
    bool ofParameter = buffer->kind() == plan::PARAMETER || runtime::IsGradient(buffer->kind()) ||
                       buffer->kind() == plan::OPTIMIZER_STATE;
    buffer->set_ref(ofParameter ? names_.lookup(op.getRef()) : op.getRef().str());
    if (op.getValue() && failed(toPlanBytes(*op.getValue(), op, buffer->mutable_data()))) {
      return failure();
    }
    if (buffer->kind() == plan::INPUT) return emitInput(op, buffer);
    if (buffer->kind() == plan::OPTIMIZER_STATE) emitOptimizerState(*buffer);
    return success();
  }

  void emitSharding(std::optional<ir::ShardingAttr> attribute, plan::Buffer* buffer) {
    *buffer->mutable_global_shape() = buffer->local().shape();
    if (!attribute) return;
    toPlanSharding(*attribute, buffer->mutable_sharding());
    for (auto [dim, axes] : llvm::enumerate(attribute->getDims().getAsRange<mlir::ArrayAttr>())) {
      for (auto axis : axes.getAsRange<mlir::StringAttr>()) {
        buffer->set_global_shape(dim, buffer->global_shape(dim) * grid().sizeOf({axis.str()}));
      }
    }
  }

  void toPlanSharding(ir::ShardingAttr attribute, plan::Sharding* sharding) {
    auto dims = attribute.getDims().getAsRange<mlir::ArrayAttr>();
    // A value that no axis cuts has no dimensions there.
    if (llvm::any_of(dims, [](mlir::ArrayAttr axes) { return !axes.empty(); })) {
      for (mlir::ArrayAttr axes : dims) addAxes(axes, sharding->add_dims()->mutable_axes());
    }
    addAxes(attribute.getSum(), sharding->mutable_partial());
    addAxes(attribute.getMax(), sharding->mutable_partial_max());
  }

  // What `oriel.images` says of an input: its kind, with the rows that an image takes of it, or
  // none where it counts them.
  struct Images {
    mlir::DictionaryAttr kind;
    mlir::IntegerAttr rows;
  };
  Images imagesOf(llvm::StringRef input) const {
    auto kinds = module_->getAttrOfType<mlir::ArrayAttr>(ir::kImagesAttr);
    if (!kinds) return {};
    for (auto kind : kinds.getAsRange<mlir::DictionaryAttr>()) {
      auto rows = kind.getAs<mlir::DictionaryAttr>("rows").getAs<mlir::IntegerAttr>(input);
      if (rows || kind.getAs<mlir::StringAttr>("count").getValue() == input) return {kind, rows};
    }
    return {};
  }

  LogicalResult emitInput(exec::BufferOp op, plan::Buffer* buffer) {
    const Images images = imagesOf(buffer->ref());
    // Several images of a sample may come one behind the other.
    const int64_t samples = recipe_.microBatch * plan_.training().data_parallel();
    if (buffer->local().shape().empty() || (!images.rows && buffer->global_shape(0) != samples)) {
      return op.emitError("the input '")
             << buffer->ref() << "' has no first dimension of " << samples
             << " samples (batch.micro of the recipe, on all data-parallel ranks); if it holds "
                "images, declare them under `images` in the recipe";
    }
    if (!inputs_.insert(buffer->ref()).second) return success();

    plan::Input* input = plan_.add_inputs();
    input->set_name(buffer->ref());
    *input->mutable_microbatch() = buffer->local();
    *input->mutable_microbatch()->mutable_shape() = buffer->global_shape();
    if (images.rows) {
      auto count = images.kind.getAs<mlir::StringAttr>("count");
      auto perSample = images.kind.getAs<mlir::IntegerAttr>("per_sample");
      input->mutable_images()->set_per_sample(perSample.getInt());
      input->mutable_images()->set_rows(images.rows.getInt());
      input->mutable_images()->set_count(count.str());
    }
    input->set_image_count(images.kind && !images.rows);
    auto bits = module_->getAttrOfType<mlir::StringAttr>(ir::kSampleBitsAttr);
    input->set_sample_bits(bits && bits.getValue() == buffer->ref());
    input->set_labels(buffer->ref() == recipe_.labelsInput());
    if (input->labels() && buffer->ref() != recipe_.loss.labels) {
      input->set_member(recipe_.loss.labels);
    }
    return success();
  }

  void emitOptimizerState(const plan::Buffer& buffer) {
    plan::OptimizerState* state = plan_.add_optimizer_states();
    state->set_parameter(buffer.ref());
    state->set_slot(buffer.slot());
    *state->mutable_global() = buffer.local();
    *state->mutable_global()->mutable_shape() = buffer.global_shape();
    auto unpadded = unpadded_.find(buffer.ref());
    if (unpadded != unpadded_.end()) {
      state->mutable_global()->mutable_shape()->Assign(unpadded->second.begin(),
                                                       unpadded->second.end());
    }
    *state->mutable_storage() = buffer.sharding();
  }

  LogicalResult emitSegment(exec::SegmentOp op, plan::Segment* segment) {
    segment->set_name(op.getSymName().str());
    segment->set_predicted_ms(op.getPredictedMs().convertToDouble());
    for (mlir::Operation& instruction : op.getBody().front()) {
      if (failed(emitInstruction(instruction, segment->add_instructions()))) return failure();
    }
    return success();
  }

  LogicalResult emitInstruction(mlir::Operation& op, plan::Instruction* instruction) {
    instruction->set_location(ir::locationText(op.getLoc()));
    if (auto launch = llvm::dyn_cast<exec::LaunchOp>(op)) {
      instruction->set_op(launch.getSourceOp().str());
      plan::Launch* result = instruction->mutable_launch();
      result->set_kernel(launch.getKernel().str());
      if (failed(checkKernel(launch))) return failure();
      addBuffers(launch.getInputs(), result->mutable_operands());
      addBuffers(launch.getOutputs(), result->mutable_results());
      if (launch.getGenerated()) {
        result->set_generated(generatedIndex_.lookup(*launch.getGenerated()));
      }
      for (mlir::NamedAttribute attribute : launch.getKernelAttributes()) {
        if (failed(toPlanAttribute(attribute.getValue(), &op,
                                   &(*result->mutable_attributes())[attribute.getName().str()]))) {
          return failure();
        }
      }
      return emitSplit(launch, result);
    }
    if (auto collective = llvm::dyn_cast<exec::CollectiveOp>(op)) {
      instruction->set_op(collective.getSourceOp().str());
      plan::Collective* result = instruction->mutable_collective();
      result->set_kind(collectiveKind(collective.getCollective()));
      if (std::optional<llvm::StringRef> reduction = collective.getReduction()) {
        result->set_reduction(*reduction == "max" ? plan::Collective::MAX : plan::Collective::SUM);
      }
      addAxes(collective.getAxes(), result->mutable_axes());
      addDims(collective.getSplitDims(), result->mutable_split_dims());
      addDims(collective.getConcatDims(), result->mutable_concat_dims());
      result->set_stream(collective.getStream());
      addBuffers(collective.getInputs(), result->mutable_operands());
      addBuffers(collective.getOutputs(), result->mutable_results());
      return success();
    }
    if (auto wait = llvm::dyn_cast<exec::WaitOp>(op)) {
      instruction->set_op(ir::WaitOp::getOperationName().str());
      instruction->mutable_wait()->set_collective(wait.getCollective());
      return success();
    }
    if (auto slice = llvm::dyn_cast<exec::SliceOp>(op)) {
      instruction->set_op(slice.getSourceOp().str());
      plan::Slice* result = instruction->mutable_slice();
      result->set_source(indexOf(slice.getInputs()[0]));
      result->set_target(indexOf(slice.getOutputs()[0]));
      result->set_dim(slice.getDim());
      addAxes(slice.getAxes(), result->mutable_axes());
      return success();
    }
    if (auto send = llvm::dyn_cast<exec::SendOp>(op)) {
      instruction->set_op(send.getSourceOp().str());
      const int buffer = indexOf(send.getInputs()[0]);
      plan::Channel* channel = emitChannel(send.getChannel(), buffer, instruction->mutable_send());
      channel->set_source_grid(gridIndex_);
      *channel->mutable_source() = bufferAt(buffer).sharding();
      return success();
    }
    if (auto receive = llvm::dyn_cast<exec::ReceiveOp>(op)) {
      instruction->set_op(receive.getSourceOp().str());
      const int buffer = indexOf(receive.getOutputs()[0]);
      plan::Channel* channel =
          emitChannel(receive.getChannel(), buffer, instruction->mutable_receive());
      channel->set_target_grid(gridIndex_);
      *channel->mutable_target() = bufferAt(buffer).sharding();
      return success();
    }
    if (auto copy = llvm::dyn_cast<exec::CopyOp>(op)) {
      instruction->set_op(copy.getSourceOp().str());
      instruction->mutable_copy()->set_source(indexOf(copy.getInputs()[0]));
      instruction->mutable_copy()->set_target(indexOf(copy.getOutputs()[0]));
      return success();
    }
    return op.emitOpError("is no instruction of a plan");
  }

  // The host's kernels are not known here, for plugins bring more.
  LogicalResult checkKernel(exec::LaunchOp launch) {
    const std::vector<std::string_view>& known = runtime::CudaKernels();
    const llvm::StringRef kernel = launch.getKernel();
    if (options_.device.kind() != runtime::kCudaDevice ||
        std::binary_search(known.begin(), known.end(), std::string_view(kernel))) {
      return success();
    }
    return launch.emitError("the op ")
           << launch.getSourceOp() << " needs the kernel \"" << kernel
           << "\", which Oriel has for the host only; compile with --device host";
  }

  const plan::Buffer& bufferAt(int index) const {
    return plan_.programs(plan_.programs_size() - 1).buffers(index);
  }

  // The channel of a plan::Send or plan::Receive, which both of its ends name.
  template <typename End>
  plan::Channel* emitChannel(llvm::StringRef name, int buffer, End* end) {
    auto [index, isNew] = channelIndex_.try_emplace(name, plan_.channels_size());
    if (isNew) {
      plan::Channel* channel = plan_.add_channels();
      channel->set_name(name.str());
      *channel->mutable_global() = bufferAt(buffer).local();
      *channel->mutable_global()->mutable_shape() = bufferAt(buffer).global_shape();
    }
    end->set_channel(index->second);
    end->set_buffer(buffer);
    return plan_.mutable_channels(index->second);
  }

  LogicalResult emitSplit(exec::LaunchOp launch, plan::Launch* result) {
    if (!launch.getRule() && !launch.getSplit()) return success();
    if (!launch.getRule() || !launch.getSplit()) {
      return launch.emitOpError("has a rule without a split, or a split without a rule");
    }
    auto [rule, isNew] = ruleIndex_.try_emplace(*launch.getRule(), plan_.rules_size());
    if (isNew && failed(toPlanRule(*launch.getRule(), launch, plan_.add_rules()))) return failure();
    result->mutable_split()->set_rule(rule->second);
    mlir::ArrayAttr split = launch.getSplitAttr();
    for (mlir::Attribute axes : split) {
      auto list = llvm::dyn_cast<mlir::ArrayAttr>(axes);
      if (!list || !llvm::all_of(list, llvm::IsaPred<mlir::StringAttr>)) {
        return launch.emitOpError("has a split that is no list of axes for each factor");
      }
      addAxes(list, result->mutable_split()->add_factors()->mutable_axes());
    }
    return success();
  }

  int indexOf(mlir::Attribute symbol) const {
    return bufferIndex_.lookup(llvm::cast<mlir::FlatSymbolRefAttr>(symbol).getValue());
  }

  void addBuffers(mlir::ArrayAttr symbols, google::protobuf::RepeatedField<int32_t>* indices) {
    for (mlir::Attribute symbol : symbols) indices->Add(indexOf(symbol));
  }

  static void addAxes(mlir::ArrayAttr axes,
                      google::protobuf::RepeatedPtrField<std::string>* names) {
    for (auto axis : axes.getAsRange<mlir::StringAttr>()) names->Add(axis.str());
  }

  // None where there are no dimensions.
  static void addDims(std::optional<llvm::ArrayRef<int64_t>> dims,
                      google::protobuf::RepeatedField<int32_t>* list) {
    if (dims) list->Add(dims->begin(), dims->end());
  }

  mlir::ModuleOp module_;
  const Recipe& recipe_;
  const EmitOptions& options_;
  std::vector<Grid> grids_;
  int gridIndex_ = 0;  // of the program that is emitted
  plan::Plan plan_;
  llvm::StringMap<int> parameterIndex_;  // by the plan's name
  llvm::StringMap<int> channelIndex_;
  llvm::StringSet<> inputs_;
  llvm::StringMap<std::string> names_;                 // by parameter symbol
  llvm::StringMap<llvm::ArrayRef<int64_t>> unpadded_;  // by the plan's name
  llvm::StringMap<int> bufferIndex_;
  llvm::StringMap<int> generatedIndex_;   // by the symbols of a program
  llvm::StringMap<int> generatedByText_;  // by the bodies
  llvm::DenseMap<mlir::Attribute, int> ruleIndex_;
};

}  // namespace

FailureOr<plan::Plan> emitPlan(mlir::ModuleOp module, const Recipe& recipe,
                               const EmitOptions& options) {
  std::vector<Grid> grids;
  for (mlir::ModuleOp program : ir::programsOf(module)) {
    FailureOr<Grid> grid = getGrid(program);
    if (failed(grid)) return failure();
    grids.push_back(*std::move(grid));
  }
  return Emitter(module, recipe, options, std::move(grids)).run();
}

}  // namespace oriel
