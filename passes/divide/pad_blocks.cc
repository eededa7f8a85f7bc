#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/divide/grown_block.h"
#include "passes/divide/output_layer.h"
#include "passes/divide/passes.h"
#include "passes/strategize/blocks/block_choice.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/strategy_pass.h"

namespace oriel {

#define GEN_PASS_DEF_PADBLOCKS
#include "passes/divide/passes.h.inc"

namespace {

using mlir::Operation;

// Blocks of linear layers that ranks do not divide, with those that share ops or parameters.
class BlockPadder {
 public:
  // `ranks`: of parameters that may be in any stage.
  BlockPadder(mlir::func::FuncOp main, const Strategy& strategy, llvm::StringRef output,
              int64_t ranks)
      : main_(main), ranks_(ranks), ranksOfAll_(strategy.commonOfGrids(&Mesh::tp)) {
    TensorBlockOptions options = blockOptionsOf(strategy);
    options.ranks = [common = options.ranks, this](ir::ParameterOp parameter) {
      const int64_t own = common(parameter);
      return own == ranksOfAll_ ? ranks_ : own;
    };
    options.dimension = [&, given = options.dimension, classes = classDims(main, output)](
                            ir::ParameterOp parameter) -> std::optional<int64_t> {
      if (std::optional<int64_t> dim = given(parameter)) return dim;
      auto known = classes.find(parameter);
      return known == classes.end() ? std::nullopt : std::optional(known->second);
    };
    candidates_ = chooseCandidates(main, options, /*notes=*/nullptr, /*takesIndivisible=*/true);
    llvm::erase_if(candidates_, [](const BlockCandidate& candidate) {
      return !isLayer(candidate.block.reduction);
    });
  }

  void run() {
    for (auto& [ranks, members] : joined()) pad(ranks, members);
    for (const auto& [growth, padded] : padded_) {
      ir::ParameterOp first = padded.front();
      mlir::InFlightDiagnostic warning = first.emitWarning("for tensor parallelism, ");
      warning << std::get<0>(growth) << " columns, heads or groups of heads are padded to "
              << std::get<1>(growth) << " in \"" << uniqueName(first) << "\"";
      if (padded.size() > 1) warning << " and " << padded.size() - 1 << " more";
    }
    if (!unpadded_.empty()) {
      const auto& [reduction, why] = unpadded_.front();
      mlir::InFlightDiagnostic warning = reduction->emitWarning("what it sums is not padded: ");
      warning << why;
      if (unpadded_.size() > 1) warning << "; " << unpadded_.size() - 1 << " more are not";
    }
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

  // Those of the same ranks that share an op or a parameter, where ranks do not divide one of them.
  std::vector<std::pair<int64_t, Members>> joined() const {
    llvm::EquivalenceClasses<size_t> classes;
    std::map<std::pair<int64_t, Operation*>, size_t> firstWith;
    for (const auto& [i, candidate] : llvm::enumerate(candidates_)) {
      classes.insert(i);
      auto join = [&, i = i, ranks = candidate.ranks](Operation* op) {
        classes.unionSets(i, firstWith.try_emplace({ranks, op}, i).first->second);
      };
      for (const auto& [op, cuts] : candidate.ops) join(op);
      for (const auto& [op, cuts] : candidate.data) join(op);
      for (const TensorBlock::Cut& cut : candidate.block.cuts) join(cut.parameter);
    }
    std::map<size_t, Members> members;  // by the first of each
    for (const auto& [i, candidate] : llvm::enumerate(candidates_)) {
      members[classes.getLeaderValue(i)].push_back(&candidate);
    }
    std::vector<std::pair<int64_t, Members>> indivisible;
    for (auto& [leader, all] : members) {
      if (llvm::all_of(all, [](auto* one) { return one->block.indivisible.empty(); })) continue;
      indivisible.emplace_back(all.front()->ranks, std::move(all));
    }
    return indivisible;
  }

  void pad(int64_t ranks, const Members& members) {
    JoinedBlocks blocks;
    llvm::DenseSet<Operation*> seen;
    for (const BlockCandidate* candidate : members) {
      for (const auto& [op, cuts] : candidate->ops) blocks.ops[op].insert(cuts.begin(), cuts.end());
      for (const auto& [op, cuts] : candidate->data) {
        blocks.data[op].insert(cuts.begin(), cuts.end());
      }
      for (const TensorBlock::Cut& cut : candidate->block.cuts) {
        if (seen.insert(ir::ParameterOp(cut.parameter)).second) blocks.cuts.push_back(cut);
      }
    }
    std::string why;
    const int64_t divisor = ranks == ranks_ ? ranksOfAll_ : ranks;
    const std::optional<Growth> growth = growBlocks(main_, blocks, ranks, divisor, why);
    if (!growth) {
      unpadded_.emplace_back(members.front()->block.reduction, why);
      return;
    }
    llvm::append_range(padded_[{growth->from, growth->to}], growth->parameters);
  }

  mlir::func::FuncOp main_;
  const int64_t ranks_, ranksOfAll_;
  std::vector<BlockCandidate> candidates_;
  std::map<std::pair<int64_t, int64_t>, std::vector<ir::ParameterOp>> padded_;  // by growth
  std::vector<std::pair<Operation*, std::string>> unpadded_;                    // and why
};

struct PadBlocks : StrategyPass<impl::PadBlocksBase<PadBlocks>> {
  using StrategyPass::StrategyPass;
  PadBlocks(Strategy strategy, std::string name) : StrategyPass(std::move(strategy)) {
    output = std::move(name);
  }

  mlir::LogicalResult run(mlir::ModuleOp module, const Strategy& strategy) override {
    if (!strategy.padding) return mlir::success();
    mlir::func::FuncOp main = ir::mainOfOneBlock(module);
    if (!main) return mlir::success();
    // Which stage is whose is not known yet.
    std::set<int64_t> ranks;
    for (int64_t grid = 0; grid < strategy.grids(); ++grid) {
      ranks.insert(strategy.meshOfGrid(grid).tp);
    }
    for (int64_t own : ranks) BlockPadder(main, strategy, output, own).run();
    return mlir::success();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createPadBlocks(Strategy strategy, std::string output) {
  return std::make_unique<PadBlocks>(std::move(strategy), std::move(output));
}

}  // namespace oriel
