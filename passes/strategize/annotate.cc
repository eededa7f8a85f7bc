#include <map>
#include <set>

#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/work.h"
#include "ir/oriel/segment_roles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/passes.h"
#include "passes/strategize/positions.h"
#include "passes/strategize/repeated_work.h"
#include "passes/strategize/schedule.h"
#include "passes/strategize/segment_values.h"
#include "passes/strategize/sharding.h"
#include "passes/strategize/storage_groups.h"
#include "passes/strategize/strategy_pass.h"
#include "passes/strategize/tensor_cuts.h"

namespace oriel {

#define GEN_PASS_DEF_ANNOTATE
#include "passes/strategize/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;

// Files have one optimizer state of a weight, so its parts are all trained, or none.
LogicalResult checkParts(mlir::ModuleOp program) {
  llvm::StringMap<bool> trained;  // by ONNX name
  for (auto part : program.getOps<ir::ParameterOp>()) {
    if (!partOf(part)) continue;
    auto known = trained.try_emplace(part.getOnnxName(), part.getTrainable()).first;
    if (known->second == part.getTrainable()) continue;
    return part.emitError("of \"")
           << part.getOnnxName() << "\", which is cut into parts, only some columns have a "
           << "gradient; keep it whole: `shardings: [{parameters: \"" << part.getOnnxName()
           << "\", tp: none}]` in the strategy";
  }
  return success();
}

class Annotator {
 public:
  Annotator(mlir::ModuleOp module, const Strategy& strategy, llvm::raw_ostream* explain)
      : module_(module), strategy_(strategy), explain_(explain), grid_(gridOf(strategy)) {}

  // Finds what tensor parallelism cuts, and a grid for that and for context parallelism. `warned`
  // are kinds of ops that a warning has told of.
  LogicalResult prepare(const Positions& positions, std::set<WholePositions>& warned) {
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      const Strategy::Module* own = moduleOf(strategy_, parameter.getOnnxName().str());
      parameter.setModule(own && own->mesh ? own->name : "");
    }
    if (ir::segmentsOfKind(module_, "forward").empty()) {
      return module_.emitError("has no segment @forward: run the train phase first");
    }
    if (failed(checkParts(module_))) return failure();
    mlir::FailureOr<TensorCuts> cuts = findTensorCuts(module_, strategy_, grid_, explain_);
    if (failed(cuts)) return failure();
    cuts_ = *std::move(cuts);
    if (failed(refineGrid())) return failure();
    if (contextSizes().empty()) return success();
    const auto ops = opsOfAllPositions(positions, module_);
    for (const std::string& module : modules()) refineContext(module, ops, warned);
    warnOfWholePositions(module_, grid_, positions);
    return success();
  }

  // Sizes of cp, of all meshes that have it.
  std::set<int64_t> contextSizes() const {
    std::set<int64_t> sizes;
    for (const std::string& module : modules()) {
      const int64_t ranks = grid_.meshAxisSize("cp", module);
      if (ranks > 1) sizes.insert(ranks);
    }
    return sizes;
  }

  StorageGrid storageGrid() { return {module_, &cuts_, &grid_}; }

  void annotateAll() {
    setGrid(module_, grid_);
    AxisSizes sizes(grid_);
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      annotate(parameter, sizes);
    }
    llvm::DenseSet<mlir::Type> sequenceTypes;
    if (strategy_.sequenceParallel) sequenceTypes = setSequenceTypes(sizes);
    warnOfUnsplit(
        module_, grid_, [&](const std::string& symbol) { return cuts_.isKnown(symbol); },
        cuts_.blocks, sequenceTypes);
    for (mlir::func::FuncOp forward : ir::segmentsOfKind(module_, "forward")) {
      warnOfCoupledSamples(forward);
    }
  }

 private:
  // Those with a mesh of their own, and "" for all others.
  std::vector<std::string> modules() const {
    std::vector<std::string> names = {""};
    for (const ModuleMesh& module : grid_.modules) names.push_back(module.module);
    return names;
  }

  // So that ranks that have different positions have pieces of something else where an op needs all
  // positions.
  void refineContext(const std::string& module,
                     const std::map<WholePositions, mlir::Operation*>& ops,
                     std::set<WholePositions>& warned) {
    const int64_t ranks = grid_.meshAxisSize("cp", module);
    if (ranks == 1) return;
    for (const auto& [dims, op] : ops) {
      llvm::SmallVector<int64_t> taken(dims.size(), grid_.meshAxisSize("tp", module));
      taken.front() = grid_.sizeOf(grid_.dataAxes(module));
      const RankParts parts = partsOf(ranks, dims, taken);
      // Where the parts of several ops don't nest, some have fewer pieces.
      if (!parts.outer.empty()) refine(&grid_, "cp", parts.outer, module);
      const bool isRepeated = parts.pieces < ranks && ir::workFlops(op) > 0;
      if (isRepeated && warned.insert(dims).second) warnOfRepetition(op, parts.pieces, ranks);
    }
  }

  void warnOfRepetition(mlir::Operation* op, int64_t pieces, int64_t ranks) {
    op->emitWarning("needs all positions, and its other dimensions make ")
        << pieces << (pieces == 1 ? " piece" : " pieces") << " for the " << ranks
        << " ranks of cp: " << ranks / pieces
        << " ranks each compute the same of it. Choose a cp that divides the "
        << "heads that tp leaves a rank";
  }

  // So that each range of ranks that cuts a parameter is made of whole atomic axes.
  LogicalResult refineGrid() {
    std::map<std::string, std::vector<int64_t>> outerSizes;  // by module
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      const TensorCuts::Cut* cut = cuts_.of(parameter);
      if (!cut) continue;
      std::vector<int64_t>& sizes = outerSizes[parameter.getModule().str()];
      const int64_t ranks = grid_.meshAxisSize("tp", parameter.getModule());
      for (int64_t size : {cut->range.outer, cut->range.outer * cut->range.size}) {
        if (size > 1 && size < ranks) sizes.push_back(size);
      }
    }
    for (const auto& [module, sizes] : outerSizes) {
      if (sizes.empty()) continue;
      std::optional<CutClash> clash = refine(&grid_, "tp", sizes, module);
      if (!clash) continue;
      mlir::InFlightDiagnostic error = module_.emitError("some layers need ")
                                       << clash->first
                                       << " groups of tensor-parallel ranks and others "
                                       << clash->second << ", which do not nest: choose another tp";
      for (const int64_t size : {clash->first, clash->second}) noteCutOf(size, module, error);
      return error;
    }
    return success();
  }

  // Names the first parameter of the module that is cut at the borders of so many groups.
  void noteCutOf(int64_t size, llvm::StringRef module, mlir::InFlightDiagnostic& error) {
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      const TensorCuts::Cut* cut = cuts_.of(parameter);
      if (!cut || parameter.getModule() != module) continue;
      if (cut->range.outer != size && cut->range.outer * cut->range.size != size) continue;
      error.attachNote(parameter.getLoc())
          << size << " groups, for \"" << uniqueName(parameter) << '"';
      return;
    }
  }

  // The atomic axes of a range of a module's tensor-parallel ranks.
  AxisList axesOf(RankRange range, llvm::StringRef module, const AxisSizes& sizes) const {
    AxisList result;
    int64_t outer = 1;
    for (int axis : sizes.findAll(grid_.atomicAxes("tp", module))) {
      if (outer >= range.outer && outer < range.outer * range.size) result.push_back(axis);
      outer *= sizes[axis];
    }
    return result;
  }

  // Every cut divides: forced ones, and those of blocks, have been checked.
  void annotate(ir::ParameterOp parameter, const AxisSizes& sizes) {
    Sharding use = Sharding::replicated(parameter.getTensorType().getRank());
    if (const TensorCuts::Cut* cut = cuts_.of(parameter)) {
      use.dims[cut->dim] = axesOf(cut->range, parameter.getModule(), sizes);
    }
    Sharding stored = storageOf(parameter, use, sizes);
    mlir::MLIRContext* context = module_.getContext();
    auto attribute = [&](int level) {
      const Sharding& sharding = strategy_.zero >= level ? stored : use;
      return sharding.isReplicated() ? ir::ShardingAttr() : sizes.toAttr(context, sharding);
    };
    if (!use.isReplicated()) parameter.setUseAttr(sizes.toAttr(context, use));
    parameter.setStorageAttr(attribute(3));
    parameter.setGradientAttr(attribute(2));
    parameter.setStateAttr(attribute(1));
  }

  // The use sharding, cut further over the axes that ZeRO shards.
  Sharding storageOf(ir::ParameterOp parameter, const Sharding& use, const AxisSizes& sizes) const {
    return cutFurther(use, parameter.getTensorType().getShape(),
                      sizes.findAll(grid_.zeroAxes(parameter.getModule())), sizes);
  }

  // Such an op is right, but every data-parallel rank does all of it.
  void warnOfCoupledSamples(mlir::func::FuncOp forward) {
    int64_t ranks = grid_.sizeOf(grid_.commonDataAxes());
    if (ranks == 1) return;
    forward.walk([&](mlir::Operation* op) {
      if (!op->hasTrait<ir::CouplesSamples>()) return;
      op->emitWarning("couples the samples of a batch, so each of the ")
          << ranks << " data-parallel ranks gathers the batch and computes all of it: a merge of "
          << "image features splits where it replaces whole rows and the recipe says how many "
          << "(`images: {per_sample, rows_per_image}`)";
    });
  }

  // Between blocks, values can be kept in pieces along the positions: those of these types.
  llvm::DenseSet<mlir::Type> setSequenceTypes(const AxisSizes& sizes) {
    mlir::Builder builder(module_.getContext());
    llvm::SmallVector<mlir::Attribute> attributes;
    llvm::DenseSet<mlir::Type> seen, types;
    for (const TensorBlock& block : cuts_.blocks) {
      if (block.reduction->getNumResults() != 1) continue;
      auto type = ir::tensorType(block.reduction->getResult(0));
      if (type.getRank() < 2 || !seen.insert(type).second) continue;
      llvm::StringRef module = ir::ParameterOp(block.cuts.front().parameter).getModule();
      int64_t positions = type.getDimSize(type.getRank() - 2);
      if (positions == 1) continue;  // nothing to cut
      int64_t ranks = grid_.meshAxisSize("tp", module);
      if (type.getRank() == 2) ranks *= sizes.product(sizes.findAll(grid_.dataAxes(module)));
      if (positions % ranks == 0) {
        attributes.push_back(mlir::TypeAttr::get(type));
        types.insert(type);
        continue;
      }
      block.reduction->emitWarning("no sequence parallelism for values of type ")
          << type << (module.empty() ? "" : " of the module ") << module << ": " << ranks
          << " ranks do not divide the " << positions << " positions";
    }
    module_->setAttr(kSequenceTypes, builder.getArrayAttr(attributes));
    return types;
  }

  mlir::ModuleOp module_;
  const Strategy& strategy_;
  llvm::raw_ostream* explain_;
  Grid grid_;
  TensorCuts cuts_;
};

// Holds the strategy's patterns against the parameters of all programs.
LogicalResult checkNames(mlir::ModuleOp module, const Strategy& strategy) {
  std::set<std::string> names;
  for (mlir::ModuleOp program : ir::programsOf(module)) {
    for (auto parameter : program.getOps<ir::ParameterOp>()) {
      names.insert(parameter.getOnnxName().str());
    }
  }
  if (auto leftOut = module->getAttrOfType<mlir::ArrayAttr>(ir::kLeftOutAttr)) {
    for (auto name : leftOut.getAsRange<mlir::StringAttr>()) names.insert(name.str());
  }
  absl::Status checked = checkPatterns(strategy, {names.begin(), names.end()});
  if (checked.ok()) return success();
  return module.emitError(std::string(checked.message()));
}

// The strategy of one grid: its mesh, and the modules that it hosts. Fails where one of those needs
// another number of ranks.
mlir::FailureOr<Strategy> strategyOf(mlir::ModuleOp program, int64_t grid, Strategy strategy) {
  strategy.mesh = strategy.meshOfGrid(grid);
  strategy.pipeline.reset();
  llvm::erase_if(strategy.modules, [&](const Strategy::Module& module) {
    return !module.mesh ||
           llvm::none_of(program.getOps<ir::ParameterOp>(), [&](ir::ParameterOp parameter) {
             const Strategy::Module* own = moduleOf(strategy, parameter.getOnnxName().str());
             return own && own->name == module.name;
           });
  });
  for (const Strategy::Module& module : strategy.modules) {
    if (module.mesh->ranks() == strategy.mesh.ranks()) continue;
    return program.emitError("the mesh of module '")
           << module.name << "' has " << module.mesh->ranks() << " ranks, but its stage is on "
           << strategy.mesh.ranks() << ": give the stage a mesh of its own instead, or change "
           << "one of the two";
  }
  return strategy;
}

// "\"input_ids\" (dimension 1), .." of the model's inputs with a dimension of that size.
std::string inputsOfSize(mlir::ModuleOp module, int64_t size) {
  std::vector<std::string> inputs;
  for (mlir::func::FuncOp forward : ir::segmentsOfKind(module, "forward")) {
    for (mlir::BlockArgument argument : forward.getArguments()) {
      const auto role = ir::argumentRole(forward, argument.getArgNumber());
      if (failed(role) || role->kind != ir::ValueKind::kInput) continue;
      for (const auto& [dim, own] : llvm::enumerate(ir::tensorType(argument).getShape())) {
        if (own != size) continue;
        inputs.push_back(llvm::formatv("\"{0}\" (dimension {1})", role->ref, dim));
        break;
      }
    }
  }
  return llvm::join(inputs, ", ");
}

// Positions must divide over the context-parallel ranks of every mesh that has some: of several
// losses, as those of tokens further ahead, those of one.
LogicalResult checkPositions(mlir::ModuleOp module, const Positions& positions,
                             const std::set<int64_t>& contextSizes) {
  if (positions.losses.empty()) {
    return module.emitError("cp = ")
           << *contextSizes.rbegin() << " splits positions, and the loss is no sum over what has "
           << "some, as logits of [samples, positions, classes], nor does the model look up rows "
           << "for an input of [samples.., positions] integers that stay apart: leave cp out";
  }
  for (int64_t ranks : contextSizes) {
    auto isDivided = [&](const auto& loss) {
      return ir::tensorType(loss.first).getDimSize(loss.second) % ranks == 0;
    };
    if (llvm::any_of(positions.losses, isDivided)) continue;
    auto [value, dim] = positions.losses.front();
    const int64_t size = ir::tensorType(value).getDimSize(dim);
    const std::string inputs = inputsOfSize(module, size);
    return mlir::emitError(value.getLoc(), "cp = ")
           << ranks << " does not divide the " << size << " positions of the loss (dimension "
           << dim << " of " << value.getType()
           << "): choose another cp, or another length of the sequence"
           << (inputs.empty() ? "" : ", which is that of " + inputs);
  }
  return success();
}

struct Annotate : StrategyPass<impl::AnnotateBase<Annotate>> {
  using StrategyPass::StrategyPass;
  Annotate(Strategy strategy, int64_t count, bool explained) : StrategyPass(std::move(strategy)) {
    microbatches = count;
    explain = explained;
  }

  mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) override {
    if (microbatches < 1) {
      return module.emitError("a step of ")
             << microbatches.getValue() << " microbatches: at least one is needed";
    }
    if (failed(checkNames(module, strategy))) return failure();
    const llvm::SmallVector<mlir::ModuleOp> programs = llvm::to_vector(ir::programsOf(module));
    std::vector<Strategy> strategies;
    for (auto [grid, program] : llvm::enumerate(programs)) {
      for (mlir::func::FuncOp forward : ir::segmentsOfKind(program, "forward")) {
        if (failed(ir::SegmentRoles::read(forward))) return failure();
      }
      mlir::FailureOr<Strategy> own = strategyOf(program, grid, strategy);
      if (failed(own)) return failure();
      strategies.push_back(*std::move(own));
    }
    std::vector<Annotator> annotators;
    std::set<int64_t> contextSizes;
    for (auto [program, own] : llvm::zip_equal(programs, strategies)) {
      annotators.emplace_back(program, own, explain ? &llvm::errs() : nullptr);
      contextSizes.merge(annotators.back().contextSizes());
    }
    Positions positions;
    if (!contextSizes.empty()) {
      positions = findPositions(module);
      if (failed(checkPositions(module, positions, contextSizes))) return failure();
      setPositions(positions);
    }
    std::set<WholePositions> warned;
    for (Annotator& annotator : annotators) {
      if (failed(annotator.prepare(positions, warned))) return failure();
    }
    if (strategy.zero > 0) {
      std::vector<StorageGrid> grids;
      for (Annotator& annotator : annotators) grids.push_back(annotator.storageGrid());
      groupStorageRanks(grids, strategy.zero);
    }
    for (Annotator& annotator : annotators) annotator.annotateAll();
    // The stages of a pipeline have theirs already.
    if (programs.front() == module) setSchedule(module, accumulationSchedule(microbatches));
    return success();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createAnnotate(Strategy strategy, int64_t microbatches, bool explain) {
  return std::make_unique<Annotate>(std::move(strategy), microbatches, explain);
}

}  // namespace oriel
