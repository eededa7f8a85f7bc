#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/divide/grown_block.h"
#include "passes/divide/output_layer.h"
#include "passes/divide/passes.h"
#include "passes/strategize/blocks/tensor_blocks.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/strategy_pass.h"

namespace oriel {

#define GEN_PASS_DEF_PADBLOCKS
#include "passes/divide/passes.h.inc"

namespace {

using mlir::Operation;

// Blocks of layers that ranks do not divide, with those that share ops or parameters.
class BlockPadder {
 public:
  BlockPadder(mlir::func::FuncOp main, const Strategy& strategy, llvm::StringRef output)
      : main_(main), strategy_(strategy), classDims_(classDims(main, output)) {}

  // Which stage is whose is not known yet: where stages have ranks of their own, for each of them.
  void run() {
    std::set<int64_t> counts;
    GrowthRanks ranks{0, strategy_.commonOfGrids(&Mesh::tp), /*common=*/0};
    for (int64_t grid = 0; grid < strategy_.grids(); ++grid) {
      const int64_t count = strategy_.meshOfGrid(grid).tp;
      counts.insert(count);
      ranks.common = std::gcd(ranks.common, count);
    }
    for (int64_t count : counts) {
      ranks.count = count;
      padFor(ranks);
    }
    report();
    if (padded_.empty()) return;
    main_.setFunctionType(mlir::FunctionType::get(main_.getContext(),
                                                  main_.getBody().front().getArgumentTypes(),
                                                  main_.getFunctionType().getResults()));
  }

 private:
  using Members = std::vector<const BlockCandidate*>;

  // The dimension of output layers' weights that the loss, which is not there yet, has cut.
  static llvm::DenseMap<Operation*, int64_t> classDims(mlir::func::FuncOp main,
                                                       llvm::StringRef output) {
    llvm::DenseMap<Operation*, int64_t> dims;
    const SegmentValues values = readValues(main);
    for (OutputLayer& layer : outputLayersOf(main, output)) {
      auto weight = values.parameters.find(layer.linear.getWeight());
      if (weight == values.parameters.end()) continue;
      dims[ir::ParameterOp(weight->second)] = layer.linear.getTransposeWeight() ? 0 : 1;
    }
    return dims;
  }

  void padFor(const GrowthRanks& ranks) {
    TensorBlockOptions options = blockOptionsOf(strategy_);
    options.ranks = [&, common = options.ranks](ir::ParameterOp parameter) {
      const int64_t own = common(parameter);
      return own == 1 || hasOwnMesh(parameter) ? own : ranks.count;
    };
    options.dimension =
        [&, given = options.dimension](ir::ParameterOp parameter) -> std::optional<int64_t> {
      if (std::optional<int64_t> dim = given(parameter)) return dim;
      auto known = classDims_.find(parameter);
      return known == classDims_.end() ? std::nullopt : std::optional(known->second);
    };
    std::vector<BlockCandidate> candidates =
        chooseCandidates(main_, options, /*notes=*/nullptr, /*takesIndivisible=*/true);
    llvm::erase_if(candidates, [](const BlockCandidate& candidate) {
      return !endsBlock(candidate.block.reduction);
    });
    for (const Members& members : joined(candidates)) pad(ranks, members);
  }

  bool hasOwnMesh(ir::ParameterOp parameter) const {
    const Strategy::Module* module = moduleOf(strategy_, parameter.getOnnxName().str());
    return module && module->mesh;
  }

  // Those of the same ranks that share an op or a parameter, where ranks do not divide one of them.
  static std::vector<Members> joined(const std::vector<BlockCandidate>& candidates) {
    llvm::EquivalenceClasses<size_t> classes;
    std::map<std::pair<int64_t, Operation*>, size_t> firstWith;
    for (const auto& [i, candidate] : llvm::enumerate(candidates)) {
      classes.insert(i);
      auto join = [&, i = i, ranks = candidate.ranks](Operation* op) {
        classes.unionSets(i, firstWith.try_emplace({ranks, op}, i).first->second);
      };
      for (const auto& [op, cuts] : candidate.ops) join(op);
      for (const TensorBlock::Cut& cut : candidate.block.cuts) join(cut.parameter);
    }
    llvm::MapVector<size_t, Members> members;  // by their class, in the order of the first of each
    for (const auto& [i, candidate] : llvm::enumerate(candidates)) {
      members[classes.getLeaderValue(i)].push_back(&candidate);
    }
    std::vector<Members> indivisible;
    for (auto& [leader, all] : members) {
      if (llvm::all_of(all, [](auto* one) { return one->block.indivisible.empty(); })) continue;
      indivisible.push_back(std::move(all));
    }
    return indivisible;
  }

  void pad(const GrowthRanks& ofStages, const Members& members) {
    JoinedBlocks blocks;
    llvm::DenseSet<Operation*> seen;
    for (const BlockCandidate* candidate : members) {
      for (const auto& [op, cuts] : candidate->ops) blocks.ops[op].insert(cuts.begin(), cuts.end());
      for (const TensorBlock::Cut& cut : candidate->block.cuts) {
        if (seen.insert(ir::ParameterOp(cut.parameter)).second) blocks.cuts.push_back(cut);
      }
    }
    GrowthRanks ranks = ofStages;
    if (hasOwnMesh(blocks.cuts.front().parameter)) {
      const int64_t own = members.front()->ranks;
      ranks = {own, own, own};
    }
    std::string why;
    const std::optional<Growth> growth = growBlocks(main_, blocks, ranks, why);
    if (growth) {
      // These ops are not there any more.
      unpadded_.remove_if([&](const auto& entry) { return blocks.ops.contains(entry.first); });
      llvm::append_range(padded_[{growth->from, growth->to}], growth->parameters);
    } else {
      unpadded_.insert({members.front()->block.reduction, why});
    }
  }

  void report() {
    for (const auto& [growth, parameters] : padded_) {
      ir::ParameterOp first = parameters.front();
      mlir::InFlightDiagnostic warning = first.emitWarning("for tensor parallelism, ");
      warning << growth.first << " columns, heads or groups of heads are padded to "
              << growth.second << " in \"" << uniqueName(first) << "\"";
      if (parameters.size() > 1) warning << " and " << parameters.size() - 1 << " more";
    }
    if (unpadded_.empty()) return;
    const auto& [reduction, why] = unpadded_.front();
    mlir::InFlightDiagnostic warning = reduction->emitWarning("what it sums is not padded: ");
    warning << why;
    if (unpadded_.size() > 1) warning << "; " << unpadded_.size() - 1 << " more are not";
  }

  mlir::func::FuncOp main_;
  const Strategy& strategy_;
  const llvm::DenseMap<Operation*, int64_t> classDims_;
  std::map<std::pair<int64_t, int64_t>, std::vector<ir::ParameterOp>> padded_;  // by growth
  llvm::MapVector<Operation*, std::string> unpadded_;  // reductions, and why
};

struct PadBlocks : StrategyPass<impl::PadBlocksBase<PadBlocks>> {
  using StrategyPass::StrategyPass;
  PadBlocks(Strategy strategy, std::string name) : StrategyPass(std::move(strategy)) {
    output = std::move(name);
  }

  mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) override {
    if (!strategy.padding) return mlir::success();
    if (mlir::func::FuncOp main = ir::mainOfOneBlock(module)) {
      BlockPadder(main, strategy, output).run();
    }
    return mlir::success();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createPadBlocks(Strategy strategy, std::string output) {
  return std::make_unique<PadBlocks>(std::move(strategy), std::move(output));
}

}  // namespace oriel
