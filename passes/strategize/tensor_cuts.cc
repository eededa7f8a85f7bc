#include "passes/strategize/tensor_cuts.h"

#include <optional>

#include "ir/oriel/segment.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "passes/strategize/name_pattern.h"
#include "passes/strategize/parameter_part.h"

namespace oriel {

using mlir::failure;
using mlir::LogicalResult;
using mlir::RankedTensorType;
using mlir::success;

namespace {

class TensorCutFinder {
 public:
  TensorCutFinder(mlir::ModuleOp program, const Strategy& strategy, const Grid& grid,
                  llvm::raw_ostream* explain)
      : module_(program), strategy_(strategy), grid_(grid), explain_(explain) {}

  mlir::FailureOr<TensorCuts> run() {
    if (failed(forceCuts())) return failure();
    for (mlir::func::FuncOp forward : ir::segmentsOfKind(module_, "forward")) {
      if (failed(findCuts(forward))) return failure();
    }
    return std::move(cuts_);
  }

 private:
  int64_t tensorRanks(ir::ParameterOp parameter) const {
    return grid_.meshAxisSize("tp", parameter.getModule());
  }

  // What the strategy says of parameters by name.
  LogicalResult forceCuts() {
    for (auto parameter : module_.getOps<ir::ParameterOp>()) {
      const Strategy::Sharding* forced = shardingOf(strategy_, parameter.getOnnxName().str());
      if (!forced) continue;
      std::string symbol = parameter.getSymName().str();
      cuts_.forced.insert(symbol);
      if (!forced->tp) continue;
      int64_t dim = *forced->tp, ranks = tensorRanks(parameter);
      RankedTensorType type = parameter.getTensorType();
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
      if (ranks > 1) cuts_.cuts.try_emplace(symbol, TensorCuts::Cut{dim, {1, ranks}});
    }
    return success();
  }

  LogicalResult findCuts(mlir::func::FuncOp forward) {
    TensorBlockOptions options;
    options.ranks = [&](ir::ParameterOp parameter) {
      const bool isWhole =
          cuts_.forced.count(parameter.getSymName().str()) > 0 && !cuts_.of(parameter);
      return isWhole ? 1 : tensorRanks(parameter);
    };
    options.dimension = [&](ir::ParameterOp parameter) -> std::optional<int64_t> {
      const TensorCuts::Cut* forced = cuts_.of(parameter);
      return forced ? std::optional(forced->dim) : std::nullopt;
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
          return reportIndivisible(blocks, whole);
        }
        kept.push_back(&block);
        for (const TensorBlock::Cut& cut : block.cuts) {
          cuts_.kept.insert(ir::ParameterOp(cut.parameter).getSymName().str());
        }
        continue;
      }
      for (const TensorBlock::Cut& cut : block.cuts) {
        std::string symbol = ir::ParameterOp(cut.parameter).getSymName().str();
        cuts_.cuts.try_emplace(symbol, TensorCuts::Cut{cut.dim, cut.range});
      }
    }
    if (!kept.empty()) reportKept(*kept.front(), kept.size());
    llvm::copy_if(blocks, std::back_inserter(cuts_.blocks),
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
      return static_cast<double>(parameter.getTensorType().getNumElements());
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
    if (!strategy_.padding) warning << "; `padding: true` in the strategy may have it split";
  }

  static int64_t elementsOfFirst(const TensorBlock& block) {
    return ir::ParameterOp(block.cuts.front().parameter).getTensorType().getNumElements();
  }

  // Of the largest; all, for a remedy that needs no second one. `share`: theirs.
  LogicalResult reportIndivisible(const std::vector<TensorBlock>& blocks, double share) const {
    std::vector<const TensorBlock*> indivisible;
    for (const TensorBlock& block : blocks) {
      if (!block.indivisible.empty() && !hasParts(block)) indivisible.push_back(&block);
    }
    llvm::stable_sort(indivisible, [](const TensorBlock* a, const TensorBlock* b) {
      return elementsOfFirst(*a) > elementsOfFirst(*b);
    });
    const TensorBlock& block = *indivisible.front();
    ir::ParameterOp parameter = block.cuts.front().parameter;
    std::vector<std::string> names, rules;
    for (const TensorBlock* other : indivisible) {
      names.push_back(ir::ParameterOp(other->cuts.front().parameter).getOnnxName().str());
    }
    for (const std::string& name : names) {
      std::string rule =
          "{parameters: \"" + (names.size() > 1 ? inAllLayers(name) : name) + "\", tp: none}";
      if (!llvm::is_contained(rules, rule)) rules.push_back(std::move(rule));
    }
    return block.reduction->emitError("tp = ")
           << tensorRanks(parameter) << " does not divide the " << block.indivisible
           << ", over which \"" << parameter.getOnnxName() << "\" of type "
           << parameter.getTensorType() << " would be split along dimension "
           << block.cuts.front().dim << ", and such weights have "
           << llvm::formatv("{0:F1} %", 100 * share) << " of the parameters, more than the "
           << llvm::formatv("{0:F0} %", 100 * kLittleWhole) << " that stay whole unasked"
           << ": choose another tp, "
           << (strategy_.padding ? ""
                                 : "have zeros added by `padding: true` in the "
                                   "strategy (`--padding`), ")
           << "or keep " << (names.size() > 1 ? "such weights" : "it") << " whole by `shardings: ["
           << llvm::join(rules, ", ") << "]` in the strategy";
  }

  mlir::ModuleOp module_;
  const Strategy& strategy_;
  const Grid& grid_;
  llvm::raw_ostream* explain_;
  TensorCuts cuts_;
};

}  // namespace

mlir::FailureOr<TensorCuts> findTensorCuts(mlir::ModuleOp program, const Strategy& strategy,
                                           const Grid& grid, llvm::raw_ostream* explain) {
  return TensorCutFinder(program, strategy, grid, explain).run();
}

const TensorCuts::Cut* TensorCuts::of(ir::ParameterOp parameter) const {
  auto found = cuts.find(parameter.getSymName().str());
  return found == cuts.end() ? nullptr : &found->second;
}

bool TensorCuts::isKnown(const std::string& symbol) const {
  return cuts.count(symbol) > 0 || forced.count(symbol) > 0 || kept.count(symbol) > 0;
}

}  // namespace oriel
