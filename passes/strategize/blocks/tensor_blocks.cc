#include "passes/strategize/blocks/tensor_blocks.h"

#include <optional>
#include <set>

#include "ir/oriel/location.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/strategize/blocks/block_candidate.h"
#include "passes/strategize/blocks/block_choice.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

namespace {

using ir::ShardingRule;
using mlir::Operation;
using mlir::Value;

// The sizes of tensor parallelism that parameters have.
std::set<int64_t> rankCounts(const SegmentValues& values, const TensorBlockOptions& options) {
  std::set<int64_t> counts;
  for (const auto& [value, parameter] : values.parameters) {
    int64_t ranks = options.ranks(parameter);
    if (ranks > 1) counts.insert(ranks);
  }
  return counts;
}

}  // namespace

TensorBlockOptions blockOptionsOf(const Strategy& strategy) {
  TensorBlockOptions options;
  options.ranks = [&](ir::ParameterOp parameter) -> int64_t {
    const std::string name = parameter.getOnnxName().str();
    const Strategy::Sharding* forced = shardingOf(strategy, name);
    if (forced && !forced->tp) return 1;
    return strategy.commonTensorParallel(moduleOf(strategy, name));
  };
  options.dimension = [&](ir::ParameterOp parameter) {
    const Strategy::Sharding* forced = shardingOf(strategy, parameter.getOnnxName().str());
    return forced ? forced->tp : std::nullopt;
  };
  options.module = [&](ir::ParameterOp parameter) {
    const Strategy::Module* module = moduleOf(strategy, parameter.getOnnxName().str());
    return module ? module->name : std::string();
  };
  return options;
}

std::vector<BlockCandidate> chooseCandidates(mlir::func::FuncOp forward,
                                             const TensorBlockOptions& options,
                                             std::vector<std::string>* notes,
                                             bool takesIndivisible) {
  SegmentValues values = readValues(forward);
  const std::set<int64_t> counts = rankCounts(values, options);
  std::vector<BlockAlternatives> all;
  std::vector<BlockCandidate> layers;
  std::vector<std::pair<Operation*, std::string>> unsplit;  // and why
  RuleCache rules;
  const llvm::DenseSet<Operation*> upToLastWeights = opsUpToLastWeights(forward, values);
  const BlockScope scope{values, options, upToLastWeights, rules, takesIndivisible};
  for (Operation& op : forward.getBody().front()) {
    const ShardingRule& rule = rules.of(&op);
    for (int factor = 0; factor < static_cast<int>(rule.factors.size()); ++factor) {
      if (!isReduced(rule, factor)) continue;
      BlockAlternatives alternatives{&op, {}};
      for (int64_t ranks : counts) {
        std::string why;
        std::optional<BlockCandidate> candidate =
            findBlockCandidate(scope, &op, factor, ranks, why);
        if (candidate) {
          alternatives.candidates.push_back(*std::move(candidate));
        } else if (!why.empty()) {
          unsplit.emplace_back(&op, "over " + std::to_string(ranks) + " ranks: " + why);
        }
        if (auto layer = findLayerCandidate(scope, &op, factor, ranks)) {
          layers.push_back(*std::move(layer));
        }
      }
      if (!alternatives.candidates.empty()) all.push_back(std::move(alternatives));
    }
  }
  ChosenBlocks chosen = chooseBlocks(values, all, layers);
  if (!notes) return std::move(chosen.candidates);
  llvm::append_range(unsplit, chosen.notes);
  // A product of a parameter that is cut otherwise needs no excuse.
  for (auto& [op, note] : unsplit) {
    bool isCut = llvm::any_of(op->getOperands(), [&](Value operand) {
      auto parameter = values.parameters.find(operand);
      return parameter != values.parameters.end() && chosen.isCut(parameter->second);
    });
    if (!isCut) notes->push_back(ir::opText(op) + " is not split " + note);
  }
  return std::move(chosen.candidates);
}

std::vector<TensorBlock> findTensorBlocks(mlir::func::FuncOp forward,
                                          const TensorBlockOptions& options,
                                          std::vector<std::string>* notes) {
  std::vector<TensorBlock> blocks;
  for (BlockCandidate& candidate :
       chooseCandidates(forward, options, notes, /*takesIndivisible=*/false)) {
    blocks.push_back(std::move(candidate.block));
  }
  return blocks;
}

}  // namespace oriel
