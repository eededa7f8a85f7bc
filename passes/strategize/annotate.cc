#include <map>
#include <set>

#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/work.h"
#include "ir/oriel/segment_roles.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/name_pattern.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/passes.h"
#include "passes/strategize/positions.h"
#include "passes/strategize/repeated_work.h"
#include "passes/strategize/schedule.h"
#include "passes/strategize/segment_values.h"
#include "passes/strategize/sharding.h"
#include "passes/strategize/strategy_option.h"
#include "passes/strategize/tensor_blocks.h"

namespace oriel {

#define GEN_PASS_DEF_ANNOTATE
#include "passes/strategize/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;

RankedTensorType typeOf(ir::ParameterOp parameter) {
  return llvm::cast<RankedTensorType>(parameter.getType());
}

// The dimension of a parameter that ranks of a tensor-parallel axis split, and which of them.
struct UseCut {
  int64_t dim;
  RankRange range;
};

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
    if (failed(checkParts()) || failed(forceCuts())) return failure();
    for (mlir::func::FuncOp forward : ir::segmentsOfKind(module_, "forward")) {
      if (failed(findCuts(forward))) return failure();
    }
    if (failed(refineGrid())) return failure();
    warnOfUnsplit(module_, grid_, [&](const std::string& symbol) {
      return cuts_.count(symbol) > 0 || forced_.count(symbol) > 0 || kept_.count(symbol) > 0;
    });
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

  // Files have one optimizer state of a weight, so its parts are all trained, or none.
  LogicalResult checkParts() {
    llvm::StringMap<bool> trained;  // by ONNX name
    for (auto part : module_.getOps<ir::ParameterOp>()) {
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

  // Ranks that shard what is stored of each module's parameters, by module.
  std::map<std::string, int64_t> storageRanks() {
    std::map<std::string, int64_t> ranks;
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      const std::string module = parameter.getModule().str();
      ranks.try_emplace(module, grid_.sizeOf(grid_.zeroAxes(module)));
    }
    return ranks;
  }

  // Elements that a rank stores in pieces or would, of a module's parameters, if `ranks` shard
  // those that they divide, and `fewer` of them the others.
  double storedElements(llvm::StringRef module, int64_t ranks, int64_t fewer) {
    double sum = 0;
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      // What is frozen has neither gradient nor state.
      if (parameter.getModule() != module || (strategy_.zero < 3 && !parameter.getTrainable())) {
        continue;
      }
      RankedTensorType type = typeOf(parameter);
      llvm::SmallVector<int64_t> shape(type.getShape());
      auto cut = cuts_.find(parameter.getSymName().str());
      if (cut != cuts_.end()) shape[cut->second.dim] /= cut->second.range.size;
      auto divide = [&](int64_t by) {
        return llvm::any_of(shape, [&](int64_t size) { return size % by == 0; });
      };
      const int64_t pieces = divide(ranks) ? ranks : divide(fewer) ? fewer : 1;
      sum += static_cast<double>(type.getNumElements()) / static_cast<double>(pieces);
    }
    return sum;
  }

  // The axis to cut for groups of neighbours, so many ranks that shard in each, and the size of its
  // outer part: that of the samples, or inside of it that of the positions. None if groups would
  // end within both.
  std::optional<std::pair<std::string, int64_t>> cutOfGroups(const std::string& module,
                                                             int64_t group) const {
    const std::string data = grid_.dataStorageAxis(module).str();
    const int64_t groups = grid_.sizeOf(grid_.zeroAxes(module)) / group;
    const int64_t samples = grid_.meshAxisSize(data, module);
    if (samples % groups == 0) return std::pair(data, groups);
    if (groups % samples != 0) return std::nullopt;
    return std::pair("cp", groups / samples);
  }

  void groupStorageRanks(const std::string& module, int64_t group) {
    const auto [axis, outer] = *cutOfGroups(module, group);
    // Modules whose groups don't nest keep what they have.
    refine(&grid_, axis, {outer}, module);
  }

  void annotateAll() {
    setGrid(module_, grid_);
    AxisSizes sizes(grid_);
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      annotate(parameter, sizes);
    }
    if (strategy_.sequenceParallel) setSequenceTypes(sizes);
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

  int64_t tensorRanks(ir::ParameterOp parameter) const {
    return grid_.meshAxisSize("tp", parameter.getModule());
  }

  // What the strategy says of parameters by name.
  LogicalResult forceCuts() {
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      const Strategy::Sharding* forced = shardingOf(strategy_, parameter.getOnnxName().str());
      if (!forced) continue;
      std::string symbol = parameter.getSymName().str();
      forced_.insert(symbol);
      if (!forced->tp) continue;
      int64_t dim = *forced->tp, ranks = tensorRanks(parameter);
      RankedTensorType type = typeOf(parameter);
      if (dim >= type.getRank()) {
        return parameter.emitError("the strategy splits dimension ")
               << dim << " of \"" << parameter.getOnnxName() << "\" over tp, which has "
               << type.getRank() << " dimensions";
      }
      if (type.getDimSize(dim) % ranks != 0) {
        return parameter.emitError("the strategy splits dimension ")
               << dim << " of \"" << parameter.getOnnxName() << "\" over tp, but tp = " << ranks
               << " does not divide its " << type.getDimSize(dim) << " elements";
      }
      if (ranks > 1) cuts_.try_emplace(symbol, UseCut{dim, {1, ranks}});
    }
    return success();
  }

  LogicalResult findCuts(mlir::func::FuncOp forward) {
    TensorBlockOptions options;
    options.ranks = [&](ir::ParameterOp parameter) {
      bool whole =
          forced_.count(parameter.getSymName().str()) && !cuts_.count(parameter.getSymName().str());
      return whole ? 1 : tensorRanks(parameter);
    };
    options.dimension = [&](ir::ParameterOp parameter) -> std::optional<int64_t> {
      auto forced = cuts_.find(parameter.getSymName().str());
      if (forced == cuts_.end()) return std::nullopt;
      return forced->second.dim;
    };
    options.module = [](ir::ParameterOp parameter) { return parameter.getModule().str(); };
    std::vector<std::string> notes;
    std::vector<TensorBlock> blocks =
        findTensorBlocks(forward, options, explain_ ? &notes : nullptr);
    for (const std::string& note : notes) *explain_ << "strategize: " << note << '\n';
    std::vector<const TensorBlock*> kept;
    const double whole = shareOfIndivisible(blocks);
    for (const TensorBlock& block : blocks) {
      if (!block.indivisible.empty()) {
        if (whole > kLittleWhole && !hasParts(block)) {
          return reportIndivisible(block, blocks, whole);
        }
        kept.push_back(&block);
        for (const TensorBlock::Cut& cut : block.cuts) {
          kept_.insert(ir::ParameterOp(cut.parameter).getSymName().str());
        }
        continue;
      }
      for (const TensorBlock::Cut& cut : block.cuts) {
        std::string symbol = ir::ParameterOp(cut.parameter).getSymName().str();
        cuts_.try_emplace(symbol, UseCut{cut.dim, cut.range});
      }
    }
    if (!kept.empty()) reportKept(*kept.front(), kept.size());
    llvm::copy_if(blocks, std::back_inserter(blocks_),
                  [](const TensorBlock& block) { return block.indivisible.empty(); });
    return success();
  }

  // What would be cut are parts of a weight, which stays whole where it can't be: no error.
  static bool hasParts(const TensorBlock& block) {
    return llvm::any_of(block.cuts, [](const auto& cut) { return partOf(cut.parameter); });
  }

  // Of the parameters of meshes with tensor-parallel ranks, the share that these don't divide. With
  // few, such as a router between two streams, it may stay whole on all ranks.
  double shareOfIndivisible(llvm::ArrayRef<TensorBlock> blocks) {
    auto elements = [](ir::ParameterOp parameter) {
      return static_cast<double>(typeOf(parameter).getNumElements());
    };
    double whole = 0, all = 0;
    for (const TensorBlock& block : blocks) {
      if (block.indivisible.empty() || hasParts(block)) continue;
      for (const TensorBlock::Cut& cut : block.cuts) whole += elements(cut.parameter);
    }
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      if (tensorRanks(parameter) > 1) all += elements(parameter);
    }
    return all > 0 ? whole / all : 0;
  }

  void reportKept(const TensorBlock& block, size_t count) {
    ir::ParameterOp parameter = block.cuts.front().parameter;
    mlir::InFlightDiagnostic warning = block.reduction->emitWarning("tp = ");
    warning << tensorRanks(parameter) << " does not divide the " << block.indivisible
            << ", for which \"" << uniqueName(parameter)
            << "\" would be split: each rank computes all of it";
    if (count > 1) warning << ", and so in " << count - 1 << " more of such blocks";
  }

  // `blocks`: all, for a remedy that needs no second one; `share`: theirs.
  LogicalResult reportIndivisible(const TensorBlock& block, const std::vector<TensorBlock>& blocks,
                                  double share) const {
    ir::ParameterOp parameter = block.cuts.front().parameter;
    std::vector<std::string> names, rules;
    for (const TensorBlock& other : blocks) {
      if (other.indivisible.empty() || hasParts(other)) continue;
      names.push_back(ir::ParameterOp(other.cuts.front().parameter).getOnnxName().str());
    }
    for (const std::string& name : names) {
      std::string rule =
          "{parameters: \"" + (names.size() > 1 ? inAllLayers(name) : name) + "\", tp: none}";
      if (!llvm::is_contained(rules, rule)) rules.push_back(std::move(rule));
    }
    return block.reduction->emitError("tp = ")
           << tensorRanks(parameter) << " does not divide the " << block.indivisible
           << ", over which \"" << parameter.getOnnxName() << "\" of type " << typeOf(parameter)
           << " would be split along dimension " << block.cuts.front().dim
           << ", and such weights have " << llvm::formatv("{0:F1} %", 100 * share)
           << " of the parameters, more than the " << llvm::formatv("{0:F0} %", 100 * kLittleWhole)
           << " that stay whole unasked"
           << ": choose another tp, or keep " << (names.size() > 1 ? "such weights" : "it")
           << " whole by `shardings: [" << llvm::join(rules, ", ") << "]` in the strategy";
  }

  // So that each range of ranks that cuts a parameter is made of whole atomic axes.
  LogicalResult refineGrid() {
    std::map<std::string, std::vector<int64_t>> outerSizes;  // by module
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      auto cut = cuts_.find(parameter.getSymName().str());
      if (cut == cuts_.end()) continue;
      std::vector<int64_t>& sizes = outerSizes[parameter.getModule().str()];
      for (int64_t size :
           {cut->second.range.outer, cut->second.range.outer * cut->second.range.size}) {
        if (size > 1 && size < tensorRanks(parameter)) sizes.push_back(size);
      }
    }
    for (const auto& [module, sizes] : outerSizes) {
      if (sizes.empty()) continue;
      std::optional<CutClash> clash = refine(&grid_, "tp", sizes, module);
      if (!clash) continue;
      return module_.emitError("some layers need groups of ")
             << clash->first << " tensor-parallel ranks and others of " << clash->second
             << ", which do not nest: choose another tp";
    }
    return success();
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
    Sharding use = Sharding::replicated(typeOf(parameter).getRank());
    auto cut = cuts_.find(parameter.getSymName().str());
    if (cut != cuts_.end()) {
      use.dims[cut->second.dim] = axesOf(cut->second.range, parameter.getModule(), sizes);
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
    return cutFurther(use, typeOf(parameter).getShape(),
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

  // Between blocks, values can be kept in pieces along the positions.
  void setSequenceTypes(const AxisSizes& sizes) {
    mlir::Builder builder(module_.getContext());
    llvm::SmallVector<mlir::Attribute> types;
    std::set<const void*> seen;
    for (const TensorBlock& block : blocks_) {
      if (block.reduction->getNumResults() != 1) continue;
      auto type = ir::tensorType(block.reduction->getResult(0));
      if (type.getRank() < 2 || !seen.insert(type.getAsOpaquePointer()).second) continue;
      llvm::StringRef module = ir::ParameterOp(block.cuts.front().parameter).getModule();
      int64_t positions = type.getDimSize(type.getRank() - 2);
      int64_t ranks = grid_.meshAxisSize("tp", module);
      if (type.getRank() == 2) ranks *= sizes.product(sizes.findAll(grid_.dataAxes(module)));
      if (positions % ranks == 0) {
        types.push_back(mlir::TypeAttr::get(type));
        continue;
      }
      block.reduction->emitWarning("no sequence parallelism for values of type ")
          << type << (module.empty() ? "" : " of the module ") << module << ": " << ranks
          << " ranks do not divide the " << positions << " positions";
    }
    module_->setAttr(kSequenceTypes, builder.getArrayAttr(types));
  }

  mlir::ModuleOp module_;
  const Strategy& strategy_;
  llvm::raw_ostream* explain_;
  Grid grid_;
  std::set<std::string> forced_;        // parameters, by symbol
  std::map<std::string, UseCut> cuts_;  // likewise
  std::vector<TensorBlock> blocks_;
  std::set<std::string> kept_;  // parameters of blocks that the ranks don't divide; that was said
};

// Where the ranks that shard don't divide all parameters (dp = 24 and sizes that 3 does not
// divide), the group of neighbours that helps most shards the others, and the groups are copies.
// The same on all grids with as many ranks, so that values travel between grids that are alike.
void groupStorageRanks(std::vector<Annotator>& annotators) {
  std::set<std::pair<std::string, int64_t>> meshes;
  for (Annotator& annotator : annotators) {
    for (const auto& mesh : annotator.storageRanks()) meshes.insert(mesh);
  }
  for (const auto& [module, ranks] : meshes) {
    std::vector<Annotator*> own;
    for (Annotator& annotator : annotators) {
      const std::map<std::string, int64_t> all = annotator.storageRanks();
      auto found = all.find(module);
      if (found != all.end() && found->second == ranks) own.push_back(&annotator);
    }
    auto stored = [&](int64_t fewer) {
      double sum = 0;
      for (Annotator* annotator : own) sum += annotator->storedElements(module, ranks, fewer);
      return sum;
    };
    // More groups make more, smaller collectives.
    constexpr double kWorthIt = 0.95;
    int64_t best = 1;
    double least = kWorthIt * stored(1);
    for (int64_t group = ranks / 2; group > 1; --group) {
      const bool isPossible = ranks % group == 0 && llvm::all_of(own, [&](Annotator* annotator) {
                                return annotator->cutOfGroups(module, group).has_value();
                              });
      if (!isPossible) continue;
      const double now = stored(group);
      if (now >= least) continue;
      least = now;
      best = group;
    }
    if (best == 1) continue;
    for (Annotator* annotator : own) annotator->groupStorageRanks(module, best);
  }
}

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

// Positions must divide over the context-parallel ranks of every mesh that has some.
LogicalResult checkPositions(mlir::ModuleOp module, const Positions& positions,
                             const std::set<int64_t>& contextSizes) {
  if (positions.losses.empty()) {
    return module.emitError("cp = ")
           << *contextSizes.rbegin() << " splits positions, and the loss is no sum over what has "
           << "some, as logits of [samples, positions, classes]: leave cp out";
  }
  for (auto [value, dim] : positions.losses) {
    const int64_t size = ir::tensorType(value).getDimSize(dim);
    for (int64_t ranks : contextSizes) {
      if (size % ranks == 0) continue;
      return mlir::emitError(value.getLoc(), "cp = ")
             << ranks << " does not divide the " << size << " positions of the loss (dimension "
             << dim << " of " << value.getType()
             << "): choose another cp, or another length of the sequence";
    }
  }
  return success();
}

struct Annotate : impl::AnnotateBase<Annotate> {
  using AnnotateBase::AnnotateBase;
  Annotate(Strategy strategy, int64_t count, bool explained) : given(std::move(strategy)) {
    microbatches = count;
    explain = explained;
  }

  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    if (failed(readStrategyOption(module, strategy, given))) return signalPassFailure();
    if (microbatches < 1) {
      module.emitError("a step of ")
          << microbatches.getValue() << " microbatches: at least one is needed";
      return signalPassFailure();
    }
    if (failed(checkNames(module, *given))) return signalPassFailure();
    const llvm::SmallVector<mlir::ModuleOp> programs = llvm::to_vector(ir::programsOf(module));
    std::vector<Strategy> strategies;
    for (auto [grid, program] : llvm::enumerate(programs)) {
      for (mlir::func::FuncOp forward : ir::segmentsOfKind(program, "forward")) {
        if (failed(ir::SegmentRoles::read(forward))) return signalPassFailure();
      }
      mlir::FailureOr<Strategy> own = strategyOf(program, grid, *given);
      if (failed(own)) return signalPassFailure();
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
      if (failed(checkPositions(module, positions, contextSizes))) return signalPassFailure();
      setPositions(positions);
    }
    std::set<WholePositions> warned;
    for (Annotator& annotator : annotators) {
      if (failed(annotator.prepare(positions, warned))) return signalPassFailure();
    }
    if (given->zero > 0) groupStorageRanks(annotators);
    for (Annotator& annotator : annotators) annotator.annotateAll();
    // The stages of a pipeline have theirs already.
    if (programs.front() == module) setSchedule(module, accumulationSchedule(microbatches));
  }

  std::optional<Strategy> given;
};

}  // namespace

std::unique_ptr<mlir::Pass> createAnnotate(Strategy strategy, int64_t microbatches, bool explain) {
  return std::make_unique<Annotate>(std::move(strategy), microbatches, explain);
}

}  // namespace oriel
